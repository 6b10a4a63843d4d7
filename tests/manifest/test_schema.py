"""The published JSON Schema says what the models check, and the other way round."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from devbay.manifest import json_schema, parse
from devbay.manifest.source import read
from tests.manifest import acceptances, rejections
from tests.manifest.rejections import Rejection

EXAMPLE = Path(__file__).parents[2] / "devbay.yaml.example"
VALIDATOR = Draft202012Validator(json_schema())


def data(text: str) -> Any:
    return read(text).data


def test_is_a_valid_schema_of_draft_2020_12() -> None:
    Draft202012Validator.check_schema(json_schema())
    assert json_schema()["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize(
    "case", [each for each in rejections.ALL if each.structural], ids=lambda case: case.name
)
def test_structural_rejections_fail_the_schema_too(case: Rejection) -> None:
    assert not VALIDATOR.is_valid(data(case.text))


@pytest.mark.parametrize("text", acceptances.ALL.values(), ids=acceptances.ALL)
def test_what_is_accepted_meets_the_schema(text: str) -> None:
    assert [error.message for error in VALIDATOR.iter_errors(data(text))] == []


@pytest.mark.parametrize("text", acceptances.ALL.values(), ids=acceptances.ALL)
def test_accepted_examples_are_accepted(text: str) -> None:
    assert [str(each) for each in parse(text).errors] == []


def test_the_shipped_example_is_valid_in_both() -> None:
    text = EXAMPLE.read_text()
    assert [str(each) for each in parse(text).errors] == []
    assert VALIDATOR.is_valid(data(text))


def keys(node: Any) -> set[str]:
    if isinstance(node, list):
        return set().union(*map(keys, node)) if node else set()
    if not isinstance(node, dict):
        return set()
    return set(node) | set().union(set(), *map(keys, node.values()))


def test_the_shipped_example_shows_every_key() -> None:
    schema = json_schema()
    parts = [schema, *schema["$defs"].values()]
    wanted = {key for part in parts for key in part.get("properties", {})}
    assert wanted - keys(data(EXAMPLE.read_text())) == set()


def test_every_key_is_described() -> None:
    schema = json_schema()
    for name, part in [("manifest", schema), *schema["$defs"].items()]:
        for key, value in part["properties"].items():
            assert value.get("description"), f"{name}.{key}"


def test_null_is_allowed_nowhere() -> None:
    assert "null" not in str(json_schema())


def test_defaults_are_values_of_the_file() -> None:
    schema = json_schema()
    for part in [schema, *schema["$defs"].values()]:
        for value in part["properties"].values():
            if "default" in value:
                assert VALIDATOR.evolve(schema={**value, "$defs": schema["$defs"]}).is_valid(value["default"])

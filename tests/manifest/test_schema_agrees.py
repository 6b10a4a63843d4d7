"""Whatever is changed in the example, the published schema and the models say the same of it."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from devbay.manifest import Manifest, json_schema
from devbay.manifest.source import read

EXAMPLE = (Path(__file__).parents[2] / "devbay.yaml.example").read_text()
SCHEMA = json_schema()
KEYS = sorted({key for part in [SCHEMA, *SCHEMA["$defs"].values()] for key in part["properties"]})
VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 1.5, "", "x", "A", "a--b", "..", "/", "/x", "../x", "30s", "0s", [], ["x"],
    [""], [1], {}, {"a": "b"}, {"x": 1}, 99999, "auto", "${run.dir}/x", "oneshot", "shared", "1g", "a:1",
    "host", "é", {"http": "/"}, {"process": True}, [{"source": "a", "target": "/b"}], "a b", 2**40, "image",
    "always", ["6xx"],
]  # fmt: skip


def containers(node: Any) -> Iterator[Any]:
    if isinstance(node, dict | list):
        yield node
        for child in node.values() if isinstance(node, dict) else node:
            yield from containers(child)


def changed(data: Any, chance: random.Random) -> Any:
    data = copy.deepcopy(data)
    for _ in range(chance.randint(1, 2)):
        place = chance.choice(list(containers(data)))
        value = copy.deepcopy(chance.choice(VALUES))
        if isinstance(place, list):
            if place:
                place[chance.randrange(len(place))] = value
            continue
        key = chance.choice(KEYS if chance.random() < 0.6 or not place else list(place))
        if chance.random() < 0.2:
            place.pop(key, None)
        else:
            place[key] = value
    return data


def accepts(data: Any) -> bool:
    try:
        Manifest.model_validate(data)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize("seed", range(4))
def test_schema_and_models_agree(seed: int) -> None:
    chance = random.Random(seed)
    base, validator = read(EXAMPLE).data, Draft202012Validator(SCHEMA)
    accepted = 0
    for _ in range(150):
        data = changed(base, chance)
        verdict = accepts(data)
        assert validator.is_valid(data) == verdict, data
        accepted += verdict
    assert 0 < accepted < 150

"""docs/tools.md names every tool and argument, and its examples are calls and answers of the schemas."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from devbay.cli.app import COMMANDS
from devbay.tools import build_tools
from devbay.tools.registry import Tool

PAGE = Path(__file__).parents[2] / "docs" / "tools.md"
TOOLS: dict[str, Tool[Any, Any]] = {tool.name: tool for tool in build_tools(None)}


def sections() -> dict[str, str]:
    """The page's text by tool."""
    parts = re.split(r"^## `(\w+)`\n", PAGE.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_the_page_has_a_section_for_every_tool_and_no_other():
    assert list(sections()) == list(TOOLS)


@pytest.mark.parametrize("name", TOOLS)
def test_every_argument_is_named_and_required_ones_are_marked(name: str):
    schema = TOOLS[name].input_schema()
    rows = re.findall(r"^\| `(\w+)`( \(required\))? \|", sections()[name], re.MULTILINE)
    required = set(schema.get("required", ()))
    assert {row: bool(mark) for row, mark in rows} == {key: key in required for key in schema["properties"]}


@pytest.mark.parametrize("name", TOOLS)
def test_the_examples_are_calls_and_answers_that_the_schemas_allow(name: str):
    section = sections()[name]
    calls = re.findall(rf"^{name} (\{{.*\}})$", section, re.MULTILINE)
    assert calls
    for call in calls:
        Draft202012Validator(TOOLS[name].input_schema()).validate(json.loads(call))
    for answer in re.findall(r"```json\n(.*?)```", section, re.DOTALL):
        found = json.loads(answer)
        Draft202012Validator(TOOLS[name].output_schema()).validate(found)
        if "error" not in found:
            TOOLS[name].answer.model_validate(found)  # refuses fields that the schema leaves open


def test_the_readme_names_every_tool_and_every_command():
    readme = (PAGE.parents[1] / "README.md").read_text()
    assert not [name for name in TOOLS if f"`{name}`" not in readme]
    assert not [name for name in COMMANDS if not re.search(rf"`(devbay )?{name}[ `]", readme)]


def test_the_readme_stays_short():
    assert len((PAGE.parents[1] / "README.md").read_text().splitlines()) < 300

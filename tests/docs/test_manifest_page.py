"""docs/manifest.md names every key of the manifest, in the words of its schema.

`python tests/docs/test_manifest_page.py` writes the page's tables anew.
"""

import re
from pathlib import Path
from typing import Any

import pytest

from devbay.manifest import parse
from devbay.manifest.schema import json_schema

PAGE = Path(__file__).parents[2] / "docs" / "manifest.md"
BLOCK = re.compile(r"(?<=<!-- keys: )(?P<name>\w+) -->\n.*?(?=<!-- end -->)", re.DOTALL)


def groups() -> dict[str, dict[str, Any]]:
    """The keys of every part of the manifest; what services and tasks share stands under `Container`."""
    schema = json_schema()
    found = {name: part["properties"] for name, part in schema["$defs"].items() if "properties" in part}
    service, task = found["Service"], found["Task"]
    shared = {key: value for key, value in service.items() if task.get(key) == value}
    for name in ("Service", "Task"):
        found[name] = {key: value for key, value in found[name].items() if key not in shared}
    return {"Manifest": schema["properties"], **found, "Container": shared}


def table(keys: dict[str, Any]) -> str:
    rows = []
    for key, value in keys.items():
        default = value.get("default")
        shown = str(default).lower() if isinstance(default, bool) else default
        said = (
            value["description"].replace("<", r"\<")
            + "."
            + (f" Default: `{shown}`." if default is not None else "")
        )
        rows.append(f"| `{key}` | {said} |\n")
    return "| key | |\n|---|---|\n" + "".join(rows)


def block(name: str) -> str:
    return f"{name} -->\n{table(groups()[name])}"


@pytest.mark.parametrize("name", groups())
def test_every_key_stands_in_the_page_in_the_schemas_words(name: str):
    found = {match["name"]: match[0] for match in BLOCK.finditer(PAGE.read_text())}
    assert found.get(name) == block(name), f"run: python {Path(__file__).name}"


def test_the_page_has_no_table_of_a_part_that_is_gone():
    assert {match["name"] for match in BLOCK.finditer(PAGE.read_text())} == set(groups())


@pytest.mark.parametrize("page", ["docs/manifest.md", "README.md"])
def test_whole_manifests_shown_in_the_pages_are_valid(page: str):
    text = (PAGE.parents[1] / page).read_text()
    shown = re.findall(r"```yaml\n(version: 1\n.*?)```", text, re.DOTALL)
    assert shown
    for manifest in shown:
        loaded = parse(manifest)
        assert loaded.manifest, loaded.diagnostics


if __name__ == "__main__":
    PAGE.write_text(BLOCK.sub(lambda match: block(match["name"]), PAGE.read_text()))

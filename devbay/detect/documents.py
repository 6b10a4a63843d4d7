"""YAML, TOML and JSON of a repository as plain data with lines; what cannot be read is skipped by name."""

from __future__ import annotations

import io
import json
import tomllib
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.error import YAMLError

from devbay.detect import jsonc
from devbay.detect.files import View
from devbay.manifest.source import MAX_DEPTH, MAX_NODES


def yaml(view: View, path: str) -> Any:
    """The first document of a YAML file as ruamel's commented data; None if there is none to read.

    Recorded as skipped: what does not parse, and what aliases would blow up beyond the manifest's limits.
    """
    text = view.text(path)
    if text is None:
        return None
    reader = YAML(typ="rt")
    reader.allow_duplicate_keys = True
    try:
        data = next(iter(reader.load_all(io.StringIO(text))), None)
        if _size(data, 0) > MAX_NODES:
            view.skip(path, f"has more than {MAX_NODES} nodes, or more than {MAX_DEPTH} levels")
            return None
    except (YAMLError, ValueError, RecursionError, AttributeError, TypeError) as error:
        view.skip(path, f"is no readable YAML: {_first_line(error)}")
        return None
    return data


def toml(view: View, path: str) -> dict[str, Any]:
    """The data of a TOML file; empty if there is none to read."""
    text = view.text(path)
    if text is None:
        return {}
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        view.skip(path, f"is no readable TOML: {_first_line(error)}")
        return {}


def json_object(view: View, path: str, *, comments: bool = False) -> dict[str, Any]:
    """The object of a JSON file; empty if there is none to read."""
    text = view.text(path)
    if text is None:
        return {}
    try:
        data = jsonc.loads(text) if comments else json.loads(text)
    except (ValueError, RecursionError) as error:
        view.skip(path, f"is no readable JSON: {_first_line(error)}")
        return {}
    return data if isinstance(data, dict) else {}


def line(parent: Any, key: str | int) -> int:
    """The line of a key of a mapping or an item of a list, 1-based; 0 where that is not known."""
    try:
        place = parent.lc.key(key) if isinstance(parent, CommentedMap) else parent.lc.item(key)
    except (AttributeError, KeyError, TypeError, IndexError):
        return 0
    return int(place[0]) + 1


def mapping(value: Any) -> dict[Any, Any]:
    """`value` if it is a mapping, else an empty one."""
    return value if isinstance(value, dict) else {}


def texts(value: Any) -> list[str]:
    """The texts of a list, or the one text."""
    items = value if isinstance(value, list) else [value]
    return [str(item) for item in items if isinstance(item, str | int) and not isinstance(item, bool)]


def _size(data: Any, depth: int) -> int:
    """The number of nodes with aliases unfolded, counted no further than the limit."""
    if depth > MAX_DEPTH:
        return MAX_NODES + 1
    parts = data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    total = 1
    for part in parts:
        total += _size(part, depth + 1)
        if total > MAX_NODES:
            break
    return total


def _first_line(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = (
        getattr(error, "problem", None) or str(error).strip().splitlines()[0]
        if str(error)
        else type(error).__name__
    )
    return f"{problem} (line {mark.line + 1})" if mark is not None else str(problem)[:200]

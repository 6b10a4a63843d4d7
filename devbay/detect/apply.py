"""Parts of a proposal taken over into a manifest that exists: the user's order and comments stay."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError

from devbay.errors import WORK_FAILED, DevbayError


def take_over(old: str, proposed: str, wanted: tuple[str, ...]) -> str:
    """`old` with each part of `proposed` in `wanted` (such as `services/web/env/X`) put in or replaced.

    Raises `unknown_part` with what there is, and `invalid_manifest` where `old` cannot be read.
    """
    source = _read(_yaml(), proposed)
    changes = {}
    for path in wanted:
        keys = tuple(path.strip("/").split("/"))
        changes[keys] = _part(source, keys)
    return edited(old, changes)


def edited(old: str, changes: Mapping[tuple[str, ...], Any]) -> str:
    """`old` with each value put at its path; raises `invalid_manifest` where `old` cannot be read."""
    writer = _yaml()
    writer.preserve_quotes = True
    writer.width = 4096
    writer.indent(mapping=2, sequence=4, offset=2)
    document = _read(writer, old)
    if not isinstance(document, CommentedMap):
        raise DevbayError(
            "invalid_manifest",
            "the manifest is no mapping",
            next="devbay init --force",
            exit_code=WORK_FAILED,
        )
    for keys, value in changes.items():
        here = document
        for key in keys[:-1]:
            if not isinstance(here.get(key), dict):
                here[key] = CommentedMap()
            here = here[key]
        here[keys[-1]] = _styled(value, here.get(keys[-1]))
    output = io.StringIO()
    writer.dump(document, output)
    return output.getvalue()


def _styled(value: Any, old: Any) -> Any:
    """A plain value as the file writes such: lists of words on one line, a mapping as the one it replaces."""
    if type(value) is list:
        words = CommentedSeq(value)
        words.fa.set_flow_style()
        return words
    if type(value) is not dict:
        return value
    mapping = CommentedMap({key: _styled(each, None) for key, each in value.items()})
    if isinstance(old, CommentedMap) and old.fa.flow_style():
        mapping.fa.set_flow_style()
    return mapping


def plain_data(text: str) -> dict[str, Any]:
    """A valid manifest's text as plain mappings, lists and scalars."""
    found: dict[str, Any] = _read(YAML(typ="safe", pure=True), text)
    return found


def _yaml() -> YAML:
    return YAML(typ="rt")


def _read(reader: YAML, text: str) -> Any:
    try:
        return reader.load(io.StringIO(text))
    except (YAMLError, ValueError) as error:
        text = f"the manifest cannot be read: {str(error).splitlines()[0]}"
        raise DevbayError("invalid_manifest", text, next="devbay validate", exit_code=WORK_FAILED) from error


def _part(source: Any, keys: tuple[str, ...]) -> Any:
    value = source
    for place, key in enumerate(keys):
        if not isinstance(value, dict) or key not in value:
            there = ", ".join(map(str, value)) if isinstance(value, dict) else "nothing"
            above = "/".join(keys[:place]) or "the proposal"
            raise DevbayError(
                "unknown_part", f"the proposal has no {'/'.join(keys)}", next=f"{above} holds: {there}"
            )
        value = value[key]
    return value

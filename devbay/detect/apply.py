"""Parts of a proposal taken over into a manifest that exists: the user's order and comments stay."""

from __future__ import annotations

import io
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.error import YAMLError

from devbay.errors import WORK_FAILED, DevbayError


def take_over(old: str, proposed: str, wanted: tuple[str, ...]) -> str:
    """`old` with each part of `proposed` in `wanted` (such as `services/web/env/X`) put in or replaced.

    Raises `unknown_part` with what there is, and `invalid_manifest` where `old` cannot be read.
    """
    writer = YAML(typ="rt")
    writer.preserve_quotes = True
    writer.width = 4096
    writer.indent(mapping=2, sequence=4, offset=2)
    try:
        document = writer.load(io.StringIO(old))
        source = YAML(typ="rt").load(io.StringIO(proposed))
    except (YAMLError, ValueError) as error:
        text = f"the manifest cannot be read: {str(error).splitlines()[0]}"
        raise DevbayError("invalid_manifest", text, next="devbay validate", exit_code=WORK_FAILED) from error
    if not isinstance(document, CommentedMap):
        raise DevbayError(
            "invalid_manifest",
            "the manifest is no mapping",
            next="devbay init --force",
            exit_code=WORK_FAILED,
        )
    for path in wanted:
        _put(document, source, path.strip("/").split("/"))
    output = io.StringIO()
    writer.dump(document, output)
    return output.getvalue()


def _put(document: Any, source: Any, keys: list[str]) -> None:
    value = source
    for place, key in enumerate(keys):
        if not isinstance(value, dict) or key not in value:
            there = ", ".join(map(str, value)) if isinstance(value, dict) else "nothing"
            above = "/".join(keys[:place]) or "the proposal"
            raise DevbayError(
                "unknown_part", f"the proposal has no {'/'.join(keys)}", next=f"{above} holds: {there}"
            )
        value = value[key]
    here = document
    for key in keys[:-1]:
        if not isinstance(here.get(key), dict):
            here[key] = CommentedMap()
        here = here[key]
    here[keys[-1]] = value

"""The names in committed files of variables; their values are never looked at beyond where they end."""

from __future__ import annotations

import posixpath
import re

from pathspec import GitIgnoreSpec

from devbay.detect.files import View, folder_of

MAX_NAMES = 200
_NAME = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_.-]{0,99})\s*(?:[=:]\s*(.*)|$)", re.DOTALL)


def names(view: View, file: str) -> tuple[str, ...]:
    """The variables that `file` sets, if it is there and git does not ignore it.

    What stands inside quotes that go on over lines, or between `BEGIN` and `END` of a key, is a value's.
    """
    if not view.exists(file) or is_ignored(view, file):
        return ()
    found: dict[str, None] = {}
    ends: str | None = None
    for line in view.lines(file):
        if ends is not None:
            ends = None if ends in line else ends
            continue
        match = _NAME.match(line)
        if match is None or match[2] is None:
            continue
        if len(found) < MAX_NAMES:
            found.setdefault(match[1])
        ends = _goes_on(match[2])
    return tuple(found)


def _goes_on(value: str) -> str | None:
    """What ends a value that does not end on its own line."""
    quote = value[:1]
    if quote in ("'", '"', "`") and quote not in value[1:].replace(f"\\{quote}", ""):
        return quote
    return "-----END" if "-----BEGIN" in value and "-----END" not in value else None


def is_ignored(view: View, file: str) -> bool:
    """Whether a `.gitignore` of the view, from its root to the file's folder, leaves `file` out."""
    ignored = False
    folder = folder_of(file)
    parts = [] if folder == "." else folder.split("/")
    for depth in range(len(parts) + 1):
        here = "/".join(parts[:depth])
        lines = view.lines(posixpath.join(here, ".gitignore"))
        told = GitIgnoreSpec.from_lines(lines).check_file(posixpath.relpath(file, here or ".")).include
        ignored = ignored if told is None else told
    return ignored

"""Moving what an install made: texts that name the folder it was made in come to name the one it is in."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from devbay.home import write_private

MAX_BYTES = 1 << 20
NOTE = ".devbay-relocate.json"
LONGEST_FIRST_LINE = 127
"""What every system reads of a script's first line."""

SKIPPED = re.compile(rb"\0")
"""A file with a NUL byte is no text: a path in it cannot be replaced by one of another length."""


def note(root: Path, made_in: Path) -> None:
    """Remember in `root` which texts and links below it name the folder they were made in."""
    needles = _spellings(made_in)
    texts: list[str] = []
    links: list[str] = []
    for parent, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(parent) / name
            if path.is_symlink():
                if needles[0] in os.fsencode(os.readlink(path)):  # noqa: PTH115 - bytes of any kind
                    links.append(str(path.relative_to(root)))
            elif name in files and _is_text_with(path, needles):
                texts.append(str(path.relative_to(root)))
    write_private(root / NOTE, json.dumps({"made_in": str(made_in), "texts": texts, "links": links}))


def relocate(root: Path, noted: Path, moved: Mapping[str, Path]) -> None:
    """Put right the copy `root` of what `note` looked at.

    noted: the folder with the note, of which `root` is the copy. moved: what was below `made_in`, by its
    relative path, to where it is now; the longest that fits counts.
    """
    known = json.loads((noted / NOTE).read_text())
    made_in = known["made_in"]
    pairs = [
        pair
        for old, new in moved.items()
        for pair in zip(_spellings(Path(made_in, old)), _spellings(new), strict=False)
    ]
    pairs.sort(key=lambda pair: -len(pair[0]))

    def put_right(data: bytes) -> bytes:
        for old, new in pairs:
            data = data.replace(old, new)
        return data

    for name in known["links"]:
        path = root / name
        if path.is_symlink():
            target = put_right(os.fsencode(os.readlink(path)))  # noqa: PTH115
            path.unlink()
            path.symlink_to(os.fsdecode(target))
    for name in known["texts"]:
        path = root / name
        if path.is_file() and not path.is_symlink():
            mode = path.stat().st_mode
            path.chmod(mode | 0o200)
            path.write_bytes(_runnable(put_right(path.read_bytes()), list(moved.values())))
            path.chmod(mode)


def _spellings(path: Path) -> tuple[bytes, bytes]:
    """A path as it is, and as it stands in a `file:` URL (`direct_url.json` of an editable install)."""
    return os.fsencode(path), quote(os.fsencode(path)).encode()


def _runnable(data: bytes, folders: Sequence[Path]) -> bytes:
    """A Python script with a first line that systems can read: an interpreter's path that is long or has a
    space in it is started by a shell, in a line that is a text to Python (as pip writes it).
    """
    first, newline, rest = data.partition(b"\n")
    for folder in map(os.fsencode, folders):
        found = re.fullmatch(rb"#!\s*(" + re.escape(folder) + rb"/\S*python\S*)(.*)", first)
        if found and (b" " in found.group(1) or len(first) > LONGEST_FIRST_LINE) and newline:
            program, options = found.groups()
            return b"#!/bin/sh\n'''exec' \"%b\"%b \"$0\" \"$@\"\n' '''\n%b" % (program, options, rest)
    return data


def _is_text_with(path: Path, needles: Sequence[bytes]) -> bool:
    try:
        if not path.is_file() or path.stat().st_size > MAX_BYTES:
            return False
        data = path.read_bytes()
    except OSError:
        return False
    return any(needle in data for needle in needles) and not SKIPPED.search(data)

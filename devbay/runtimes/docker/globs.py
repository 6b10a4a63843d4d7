"""Patterns as `.dockerignore` reads them (moby/patternmatcher): anchored at the root, `*` within a folder,
`**` across folders, `!` takes back, and what matches a folder matches all below it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Pattern:
    """One pattern: its cleaned text, whether it takes back, and the expression for a whole path."""

    text: str
    takes_back: bool
    expression: re.Pattern[str]


class Patterns:
    """An ordered list of patterns; the last one that matches a path, or a folder above it, decides."""

    def __init__(self, patterns: Iterable[Pattern]) -> None:
        self._patterns = tuple(patterns)

    @classmethod
    def of(cls, lines: Iterable[str]) -> Patterns:
        """From patterns, one each; empty ones are left out. Raises ValueError for one that is no pattern."""
        return cls(parsed for line in lines if (parsed := _parse(line)) is not None)

    @classmethod
    def from_ignore_file(cls, text: str) -> Patterns:
        """From the text of an ignore file: `#` starts a comment only at the very start of a line."""
        lines = text.removeprefix("\ufeff").splitlines()
        return cls.of(line for line in lines if not line.startswith("#"))

    @property
    def takes_back(self) -> bool:
        return any(pattern.takes_back for pattern in self._patterns)

    def match(self, path: str) -> bool:
        """Whether the path (relative, `/`) is matched, by itself or through a folder above it."""
        prefixes = [path, *_parents(path)]
        matched = False
        for pattern in self._patterns:
            # a pattern that would not change the answer needs no look
            if pattern.takes_back == matched and any(map(pattern.expression.match, prefixes)):
                matched = not pattern.takes_back
        return matched

    def may_take_back_below(self, folder: str) -> bool:
        """Whether something below a matched folder may still be taken back, so that it has to be walked."""
        for pattern in self._patterns:
            if not pattern.takes_back:
                continue
            fixed = re.split(r"[*?\[\\]", pattern.text, maxsplit=1)[0]
            if fixed != pattern.text:
                fixed = fixed.rpartition("/")[0]
            if not fixed or f"{fixed}/".startswith(f"{folder}/") or f"{folder}/".startswith(f"{fixed}/"):
                return True
        return False


def _parents(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:size]) for size in range(1, len(parts))]


def _parse(line: str) -> Pattern | None:
    text = line.strip()
    takes_back = text.startswith("!")
    text = text[1:].strip() if takes_back else text
    if not text:
        if takes_back:
            raise ValueError("`!` alone is no pattern")
        return None
    # Go's filepath.Clean on a rooted path: `..` ends at the root, slashes at both ends do not matter
    text = posixpath.normpath("/" + text).lstrip("/")
    if not text:  # `.` and `/` are ignored for historical reasons (Dockerfile reference)
        return None
    try:
        return Pattern(text, takes_back, re.compile(_expression(text)))
    except re.error as error:
        raise ValueError(f"`{line.strip()}` is no pattern: {error}") from error


def _expression(text: str) -> str:
    out, place = "", 0
    while place < len(text):
        char, place = text[place], place + 1
        if char == "*" and text[place : place + 1] == "*":
            place += 1
            if text[place : place + 1] == "/":
                place += 1
            out += "(?:.*/)?" if place < len(text) else ".*"
        elif char == "*":
            out += "[^/]*"
        elif char == "?":
            out += "[^/]"
        elif char == "[":
            end = text.find("]", place + 1)
            if end < 0:
                raise ValueError(f"`{text}` is no pattern: `[` without `]`")
            out += "[" + text[place:end].replace("[", r"\[") + "]"
            place = end + 1
        elif char == "\\" and place < len(text):
            out += re.escape(text[place])
            place += 1
        else:
            out += re.escape(char)
    return out + r"\Z"

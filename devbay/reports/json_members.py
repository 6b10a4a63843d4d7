"""The members of a JSON report, one at a time, so that a large one never is in memory as a whole.

Package managers and test code print around a report: what comes before its opening and after its end is not
read. A report that is cut off yields what was complete.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from devbay.reports.source import Source

MAX_MEMBER = 16 * 1024 * 1024
MAX_DEPTH = 400
_KEPT = 64 * 1024
_TOKEN = re.compile(r'["\[\]{},]')
_STRING_END = re.compile(r'["\\]')


class Members:
    """Iterates over (key, value) of the report's object; of an array over (key, element) for each element.

    opening: matches the report's start, from its brace on. Several reports in one source follow each other.
    After the iteration: `seen` (an opening was found), `complete`, `problem` (what was wrong, in words).
    """

    def __init__(self, source: Source, opening: re.Pattern[str]) -> None:
        self.seen = False
        self.complete = True
        self.problem: str | None = None
        self._pieces = source.text()
        self._opening = opening
        self._text = ""
        self._start = self._at = 0

    def __iter__(self) -> Iterator[tuple[str, object]]:
        while self.problem is None and self._find():
            self.seen, self.complete = True, False
            yield from self._object()

    def _more(self) -> bool:
        """Read on, and forget what comes before the member that is being read."""
        piece = next(self._pieces, None)
        if piece is None:
            return False
        self._text = self._text[self._start :] + piece
        self._start, self._at = 0, self._at - self._start
        if len(self._text) > MAX_MEMBER:
            self.problem = f"a member of it is longer than {MAX_MEMBER} characters"
        return self.problem is None

    def _find(self) -> bool:
        """Go to just behind the brace of the next report."""
        while True:
            if match := self._opening.search(self._text, self._at):
                self._start = self._at = self._text.index("{", match.start()) + 1
                return True
            self._start = self._at = max(self._at, len(self._text) - _KEPT)
            if not self._more():
                return False

    def _object(self) -> Iterator[tuple[str, object]]:
        depth, array = 1, ""  # array: the key of the array whose elements are being read
        while mark := self._mark():
            if mark == '"':
                continue
            if mark in "[{":
                if mark == "[" and depth == 1 and (array := self._key_of_array()):
                    self._start = self._at
                depth += 1
                if depth > MAX_DEPTH:
                    self.problem = f"it nests deeper than {MAX_DEPTH}"
                    return
                continue
            if depth > (2 if array else 1):
                depth -= mark != ","
                continue
            ended = self._text[self._start : self._at - 1].strip()
            self._start = self._at
            if ended:
                yield from self._value(array, ended) if array else self._pair(ended)
            if self.problem:
                return
            if mark != ",":
                depth, array = depth - 1, ""
            if depth == 0:
                self.complete = True
                return

    def _mark(self) -> str:
        """The next structural character, `"` for a whole string; empty at the end of the source."""
        while True:
            if match := _TOKEN.search(self._text, self._at):
                self._at = match.end()
                if match[0] != '"':
                    return match[0]
                return '"' if self._string() else ""
            self._at = len(self._text)
            if not self._more():
                return ""

    def _string(self) -> bool:
        """Go behind the end of a string."""
        while True:
            match = _STRING_END.search(self._text, self._at)
            if match and match[0] == '"':
                self._at = match.end()
                return True
            if match and match.end() < len(self._text):
                self._at = match.end() + 1
                continue
            self._at = match.start() if match else len(self._text)
            if not self._more():
                return False

    def _key_of_array(self) -> str:
        match = re.fullmatch(r'\s*"([^"\\]{1,200})"\s*:\s*', self._text[self._start : self._at - 1])
        return match[1] if match else ""

    def _pair(self, text: str) -> Iterator[tuple[str, object]]:
        match = re.match(r'"([^"\\]{0,200})"\s*:', text)
        if match:
            yield from self._value(match[1], text[match.end() :])

    def _value(self, key: str, text: str) -> Iterator[tuple[str, object]]:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            self.problem = f"it is not JSON near {text[:40]!r}: {str(error)[:100]}"
            return
        yield key, value


def text(value: object) -> str:
    """A member that should be text; empty if it is not."""
    return value if isinstance(value, str) else ""


def mapping(value: object) -> dict[str, object]:
    """A member that should be an object; empty if it is not."""
    return value if isinstance(value, dict) else {}


def sequence(value: object) -> list[object]:
    """A member that should be an array; empty if it is not."""
    return value if isinstance(value, list) else []


def number(value: object) -> int | None:
    """A member that should be a number, rounded; None if it is none or not finite."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e15:
        return None
    return round(value)

"""JSON documents in a text, walked without holding one in memory: arrays and lines of objects of any length.

Lines that are no JSON may stand before, between and after documents. Only what the caller does not descend
into is decoded, one value at a time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator

MAX_VALUE = 8 * 1024 * 1024
"""Characters of one decoded value; a longer one is passed over."""
MAX_SCALAR = 10_000

Path = tuple[str | int, ...]
END: Path = ("\0end",)
"""The path of the event after each document."""

_START = re.compile(r"^[ \t\ufeff]*(?=\[\s*(?:\{|\])|\[\s*$|\{\s*(?:\"|\}|$))", re.MULTILINE)
_SPACE = re.compile(r"[ \t\r\n]*")
_MARK = re.compile(r'["{}\[\]]')
_REST = re.compile(r'(?:[^"\\]++|\\.)*+"', re.DOTALL)
_SCALAR = re.compile(r"[-+.\w]+")


class _Broken(Exception):
    """The text is no JSON here, or ends inside a document."""


class Walk:
    """Iterates over (path, value) of all documents, then (END, None) for each.

    descends: whether the container at a path is walked (its members come one by one) or decoded as a whole.
    Afterwards: `seen` (a document began), `complete`, `skipped` (values that were too long).
    """

    def __init__(self, pieces: Iterable[str], descends: Callable[[Path], bool]) -> None:
        self.seen = False
        self.complete = True
        self.skipped = 0
        self._pieces = iter(pieces)
        self._descends = descends
        self._text = ""
        self._at = 0

    def __iter__(self) -> Iterator[tuple[Path, object]]:
        while self._find():
            first = not self.seen
            self.seen = True
            try:
                yield from self._value(())
                self.complete = True if first else self.complete
            except _Broken:
                self.complete = False
                self._next_line()
            yield END, None

    def _more(self) -> bool:
        """Read on; what was taken is forgotten, so positions change."""
        piece = next(self._pieces, None)
        if piece is None:
            return False
        self._text, self._at = self._text[self._at :] + piece, 0
        return True

    def _find(self) -> bool:
        """Go to the start of the next document, which begins a line."""
        while True:
            match = _START.search(self._text, self._at)
            if match and len(self._text) - match.end() > 64:
                self._at = match.end()
                return True
            cut = match.start() if match else self._text.rfind("\n", self._at) + 1
            self._at = max(self._at, cut)
            if not match and len(self._text) - self._at > MAX_VALUE:
                self._at = len(self._text)  # a line without end
            if not self._more():
                if match := _START.search(self._text, self._at):
                    self._at = match.end()
                return match is not None

    def _next_line(self) -> None:
        end = self._text.find("\n", self._at)
        self._at = len(self._text) if end < 0 else end

    def _peek(self) -> str:
        """The next character that is no space."""
        while True:
            self._at = _SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]  # matches always
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                raise _Broken

    def _expect(self, marks: str) -> str:
        mark = self._peek()
        if mark not in marks:
            raise _Broken
        self._at += 1
        return mark

    def _value(self, path: Path) -> Iterator[tuple[Path, object]]:
        mark = self._peek()
        if mark not in "[{" or not self._descends(path):
            text = self._raw()
            if text is None:
                self.skipped += 1
                return
            try:
                yield path, json.loads(text, strict=False)
            except (ValueError, RecursionError) as error:
                raise _Broken from error
            return
        self._at += 1
        closing = "]" if mark == "[" else "}"
        if self._peek() == closing:
            self._at += 1
            return
        index = 0
        while True:
            key: str | int = index
            if mark == "{":
                key = self._key()
            yield from self._value((*path, key))
            index += 1
            if self._expect("," + closing) == closing:
                return

    def _key(self) -> str:
        if self._peek() != '"':
            raise _Broken
        text = self._raw()
        self._expect(":")
        try:
            return str(json.loads(text or '""', strict=False))
        except ValueError as error:
            raise _Broken from error

    def _raw(self) -> str | None:
        """The text of the value that starts here; None if it is too long to keep."""
        if self._text[self._at] not in '"{[':
            return self._scalar()
        parts: list[str] = []
        size = depth = 0
        quoted = False
        while True:
            start = self._at
            done, depth, quoted = self._scan(depth, quoted)
            size += self._at - start
            if size <= MAX_VALUE:
                parts.append(self._text[start : self._at])
            else:
                parts.clear()
            if done:
                return "".join(parts) if size <= MAX_VALUE else None
            if not self._more():
                raise _Broken

    def _scalar(self) -> str:
        """The text of a number or a name; JSON has none of more than a few hundred characters."""
        while True:
            match = _SCALAR.match(self._text, self._at)
            if match is None or len(match[0]) > MAX_SCALAR:
                raise _Broken
            if match.end() < len(self._text) or not self._more():
                break
        self._at += len(match[0])
        return match[0]

    def _scan(self, depth: int, quoted: bool) -> tuple[bool, int, bool]:
        """Go to the value's end or the text's: whether it is the value's, depth, whether in a string."""
        text = self._text
        while True:
            if quoted:
                end = _REST.match(text, self._at)
                if end is None:
                    # an escape may be cut in two: leave it for the next piece
                    stop = len(text) - (len(text) - len(text.rstrip("\\"))) % 2
                    self._at = max(self._at, stop)
                    return False, depth, True
                self._at, quoted = end.end(), False
                if depth == 0:
                    return True, 0, False
            mark = _MARK.search(text, self._at)
            if mark is None:
                self._at = len(text)
                return False, depth, False
            self._at = mark.end()
            if mark[0] == '"':
                quoted = True
            elif mark[0] in "{[":
                depth += 1
            else:
                depth -= 1
                if depth <= 0:
                    return True, 0, False

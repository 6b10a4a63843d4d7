"""Printed output as lines that a terminal would show, and pieces of it kept within bounds."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from devbay.reports.plain import overwritten, plain
from devbay.reports.source import Source

MAX_HEAD = 400
MAX_END = 200
MAX_WIDTH = 2_000
"""Of a longer line the start is enough for a message, and no pattern takes long on it."""

_TO_COLUMN = re.compile(r"\x1b\[\d*G")  # CHA (ECMA-48, 8.3.9): what follows overwrites the line
_LEADING = re.compile(r"[ \t]*")


def screen_lines(source: Source) -> Iterator[str]:
    """The lines of a source without escape sequences; of one written several times what was written last."""
    for raw in source.lines():
        line = plain(_TO_COLUMN.sub("\r", raw) if "\x1b" in raw else raw)
        yield (overwritten(line) if "\r" in line else line)[:MAX_WIDTH].rstrip()


def screen_text(head: bytes) -> str:
    """A sample of output as text to search in: without escape sequences, lines ending in newlines."""
    return plain(head.decode("utf-8", "replace"))


@dataclass
class Lines:
    """The lines of one block; of a very long one the start and the end."""

    _head: list[str] = field(default_factory=list)
    _end: deque[str] = field(default_factory=lambda: deque(maxlen=MAX_END))

    def add(self, line: str) -> None:
        if len(self._head) < MAX_HEAD:
            self._head.append(line)
        else:
            self._end.append(line)

    @property
    def all(self) -> list[str]:
        return [*self._head, *self._end]

    @property
    def text(self) -> str:
        return "\n".join(self.all)


def dedented(lines: Sequence[str]) -> str:
    """Lines as text, without the indentation that all of them share and without empty ends."""
    kept = [line for line in lines if line.strip()]
    shared = min((len(_LEADING.match(line)[0]) for line in kept), default=0)  # type: ignore[index]
    return "\n".join(line[shared:] for line in lines).strip("\n").rstrip()

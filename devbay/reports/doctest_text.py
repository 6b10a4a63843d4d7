"""The plain output of doctest, the C++ framework. Source: its `ConsoleReporter`, versions 2.3 to 2.4."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from devbay.answers import Counts
from devbay.reports.plain import plain, shorten
from devbay.reports.records import MAX_FAILURES, Found, Frame, Kind, Parsed, Stop, count
from devbay.reports.source import Source

name = "doctest"
commands: frozenset[str] = frozenset()

MAX_LINES = 100
MAX_WIDTH = 4_000

_RULE = re.compile(r"^={70,}$")
_PLACE = re.compile(r"^(?P<path>\S[^\n]*?)(?::(?P<line>\d+)|\((?P<msvc>\d+)\)):$")
_TITLE = re.compile(r"^(?P<what>TEST SUITE|TEST CASE|DESCRIPTION): +(?P<text>.*)$")
_BLOCK = re.compile(
    r"^(?P<path>\S[^\n]*?)(?::(?P<line>\d+)|\((?P<msvc>\d+)\)): "
    r"(?P<level>FATAL ERROR|ERROR|WARNING|MESSAGE|SUCCESS): ?(?P<text>.*)$"
)
_FORGIVEN = re.compile(
    r"^(?:Allowed to fail so marking it|Failed as expected so marking it|Failed exactly \d+ times as)"
)
_BLAMED = re.compile(
    r"^(?:Should have failed but didn't!|Didn't fail exactly \d+ times|Test case exceeded time limit)"
)
_TOTALS = re.compile(
    r"^\[doctest\] test cases: +\d+ \| +(?P<passed>\d+) passed \| +(?P<failed>\d+) failed"
    r"(?: \| +(?P<skipped>\d+) skipped)?"
)
_THREW = re.compile(r"\bTHREW exception: |^test case THREW|\bCRASHED: ")
_SNIFF = re.compile(
    rb"^(?:\x1b\[[\d;]*m)*\[doctest\](?:\x1b\[[\d;]*m)* (?:doctest version is|test cases: )", re.MULTILINE
)


def sniff(head: bytes) -> bool:
    """Whether a line is doctest's banner or its totals."""
    return _SNIFF.search(head) is not None


def read(source: Source) -> Parsed:
    """The failed assertions, one each, and the totals. Without totals the run ended early."""
    reader = _Reader()
    for raw in source.lines():
        reader.take(plain(raw).rsplit("\r", 1)[-1][:MAX_WIDTH])
    return reader.result()


@dataclass
class _Reader:
    """case: path of names, from the test case through its subcases."""

    suite: str | None = None
    case: list[str] = field(default_factory=list)
    place: tuple[str, int] | None = None
    heading: bool = False
    block: tuple[re.Match[str], list[str]] | None = None
    failures: list[Found] = field(default_factory=list)
    begun: int = 0
    counts: Counts | None = None
    fatal: bool = False

    def take(self, line: str) -> None:
        if _RULE.match(line):
            self._end()
            self.heading, self.suite, self.place = True, None, None
        elif totals := _TOTALS.match(line):
            self._end()
            self.counts = count(int(totals["passed"]), int(totals["failed"]), 0, int(totals["skipped"] or 0))
        elif match := _BLOCK.match(line):
            self._end()
            self.heading = False
            self.block = match, [match["text"]]
        elif self.heading:
            self._head(line)
        elif _FORGIVEN.match(line):
            self._end()
            whole = self.case[:1]
            self.failures = [each for each in self.failures if each.name.split("/")[:1] != whole]
        elif _BLAMED.match(line):
            self._end()
            self._add(
                Found("/".join(self.case), self.suite, message=line, own=self._own(), own_line=self._line())
            )
        elif self.block is not None:
            if line.strip() and len(self.block[1]) < MAX_LINES:
                self.block[1].append(line)
            elif not line.strip():
                self._end()

    def _head(self, line: str) -> None:
        """Where, suite, test case, then its subcases, indented."""
        if title := _TITLE.match(line):
            if title["what"] == "TEST SUITE":
                self.suite = title["text"].strip()
            elif title["what"] == "TEST CASE":
                self.case = [title["text"].strip()]
        elif self.place is None and (place := _PLACE.match(line)):
            self.place = place["path"], int(place["line"] or place["msvc"])
        elif line.startswith("  ") and line.strip():
            self.case.append(line.strip())
        elif not line.strip():
            self.heading = False

    def _end(self) -> None:
        block, self.block = self.block, None
        if block is None or block[0]["level"] not in ("ERROR", "FATAL ERROR"):
            return
        match, lines = block
        kind: Kind = "failure"
        if "CRASHED: " in lines[0]:
            kind, self.fatal = "crash", True
        elif _THREW.search(lines[0]):
            kind = "error"
        frame = Frame(match["path"], int(match["line"] or match["msvc"]))
        message = shorten("\n".join(line.removeprefix("  ") for line in lines), 8_000)
        values = re.search(r"^values: \w+\( (.+?) == (.+?) \)$", message, re.MULTILINE)
        self._add(
            Found(
                "/".join(self.case) or "(unnamed)",
                self.suite,
                kind,
                message=message,
                expected=values[2] if values else None,
                actual=values[1] if values else None,
                frames=(frame,),
                own=self._own(),
            )
        )

    def _add(self, found: Found) -> None:
        if len(self.failures) < MAX_FAILURES:
            self.failures.append(found)

    def _own(self) -> tuple[str, ...]:
        return (self.place[0],) if self.place else ()

    def _line(self) -> int | None:
        return self.place[1] if self.place else None

    def result(self) -> Parsed:
        self._end()
        stopped: Stop | None = "crash" if self.fatal else None
        complete = self.counts is not None or self.fatal
        problem = None if complete else "doctest's totals are missing"
        return Parsed(self.counts, tuple(self.failures), complete, problem, stopped=stopped)

"""cmocka's plain output. Source: cmocka 1.1 (`cmocka.c`), which borrows GoogleTest's marks."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from devbay.reports.plain import plain
from devbay.reports.records import (
    MAX_FAILURES,
    MAX_TESTS,
    Found,
    Frame,
    Kind,
    Outcome,
    Parsed,
    Stop,
    TestCase,
    count,
)
from devbay.reports.source import Source

name = "cmocka"
commands: frozenset[str] = frozenset()

MAX_LINES = 100
MAX_WIDTH = 4_000

_FRAME = re.compile(
    r"^\[==========\] (?:(?P<group>\S+): )?(?:Running \d+ test\(s\)|(?P<ran>\d+) test\(s\) run)\.$"
)
_MARK = re.compile(r"^\[(?P<mark>[A-Z ]{10})\] (?P<rest>.*)$")
_LINE = re.compile(r"^--- (?P<path>\S.*?):(?P<line>\d+): (?:error: )?(?P<text>.*)$")
_SNIFF = re.compile(rb"^\[==========\] (?:\S+: )?(?:Running \d+|\d+) test\(s\)", re.MULTILINE)


def sniff(head: bytes) -> bool:
    """Whether a group of tests starts or ends."""
    return _SNIFF.search(head) is not None


def read(source: Source) -> Parsed:
    """The tests. A test that was started and not ended took the process with it."""
    reader = _Reader()
    for raw in source.lines():
        reader.take(plain(raw).rsplit("\r", 1)[-1][:MAX_WIDTH])
    return reader.result()


@dataclass
class _Reader:
    current: str | None = None
    said: list[str] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    failures: list[Found] = field(default_factory=list)
    tests: list[TestCase] = field(default_factory=list)
    outcomes: dict[Outcome, int] = field(
        default_factory=lambda: {"passed": 0, "failed": 0, "error": 0, "skipped": 0}
    )
    open: bool = False

    def take(self, line: str) -> None:
        if frame := _FRAME.match(line):
            self.open = frame["ran"] is None
            self.current = None
        elif mark := _MARK.match(line):
            self._mark(mark["mark"].strip(), mark["rest"])
        elif self.current is not None and len(self.said) < MAX_LINES and line.strip():
            self.said.append(line)

    def _mark(self, mark: str, rest: str) -> None:
        if mark == "RUN":
            self.current, self.said, self.frames = rest, [], []
        elif self.current is None:
            return  # the list at the end
        elif mark == "LINE":
            if line := _LINE.match(rest):
                self.frames.append(Frame(line["path"], int(line["line"])))
        elif rest == self.current:
            self._end(rest, {"OK": "passed", "SKIPPED": "skipped", "FAILED": "failed"}.get(mark, "error"))  # type: ignore[arg-type]
        elif mark == "ERROR" and len(self.said) < MAX_LINES:
            self.said.append(rest.removeprefix("--- "))

    def _end(self, test: str, outcome: Outcome) -> None:
        self.outcomes[outcome] += 1
        if len(self.tests) < MAX_TESTS:
            self.tests.append(TestCase(test, None, None, None, outcome))
        if outcome in ("failed", "error") and len(self.failures) < MAX_FAILURES:
            kind: Kind = "failure" if outcome == "failed" else "error"
            message = "\n".join(self.said)
            self.failures.append(
                Found(
                    test,
                    None,
                    kind,
                    phase="setup" if "setup failed" in message else None,
                    message=message,
                    frames=tuple(self.frames),
                )
            )
        self.current = None

    def result(self) -> Parsed:
        outcomes = self.outcomes
        stopped: Stop | None = None
        if self.current is not None:
            message = "\n".join(self.said) or "the process ended in this test"
            self.failures.append(Found(self.current, kind="crash", scope="run", message=message))
            stopped = "crash"
        counts = count(outcomes["passed"], outcomes["failed"], outcomes["error"], outcomes["skipped"])
        complete = not self.open or stopped is not None
        problem = "cmocka's last line is missing" if self.open else None
        return Parsed(counts, tuple(self.failures), complete, problem, tuple(self.tests), stopped)

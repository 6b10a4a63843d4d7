"""What `cargo nextest run` prints for people. Source: nexte.st/docs, and output of 0.9.50 to 0.9.100.

Each test is a process of its own, whose output (libtest's, for one test) stands below its result.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from devbay.answers import Counts
from devbay.reports.plain import plain
from devbay.reports.records import MAX_FAILURES, MAX_TESTS, Found, Outcome, Parsed, TestCase, count
from devbay.reports.rust_blocks import describe, member
from devbay.reports.rustc import Diagnostics
from devbay.reports.source import Source

name = "nextest"
commands = frozenset({"nextest", "cargo-nextest"})

MAX_LINES = 300
MAX_WIDTH = 4_000
MAX_KEPT = 32 * 1024 * 1024

_STATUS = r"PASS|FAIL|LEAK|LEAK-FAIL|FL-LEAK|TIMEOUT|TMT|ABORT|SIG[A-Z0-9]+|XFAIL|FLAKY \d+/\d+|SKIP"
_TEST = re.compile(
    rf"^\s*(?:TRY (?P<try>\d+) )?(?P<status>{_STATUS}) \[\s*(?P<seconds>[\d.]+)s\] (?:\(\s*\d+/\d+\) )?"
    r"(?P<binary>\S+) +(?P<test>\S.*)$"
)
_HEAD = re.compile(
    r"^(?:---|─{3,}) (?:TRY \d+ )?STD(?:OUT|ERR): +(?P<binary>\S+) +(?P<test>\S.*?)(?: -{3,}| ─{3,})?$"
)
_INNER = re.compile(r"^  (?:stdout|stderr|output) (?:─{3,}|-{3,})$")
_END = re.compile(r"^(?:─{6,}|-{10,})$|^\s*(?:Cancel+ing due to|SLOW \[|TERMINATING \[|START |Canceling )")
_SUMMARY = re.compile(r"^\s+Summary \[\s*[\d.]+s\] (?P<ran>\d+)(?:/\d+)? tests? run: (?P<parts>.*)$")
_PART = re.compile(r"(\d+) (passed|failed|exec failed|timed out|skipped)")
_SNIFF = re.compile(
    rb"^ ?(?:\x1b\[[\d;]*m| )*Nextest run(?:\x1b\[[\d;]*m)* ID "
    rb"|^(?:\x1b\[[\d;]*m| )*Summary(?:\x1b\[[\d;]*m)* \[ *[\d.]+s\] "
    rb"(?:\x1b\[[\d;]*m)*\d+",
    re.MULTILINE,
)


def sniff(head: bytes) -> bool:
    """Whether a line is nextest's first or its summary."""
    return _SNIFF.search(head) is not None


def read(source: Source) -> Parsed:
    """The tests by their last try. Without the summary the run ended early."""
    reader = _Reader()
    for raw in source.lines():
        reader.take(plain(raw).rsplit("\r", 1)[-1][:MAX_WIDTH])
    return reader.result()


@dataclass
class _Test:
    status: str = ""
    ms: int | None = None
    lines: list[str] = field(default_factory=list)


@dataclass
class _Reader:
    tests: dict[tuple[str, str], _Test] = field(default_factory=dict)
    open: _Test | None = None
    inner: bool = False
    last: _Test | None = None
    build: Diagnostics = field(default_factory=Diagnostics)
    counts: Counts | None = None
    room: int = MAX_KEPT

    def take(self, line: str) -> None:
        if self.counts is not None:
            return
        if test := _TEST.match(line):
            self._test(test)
        elif head := _HEAD.match(line):
            self.open, self.inner = self._get(head["binary"], head["test"]), False
        elif _INNER.match(line):
            self.open, self.inner = self.last, True
        elif summary := _SUMMARY.match(line):
            self._summary(summary)
        elif _END.match(line):
            self.open = None
        elif self.open is not None:
            if len(self.open.lines) < MAX_LINES and self.room >= len(line):
                self.open.lines.append(line.removeprefix("    ") if self.inner else line)
                self.room -= len(line)
        else:
            self.build.take(line)

    def _get(self, binary: str, test: str) -> _Test:
        if len(self.tests) >= MAX_TESTS and (binary, test) not in self.tests:
            return _Test()
        return self.tests.setdefault((binary, test), _Test())

    def _test(self, match: re.Match[str]) -> None:
        test = self._get(match["binary"], match["test"])
        if match["try"] and test.status:
            self.room += sum(map(len, test.lines))
            test.lines.clear()  # the last try counts
        test.status, test.ms = match["status"], round(float(match["seconds"]) * 1000)
        self.last, self.open = test, None

    def _summary(self, match: re.Match[str]) -> None:
        numbers = {what: int(number) for number, what in _PART.findall(match["parts"])}
        failed = numbers.get("failed", 0)
        errors = numbers.get("timed out", 0) + numbers.get("exec failed", 0)
        self.counts = count(numbers.get("passed", 0), failed, errors, numbers.get("skipped", 0))
        self.open = None

    def result(self) -> Parsed:
        failures = self.build.failures()
        history: list[TestCase] = []
        outcomes: dict[Outcome, int] = {"passed": 0, "failed": 0, "error": 0, "skipped": 0}
        folders: dict[str, str] = {}
        for (binary, _), test in self.tests.items():
            if folder := member(test.lines):
                folders.setdefault(binary.partition("::")[0], folder)
        for (binary, title), test in self.tests.items():
            outcome = _outcome(test.status)
            outcomes[outcome] += 1
            history.append(TestCase(title, binary, None, test.ms, outcome))
            if outcome in ("failed", "error") and len(failures) < MAX_FAILURES:
                target = folders.get(binary.partition("::")[0], "") + _target(binary)
                failures.append(_found(describe(title, test.lines, target, binary), test.status))
        counts = self.counts
        if counts is None and self.tests:
            counts = count(outcomes["passed"], outcomes["failed"], outcomes["error"], outcomes["skipped"])
        complete = self.counts is not None or bool(self.build.found)
        problem = None if complete else "nextest's summary is missing"
        return Parsed(counts, tuple(failures), complete, problem, tuple(history))


def _outcome(status: str) -> Outcome:
    if status in ("PASS", "LEAK", "XFAIL") or status.startswith("FLAKY"):
        return "passed"
    if status == "SKIP":
        return "skipped"
    return "error" if status in ("TIMEOUT", "TMT") else "failed"


def _found(found: Found, status: str) -> Found:
    if status in ("TIMEOUT", "TMT"):
        return replace(found, kind="timeout", message="the test ran into nextest's time limit")
    if status == "ABORT" or status.startswith("SIG"):
        message = f"{found.message}\n{status}".strip() if found.frames else f"the test was ended by {status}"
        return replace(found, kind="crash", message=message)
    return found


def _target(binary: str) -> str:
    """The file of a test binary, by nextest's id: `crate`, `crate::test`, `crate::bin/name`."""
    kind, _, inner = binary.partition("::")[2].rpartition("/")
    if kind:
        folder = {"bin": "src/bin", "example": "examples", "bench": "benches"}.get(kind, "tests")
        return f"{folder}/{inner}.rs"
    return f"tests/{inner}.rs" if inner else "src/lib.rs"

"""What `meson test` prints. Source: `mtest.py` of Meson 0.57 to 1.8."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from devbay.reports.c_output import described
from devbay.reports.plain import plain
from devbay.reports.records import MAX_FAILURES, MAX_TESTS, Found, Kind, Outcome, Parsed, TestCase, count
from devbay.reports.source import Source

name = "meson"
commands = frozenset({"meson"})

MAX_LINES = 1_000
MAX_WIDTH = 4_000

_WORDS = r"OK|FAIL|SKIP|EXPECTEDFAIL|UNEXPECTEDPASS|TIMEOUT|ERROR|INTERRUPT|IGNORED"
_TEST = re.compile(
    rf"^\s*(?P<number>\d+)/\d+ (?P<test>\S.*?)\s+(?P<status>{_WORDS})\s+"
    r"(?P<seconds>[\d.]+)\s?s(?:\s+(?P<more>.*))?$"
)
_RULE = re.compile(r"^[―—-]{8,}.*[―—-]{8,}$")
_COUNT = re.compile(
    r"^(?P<what>Ok|Expected Fail|Fail|Unexpected Pass|Skipped|Timeout|Ignored): +(?P<count>\d+)\s*$"
)
_NO_TESTS = re.compile(r"^No (?:suitable )?tests defined\.$")
_SNIFF = re.compile(
    rb"^Full log written to \S+meson-logs"
    rb"|^Ok: +\d+\s*\n(?:Expected Fail|Fail): +\d+|^No (?:suitable )?tests defined\.",
    re.MULTILINE,
)


def sniff(head: bytes) -> bool:
    """Whether a line is of Meson's summary."""
    return _SNIFF.search(head) is not None


def read(source: Source) -> Parsed:
    """The tests. Without the summary the run ended early."""
    reader = _Reader()
    for raw in source.lines():
        reader.take(plain(raw).rsplit("\r", 1)[-1][:MAX_WIDTH])
    return reader.result()


@dataclass
class _Test:
    name: str
    status: str
    more: str
    ms: int
    lines: list[str] = field(default_factory=list)


@dataclass
class _Reader:
    tests: dict[int, _Test] = field(default_factory=dict)
    last: _Test | None = None
    printing: bool = False
    summary: bool = False
    numbers: dict[str, int] = field(default_factory=dict)
    none: bool = False

    def take(self, line: str) -> None:
        if match := _TEST.match(line):
            self.printing = False
            number = int(match["number"])
            if not self.summary and (number in self.tests or len(self.tests) < MAX_TESTS):
                ms = round(float(re.sub(r"\.(?=.*\.)|\.$", "", match["seconds"]) or 0) * 1000)
                self.last = _Test(match["test"], match["status"], match["more"] or "", ms)
                self.tests[number] = self.last
        elif line.startswith("Summary of Failures:"):
            self.summary, self.printing = True, False
        elif total := _COUNT.match(line):
            self.summary, self.printing = True, False
            self.numbers[total["what"]] = int(total["count"])
        elif _NO_TESTS.match(line):
            self.none = True
        elif _RULE.match(line):
            self.printing = not self.printing
        elif self.printing and line not in ("stdout:", "stderr:"):
            self._printed(line)

    def _printed(self, line: str) -> None:
        if self.last is not None and len(self.last.lines) < MAX_LINES:
            self.last.lines.append(line)

    def result(self) -> Parsed:
        failures: list[Found] = []
        history: list[TestCase] = []
        outcomes: dict[Outcome, int] = {"passed": 0, "failed": 0, "error": 0, "skipped": 0}
        for test in self.tests.values():
            outcome = _outcome(test.status)
            outcomes[outcome] += 1
            suite, _, title = test.name.rpartition(" / ")
            history.append(TestCase(title, suite or None, None, test.ms, outcome))
            if outcome in ("failed", "error"):
                failures += _described(test, title, suite or None)[: MAX_FAILURES - len(failures)]
        if self.numbers and not self.tests:
            get = self.numbers.get
            passed, failed = get("Ok", 0), get("Fail", 0) + get("Unexpected Pass", 0)
            skipped = get("Skipped", 0) + get("Expected Fail", 0) + get("Ignored", 0)
            counts = count(passed, failed, get("Timeout", 0), skipped)
        else:
            counts = count(outcomes["passed"], outcomes["failed"], outcomes["error"], outcomes["skipped"])
        complete = bool(self.numbers) or self.none
        problem = None if complete else "Meson's summary is missing"
        known = complete or self.tests
        return Parsed(counts if known else None, tuple(failures), complete, problem, tuple(history))


def _outcome(status: str) -> Outcome:
    if status == "OK":
        return "passed"
    if status in ("SKIP", "EXPECTEDFAIL", "IGNORED"):
        return "skipped"
    return "error" if status in ("TIMEOUT", "ERROR", "INTERRUPT") else "failed"


def _described(test: _Test, title: str, suite: str | None) -> Sequence[Found]:
    kind: Kind = "failure"
    if test.status == "TIMEOUT":
        kind = "timeout"
    elif "killed by signal" in test.more:
        kind = "crash"
    elif test.status in ("ERROR", "INTERRUPT"):
        kind = "error"
    words = {"UNEXPECTEDPASS": "it passed, but was expected to fail"}
    status = test.more or words.get(test.status, test.status)
    return described(title, kind, status, test.lines, suite)

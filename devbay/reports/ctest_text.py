"""CTest's plain output, with what failed tests printed (`--output-on-failure`, `-V`) read in its own format.

Source: `cmCTestTestHandler.cxx` and `cmCTestRunTest.cxx` of CMake 3.10 to 4.0.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from devbay.reports.c_output import described
from devbay.reports.plain import plain
from devbay.reports.records import MAX_FAILURES, MAX_TESTS, Found, Kind, Outcome, Parsed, TestCase, count
from devbay.reports.source import Source

name = "ctest"
commands = frozenset({"ctest"})

MAX_LINES = 1_000
MAX_WIDTH = 4_000
_START = re.compile(r"^\s+Start\s+(?P<number>\d+): (?P<test>.+?)\s*$")
_TEST = re.compile(
    r"^\s*\d+/\d+ Test\s+#(?P<number>\d+): (?P<test>.+?) \.*\s*(?P<status>.*?)\s+"
    r"(?P<seconds>\d+\.\d+) sec\s*(?P<more>.*)$"
)
_PREFIXED = re.compile(r"^(?P<number>\d+): (?P<text>.*)$")
_SUMMARY = re.compile(r"^\d+% tests passed, (?P<failed>\d+) tests? failed out of (?P<total>\d+)$")
_FAILED = re.compile(r"^The following tests FAILED:$")
_UNRUN = re.compile(r"^The following tests did not run:$")
_LISTED = re.compile(r"^\s+(?P<number>\d+) - (?P<test>.+?) \((?P<why>[^()]*)\)(?:\s{2,}.*)?$")
_NONE = re.compile(r"^No tests were found!!!$")
_MISSING = re.compile(r"^(?:Could not find executable|Unable to find executable:?) (?P<path>\S.*)$")
_VERBOSE = re.compile(
    r"^(?:Test command|Working Directory|Environment variables|Test timeout computed)\b|^test \d+$"
)
_SNIFF = re.compile(
    rb"^\s*\d+/\d+ Test\s+#\d+: |^\d+% tests passed, \d+ tests? failed out of \d+|^No tests were found!!!"
    rb"|^Test project \S|^\s+Start\s+\d+: \S",
    re.MULTILINE,
)


def sniff(head: bytes) -> bool:
    """Whether a line is CTest's."""
    return _SNIFF.search(head) is not None


def read(source: Source) -> Parsed:
    """The tests. Without the summary the run ended early."""
    reader = _Reader()
    for raw in source.lines():
        reader.take(plain(raw).rsplit("\r", 1)[-1][:MAX_WIDTH])
    return reader.result()


@dataclass
class _Test:
    number: int
    name: str
    status: str = ""
    ms: int | None = None
    lines: list[str] = field(default_factory=list)

    def outcome(self) -> Outcome:
        status = self.status
        if status == "Passed":
            return "passed"
        if re.search(r"Skipped|Not Run \(Disabled\)|^Disabled$", status):
            return "skipped"
        return "error" if "Not Run" in status else "failed"


@dataclass
class _Reader:
    tests: dict[int, _Test] = field(default_factory=dict)
    started: dict[int, str] = field(default_factory=dict)
    ended: list[int] = field(default_factory=list)
    last: _Test | None = None
    outcomes: dict[Outcome, int] = field(
        default_factory=lambda: {"passed": 0, "failed": 0, "error": 0, "skipped": 0}
    )
    history: list[TestCase] = field(default_factory=list)
    summary: bool = False
    none: bool = False
    list: str = ""
    missing: str | None = None

    def take(self, line: str) -> None:
        if start := _START.match(line):
            self._start(int(start["number"]), start["test"])
        elif test := _TEST.match(line):
            self._test(test)
        elif _SUMMARY.match(line):
            self.summary, self.last = True, None
        elif _NONE.match(line):
            self.none = True
        elif _FAILED.match(line) or _UNRUN.match(line):
            self.list, self.last = ("failed" if _FAILED.match(line) else "unrun"), None
        elif self.list and (listed := _LISTED.match(line)):
            self._listed(listed)
        elif missing := _MISSING.match(line):
            self.missing = missing["path"]
        elif not self.summary:
            self._output(line)

    def _start(self, number: int, test: str) -> None:
        if self.last is not None and number != self.last.number:
            self.last = None
        if len(self.started) < MAX_FAILURES:
            self.started[number] = test

    def _test(self, match: re.Match[str]) -> None:
        number = int(match["number"])
        self.started.pop(number, None)
        status = match["status"].lstrip("*").strip()
        test = self.tests.pop(number, None) or _Test(number, match["test"])
        test.name, test.ms = match["test"], round(float(match["seconds"]) * 1000)
        test.status = f"{status} {match['more']}".strip()
        if self.missing is not None and "Not Run" in status:
            test.lines.append(f"there is no executable {self.missing}")
        self.missing = None
        outcome = test.outcome()
        self.outcomes[outcome] += 1
        if len(self.history) < MAX_TESTS:
            self.history.append(TestCase(test.name, None, None, test.ms, outcome))
        if outcome in ("failed", "error") and len(self.ended) < MAX_FAILURES:
            self.ended.append(number)
            self.tests[number] = test
        self.last = test

    def _listed(self, match: re.Match[str]) -> None:
        """A line of the last list, which names the reason (and is all there is in quiet runs)."""
        number, why = int(match["number"]), match["why"]
        if self.list == "failed" and number not in self.ended:
            if not self.history and len(self.ended) < MAX_FAILURES:
                self.tests[number] = _Test(number, match["test"], why)
                self.ended.append(number)
                self.outcomes[self.tests[number].outcome()] += 1
        elif self.list == "failed" and self.tests[number].status in ("", "Failed"):
            self.tests[number].status = why

    def _output(self, line: str) -> None:
        """What a test printed: with its number before it (`-V`), or after its result."""
        test, text = self.last, line
        if (prefixed := _PREFIXED.match(line)) and int(prefixed["number"]) in self.started:
            number = int(prefixed["number"])
            if number not in self.tests and len(self.tests) < MAX_FAILURES:
                self.tests[number] = _Test(number, self.started[number])
            test, text = self.tests.get(number), prefixed["text"]
            if _VERBOSE.match(text):
                return
        if test is not None and len(test.lines) < MAX_LINES:
            test.lines.append(text)

    def result(self) -> Parsed:
        failures: list[Found] = []
        for number in self.ended:
            failures += _described(self.tests[number])[: MAX_FAILURES - len(failures)]
        cut = not self.summary and not self.none
        if cut and self.started:
            for number, test in list(self.started.items())[:1]:
                printed = self.tests[number].lines if number in self.tests else []
                message = "\n".join(printed[-8:]).strip() or "CTest ended while this test ran"
                failures.append(Found(test, kind="crash", scope="run", message=message))
        outcomes = self.outcomes
        counts = count(outcomes["passed"], outcomes["failed"], outcomes["error"], outcomes["skipped"])
        known = self.history or self.none or self.ended
        return Parsed(
            counts if known else None,
            tuple(failures),
            not cut,
            "CTest's summary is missing" if cut else None,
            tuple(self.history),
        )


def _described(test: _Test) -> Sequence[Found]:
    status = re.sub(r"\*{3,}", " ", test.status).strip() or "Failed"
    return described(test.name, _kind(test.status), status, test.lines)


def _kind(status: str) -> Kind:
    if "Timeout" in status:
        return "timeout"
    if re.search(r"Exception|SEGFAULT|aborted|ILLEGAL|NUMERICAL|OTHER_FAULT|BAD_COMMAND", status):
        return "crash"
    return "error" if "Not Run" in status else "failure"

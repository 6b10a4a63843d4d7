"""GoogleTest's plain output, in full and brief, also of a process that died in a test.

Source: `PrettyUnitTestResultPrinter` and `BriefUnitTestResultPrinter` of GoogleTest 1.8 to 1.17.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from devbay.reports.gtest_blocks import MAX_LINES, PLACE, described, place_of
from devbay.reports.plain import plain, tail
from devbay.reports.records import MAX_FAILURES, MAX_TESTS, Found, Outcome, Parsed, Stop, TestCase, count
from devbay.reports.source import Source

name = "gtest"
commands: frozenset[str] = frozenset()

MAX_WIDTH = 4_000

_MARK = re.compile(r"^(?P<before>.*?)\[(?P<mark>[A-Z =-]{10})\] ?(?P<rest>.*)$")
_TEST = re.compile(r"^(?P<suite>[^\s,.]+)\.(?P<test>[^\s,(]+)(?P<more>,.*?)?(?: \((?P<ms>\d+) ms\))?$")
_SUITE = re.compile(r"^\d+ tests? from (?P<suite>[^\s,]+)(?:, where .*?)?(?P<total> \(\d+ ms total\))?$")
_RAN = re.compile(r"^(?P<count>\d+) tests? from \d+ test (?:suite|case)s? ran\.")
_LISTED = re.compile(r"^(?P<count>\d+) tests?(?:, listed below:|\.)")
_DISABLED = re.compile(r"^\s*YOU HAVE (?P<count>\d+) DISABLED TESTS?$")
_DEATH = re.compile(
    r"^(?:terminate called |Segmentation fault|.*(?:Assertion [`'].*failed|: \d+: .*: Assertion)|Aborted\b"
    r"|==\d+==\s?ERROR: |free\(\): |double free|\*\*\* stack smashing|munmap_chunk|.*runtime error: )"
)
_SNIFF = re.compile(
    rb"^(?:\x1b\[[\d;]*m)*\[(?:=={8}|-{10}| RUN      |       OK |  FAILED  |  PASSED  )\](?:\x1b\[[\d;]*m)* ?"
    rb"(?:Running \d+ tests? from|\d+ tests? from|Global test environment|\S+\.\S|\d+ tests?[.,])",
    re.MULTILINE,
)


def sniff(head: bytes) -> bool:
    """Whether a line is GoogleTest's."""
    return _SNIFF.search(head) is not None


def read(source: Source) -> Parsed:
    """One or more programs' tests; one whose last line is missing ended early."""
    reader = _Reader()
    for raw in source.lines():
        reader.take(plain(raw).rsplit("\r", 1)[-1][:MAX_WIDTH])
    return reader.result()


@dataclass
class _Reader:
    suite: str | None = None
    current: tuple[str, str] | None = None
    in_suite: bool = False
    blocks: list[tuple[tuple[str, int] | None, list[str]]] = field(default_factory=list)
    open: list[str] | None = None
    printed: list[str] = field(default_factory=list)
    failures: list[Found] = field(default_factory=list)
    outcomes: dict[Outcome, int] = field(
        default_factory=lambda: {"passed": 0, "failed": 0, "error": 0, "skipped": 0}
    )
    listed: dict[str, int] = field(default_factory=dict)
    tests: list[TestCase] = field(default_factory=list)
    ran: int = 0
    programs: int = 0
    ended: int = 0
    disabled: int = 0
    marked_disabled: int = 0
    death: list[str] = field(default_factory=list)
    summary: bool = False

    def take(self, line: str) -> None:
        mark = _MARK.match(line)
        if mark and self._mark(mark["mark"], mark["rest"], mark["before"]):
            return
        if disabled := _DISABLED.match(line):
            self.disabled = max(self.disabled, int(disabled["count"]))
        elif place := PLACE.match(line):
            self._place(place)
        elif self.open is not None:
            if len(self.open) < MAX_LINES:
                self.open.append(line)
        else:
            if len(self.printed) < MAX_LINES:
                self.printed.append(line)
        if _DEATH.match(line) or (self.death and len(self.death) < 4 and line.strip()):
            self.death.append(line.strip())

    def _place(self, match: re.Match[str]) -> None:
        if match["what"] == "Skipped":
            if self.current is None:
                self._suite_failed()  # without `RUN` lines, what came before was another's
            self.open = []
            return
        self.open = [match["rest"]] if match["rest"] else []
        self.blocks.append((place_of(match), self.open))

    def _mark(self, mark: str, rest: str, before: str) -> bool:
        """A line with one of GoogleTest's marks; what a test printed may stand before it."""
        word = mark.strip()
        if word not in ("RUN", "OK", "FAILED", "SKIPPED", "DISABLED", "PASSED", "=" * 10, "-" * 10):
            return False
        if before.strip() and self.open is not None:
            self.open.append(before)
        if word == "=" * 10:
            self._frame(rest)
        elif word == "-" * 10:
            self._suite(rest)
        elif word == "RUN" and (test := _TEST.match(rest)):
            self._suite_failed()
            self.current = test["suite"], test["test"]
            self.in_suite = True
        elif self.summary or word in ("PASSED", "DISABLED"):
            self.marked_disabled += word == "DISABLED" and not self.summary
            if listed := _LISTED.match(rest):
                self.listed[word] = self.listed.get(word, 0) + int(listed["count"])
        elif test := _TEST.match(rest):
            self._end(word, test)
        return True

    def _frame(self, rest: str) -> None:
        self._suite_failed()
        self.open = None
        if ran := _RAN.match(rest):
            self.ran += int(ran["count"])
            self.ended += 1
            self.summary = True
        elif rest.startswith("Running "):
            self.programs += 1
            self.summary = False
        self.current = None

    def _suite(self, rest: str) -> None:
        self._suite_failed()
        self.open = None
        self.printed.clear()
        if match := _SUITE.match(rest):
            self.suite = None if match["total"] else match["suite"]
        elif rest.startswith("Global test environment"):
            self.suite = None

    def _end(self, word: str, test: re.Match[str]) -> None:
        suite, case = test["suite"], test["test"]
        outcome: Outcome = {"OK": "passed", "SKIPPED": "skipped"}.get(word, "failed")  # type: ignore[assignment]
        blocks, self.blocks = self.blocks, []
        output = tail("\n".join(self.printed).strip(), 4_000) or None
        if outcome == "failed":
            found = [described(case, suite, place, lines) for place, lines in blocks]
            found = found or [Found(case, suite, message=output or "", output=output)]
            if all(each.kind == "error" for each in found):
                self.outcomes["error"] += 1
                self.outcomes["failed"] -= 1
            self.failures += found[: MAX_FAILURES - len(self.failures)]
        self.outcomes[outcome] += 1
        if len(self.tests) < MAX_TESTS:
            ms = int(test["ms"]) if test["ms"] else None
            self.tests.append(TestCase(case, suite, None, ms, outcome))
        self.current = self.open = None
        self.printed.clear()

    def _suite_failed(self) -> None:
        """Failures outside of a test: a suite's or the environment's set-up or tear-down."""
        blocks, self.blocks = self.blocks, []
        for place, lines in blocks[: MAX_FAILURES - len(self.failures)]:
            suite = self.suite or "(set-up)"
            self.failures.append(described(suite, self.suite, place, lines, scope="suite", phase="setup"))

    def result(self) -> Parsed:
        cut = self.programs > self.ended or (self.current is not None)
        stopped: Stop | None = None
        if cut:
            stopped = "crash" if self.current or self.death else None
            self._died()
        else:
            self._suite_failed()
        outcomes = self.outcomes
        failed = outcomes["failed"] + outcomes["error"]
        skipped = max(outcomes["skipped"], self.listed.get("SKIPPED", 0))
        passed = outcomes["passed"]
        if not cut:
            passed = max(passed, self.listed.get("PASSED", 0))
            skipped = max(skipped, self.ran - passed - failed)
        skipped += max(self.disabled, self.marked_disabled)
        known = self.programs or self.ended or failed or passed
        return Parsed(
            counts=count(passed, outcomes["failed"], outcomes["error"], skipped) if known else None,
            failures=tuple(self.failures[:MAX_FAILURES]),
            complete=not cut or stopped is not None,
            problem="GoogleTest's last line is missing" if cut else None,
            tests=tuple(self.tests),
            stopped=stopped,
        )

    def _died(self) -> None:
        """The process ended in a test: what it said last, and what had failed in it before."""
        if self.current is None:
            self._suite_failed()
            return
        suite, case = self.current
        for place, lines in self.blocks:
            self.failures.append(described(case, suite, place, lines))
        message = "\n".join(self.death) or "the process ended in this test"
        own = tuple(place[0] for place, _ in self.blocks[:1] if place)
        self.failures.append(Found(case, suite, "crash", "run", message=message, own=own))

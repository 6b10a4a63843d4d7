"""JUnit XML in all its dialects, read as a stream.

There is no standard: suites nest or not, test cases stand below `testsuites`, problems are attributes, bodies
or captured output. This module reads the elements; what a problem says is worked out by `junit_dialects`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from devbay.reports.junit_dialects import Case, Problem, Suite, describe, is_checker, restated
from devbay.reports.markup import Token, tokens
from devbay.reports.records import MAX_FAILURES, MAX_TESTS, Found, Outcome, Parsed, TestCase, count
from devbay.reports.source import Source

MAX_DEPTH = 2_000
KEPT_BODY = 200_000
KEPT_OUTPUT = 32_000

name = "junit"
commands: frozenset[str] = frozenset()

_PROBLEMS = frozenset({"failure", "error"})
_OUTPUTS = frozenset({"system-out", "system-err"})
_START = re.compile(
    rb"^[^<\n]{0,3}(?:<[?!][^>]{0,300}>\s*)*(?:\]>\s*)?<(?:\w+:)?test(?:suites?|case)[\s>/]", re.MULTILINE
)


def sniff(head: bytes) -> bool:
    """Whether a line starts with an element of JUnit's (in any text encoding)."""
    return _START.search(head.replace(b"\0", b"")) is not None


def read(source: Source) -> Parsed:
    """The report; of one that is cut off, what was complete and the failure that the cut fell into."""
    reader = _Reader()
    for token in tokens(source.text()):
        if not reader.take(token):
            break
    return reader.result()


@dataclass
class _Text:
    """Text of which only the start (`keep_end`: only the end) is kept."""

    limit: int
    keep_end: bool = False
    parts: list[str] = field(default_factory=list)
    size: int = 0

    def add(self, text: str) -> None:
        if not self.keep_end and self.size >= self.limit:
            return
        self.parts.append(text)
        self.size += len(text)
        if self.keep_end and self.size > 4 * self.limit:
            self.parts = [self.get()]
            self.size = len(self.parts[0])

    def get(self) -> str:
        text = "".join(self.parts)
        return text[-self.limit :] if self.keep_end else text[: self.limit]


class _Reader:
    """The state between tokens: open elements, the open case, and what was found."""

    def __init__(self) -> None:
        self.open: list[str] = []
        self.suites: list[Suite] = []
        self.case: Case | None = None
        self.problem: Problem | None = None
        self.text: _Text | None = None
        self.outputs: dict[str, _Text] = {}
        self.outcomes: dict[Outcome, int] = {"passed": 0, "failed": 0, "error": 0, "skipped": 0}
        self.failures: list[Found] = []
        self.tests: list[TestCase] = []
        self.suite_problems: list[tuple[Suite, Problem]] = []
        self.claimed = self.listed = 0
        self.seen = self.checker = False
        self.why: str | None = None

    def take(self, token: Token) -> bool:
        """Take one token in; False if reading must end."""
        if token.kind == "text":
            if self.text is not None:
                self.text.add(token.text)
        elif token.kind == "start":
            return self._start(token)
        elif token.kind == "end":
            self._end(token.name)
        elif token.kind == "doctype":
            self.why = "it has a document type declaration, which is not read"
            return False
        return True

    def result(self) -> Parsed:
        cut = self._finish()
        passed, failed = self.outcomes["passed"], self.outcomes["failed"]
        counts = count(passed, failed, self.outcomes["error"], self.outcomes["skipped"])
        if self.checker:
            counts = count(failed=len(self.failures))
        complete = self.why is None and not cut
        why = self.why or ("it ends in the middle" if cut else None)
        if not self.seen:
            complete, why = False, self.why or "it holds no JUnit element"
        return Parsed(
            counts=counts,
            failures=tuple(self.failures),
            complete=complete,
            problem=why,
            tests=tuple(self.tests),
            stopped="timeout" if any(_stopped(found) for found in self.failures) else None,
            checker=self.checker,
            hidden=self.claimed if self.claimed and not self.listed else 0,
        )

    def _start(self, token: Token) -> bool:
        tag = token.name
        parent = self.open[-1] if self.open else ""
        if tag in ("testsuite", "testsuites") and self.case is None and parent not in _OUTPUTS | _PROBLEMS:
            self._suite(token)
        elif tag == "testcase" and self.case is None and parent not in _OUTPUTS | _PROBLEMS:
            self.seen = True
            self.case = Case(token.attributes, tuple(self.suites))
            self.outputs = {}
        elif self.case is not None and parent == "testcase":
            self._inside_case(token)
        elif tag in _PROBLEMS and parent == "testsuite" and self.case is None:
            self.problem, self.text = Problem(tag, token.attributes), _Text(KEPT_BODY)
        self.open.append(tag)
        if len(self.open) > MAX_DEPTH:
            self.why = f"its elements nest deeper than {MAX_DEPTH}"
            return False
        if token.closed:
            self._end(tag)
        return True

    def _suite(self, token: Token) -> None:
        self.seen = True
        suite = Suite.of(token.name, token.attributes)
        self.suites.append(suite)
        self.claimed = max(self.claimed, suite.claimed)
        self.checker = self.checker or is_checker(suite)

    def _inside_case(self, token: Token) -> None:
        case, tag = self.case, token.name
        if case is None:
            return
        if tag in _PROBLEMS:
            self.problem, self.text = Problem(tag, token.attributes), _Text(KEPT_BODY)
        elif tag == "skipped":
            case.skipped = True
        elif tag in _OUTPUTS:
            self.text = self.outputs.setdefault(tag, _Text(KEPT_OUTPUT, keep_end=True))

    def _end(self, tag: str) -> None:
        if tag not in self.open:
            return  # text that looked like a tag
        while True:
            closed = self.open.pop()
            self._closed(closed)
            if closed == tag:
                return

    def _closed(self, tag: str) -> None:
        if tag in _PROBLEMS and self.problem is not None and self.text is not None:
            self.problem.text = self.text.get()
            self.listed += 1
            if self.case is not None:
                self.case.problems.append(self.problem)
            elif self.suites:
                self.suite_problems.append((self.suites[-1], self.problem))
            self.problem = self.text = None
        elif tag in _OUTPUTS:
            self.text = None
        elif tag == "testcase" and self.case is not None:
            self._case_ended(self.case)
            self.case = None
        elif tag in ("testsuite", "testsuites") and self.suites and self.case is None:
            self._suite_ended(self.suites.pop())

    def _case_ended(self, case: Case) -> None:
        case.out = "".join(self.outputs[tag].get() for tag in sorted(self.outputs, reverse=True))
        if restated(case):
            return
        outcome = case.outcome()
        for suite in case.suites[-1:]:
            suite.cases += 1
            suite.skipped_cases += outcome == "skipped"
        if outcome in ("failed", "error"):
            for suite in case.suites:
                suite.failing += 1
            for found in describe(case)[: MAX_FAILURES - len(self.failures)]:
                self.failures.append(found)
                self.checker = self.checker or found.scope == "finding"
        self.outcomes[outcome] += 1
        if len(self.tests) < MAX_TESTS:
            self.tests.append(
                TestCase(case.name, case.shown_suite(), case.history_file(), case.duration_ms(), outcome)
            )

    def _suite_ended(self, suite: Suite) -> None:
        """A problem of the suite itself, unless it only repeats that some of its tests failed."""
        if suite.cases:
            self.outcomes["skipped"] += suite.unlisted_skips()
        mine = [problem for owner, problem in self.suite_problems if owner is suite]
        self.suite_problems = [pair for pair in self.suite_problems if pair[0] is not suite]
        for problem in mine if not suite.failing else []:
            case = Case({"name": suite.name}, (suite,), problems=[problem], whole_suite=True)
            self.failures += describe(case)[: MAX_FAILURES - len(self.failures)]

    def _finish(self) -> bool:
        """Close what is open; whether anything was. An open case counts only if its failure was begun."""
        cut = bool(self.open)
        if self.case is not None and self.problem is None and not self.case.problems:
            self.case = None
        while self.open:
            self._closed(self.open.pop())
        return cut


def _stopped(found: Found) -> bool:
    return found.kind == "timeout" and found.message.startswith("panic: test timed out")

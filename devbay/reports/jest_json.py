"""The JSON that Jest (`--json`) and Vitest (`--reporter=json`) write, and others in the same shape.

Source: `@jest/test-result`'s `FormattedTestResults` (Jest 30) and Vitest 4's `JsonReporter`.
"""

from __future__ import annotations

import re
from collections import Counter

from devbay.reports import javascript
from devbay.reports.json_members import Members, mapping, number, sequence, text
from devbay.reports.plain import plain
from devbay.reports.records import MAX_FAILURES, MAX_TESTS, Found, Outcome, Parsed, TestCase, count
from devbay.reports.source import Source

name = "jest-json"
commands: frozenset[str] = frozenset()

_OPENING = re.compile(
    r'\{\s*"(?:num(?:Failed|Passed|Total|Pending|Todo|RuntimeError)Test\w*|success|testResults|openHandles'
    r'|snapshot|coverageMap|startTime|wasInterrupted)"\s*:'
)
_SNIFF = re.compile(rb'"(?:numTotalTests|numFailedTests|numTotalTestSuites)"\s*:')
_FAILED_TO_RUN = re.compile(r"^ {0,4}● Test suite failed to run\n", re.MULTILINE)
_NEXT = re.compile(r"^ {2}● ", re.MULTILINE)
_OUTCOMES: dict[str, Outcome] = {
    "passed": "passed",
    "failed": "failed",
    "pending": "skipped",
    "skipped": "skipped",
    "todo": "skipped",
    "disabled": "skipped",
}


def sniff(head: bytes) -> bool:
    """Whether the bytes hold the totals that only this format has."""
    return _SNIFF.search(head) is not None and b'"testResults"' in head


def read(source: Source) -> Parsed:
    """The report, file by file. Files that did not load count as errors."""
    reader = _Reader()
    members = Members(source, _OPENING)
    for key, value in members:
        if key == "testResults":
            reader.file(mapping(value))
        elif key == "numFailedTests":
            reader.claimed += number(value) or 0
    complete, why = members.complete and members.seen, members.problem
    if not complete and why is None:
        why = "it ends in the middle" if members.seen else "it holds no test results"
    outcomes = reader.outcomes
    return Parsed(
        counts=count(outcomes["passed"], outcomes["failed"], outcomes["error"], outcomes["skipped"]),
        failures=tuple(reader.failures),
        complete=complete and why is None,
        problem=why,
        tests=tuple(reader.tests),
        hidden=reader.claimed if not outcomes["failed"] else 0,
    )


class _Reader:
    def __init__(self) -> None:
        self.failures: list[Found] = []
        self.tests: list[TestCase] = []
        self.outcomes: Counter[Outcome] = Counter()
        self.claimed = 0

    def file(self, result: dict[str, object]) -> None:
        path = text(result.get("name")) or text(result.get("testFilePath"))
        failed = False
        for value in sequence(result.get("assertionResults")) or sequence(result.get("testResults")):
            test = mapping(value)
            outcome = _OUTCOMES.get(text(test.get("status")))
            if outcome is None:
                continue  # `focused` of another test, or of a later version
            self.outcomes[outcome] += 1
            failed = failed or outcome == "failed"
            suite = " › ".join(text(each) for each in sequence(test.get("ancestorTitles")))
            title = text(test.get("title")) or text(test.get("fullName"))
            if len(self.tests) < MAX_TESTS:
                duration = number(test.get("duration"))
                self.tests.append(TestCase(title, suite or None, path or None, duration, outcome))
            if outcome == "failed":
                self._test(test, title, suite, path)
        message = text(result.get("message")) or text(result.get("failureMessage"))
        if text(result.get("status")) == "failed":
            blocks = _FAILED_TO_RUN.split(plain(message))[1:] or ([] if failed else [message])
            for block in blocks:
                self.outcomes["error"] += 1
                said = _NEXT.split(block)[0]
                self._add(javascript.problem(path, said, scope="suite", own=(path,)))

    def _test(self, test: dict[str, object], title: str, suite: str, path: str) -> None:
        messages = [text(each) for each in sequence(test.get("failureMessages"))] or [""]
        line = number(mapping(test.get("location")).get("line"))
        for message in messages:
            self._add(javascript.problem(title, message, suite=suite, own=(path,), own_line=line))

    def _add(self, found: Found) -> None:
        if len(self.failures) < MAX_FAILURES:
            self.failures.append(found)

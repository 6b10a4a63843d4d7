"""Boost.Test's XML log (`--log_format=XML`); its JUnit is read as JUnit."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from devbay.reports.markup import Token, tokens
from devbay.reports.plain import plain, shorten
from devbay.reports.records import (
    MAX_FAILURES,
    MAX_TESTS,
    Found,
    Frame,
    Kind,
    Outcome,
    Parsed,
    TestCase,
    count,
)
from devbay.reports.source import Source

name = "boost-xml"
commands: frozenset[str] = frozenset()

MAX_TEXT = 20_000
_SNIFF = re.compile(rb"<TestLog>\s*<(?:TestSuite|BuildInfo)\b")
_KINDS: dict[str, Kind] = {"Error": "failure", "FatalError": "failure", "Exception": "error"}


def sniff(head: bytes) -> bool:
    """Whether the root element is Boost.Test's log."""
    return _SNIFF.search(head) is not None


def read(source: Source) -> Parsed:
    """The test cases. A log that ends inside a case ended with it."""
    reader = _Reader()
    for token in tokens(source.text()):
        if token.kind == "doctype":
            reader.problem = "it has a document type declaration, which is not read"
            break
        reader.take(token)
    return reader.result()


@dataclass
class _Reader:
    suites: list[str] = field(default_factory=list)
    case: dict[str, str] | None = None
    found: list[Found] = field(default_factory=list)
    problem_tag: str | None = None
    text: list[str] = field(default_factory=list)
    size: int = 0
    open: bool = False
    failures: list[Found] = field(default_factory=list)
    outcomes: dict[Outcome, int] = field(
        default_factory=lambda: {"passed": 0, "failed": 0, "error": 0, "skipped": 0}
    )
    tests: list[TestCase] = field(default_factory=list)
    microseconds: str = ""
    timing: bool = False
    problem: str | None = None

    def take(self, token: Token) -> None:
        if token.kind == "text":
            if self.timing:
                self.microseconds = token.text.strip()
            elif self.problem_tag and self.size < MAX_TEXT:
                self.text.append(token.text)
                self.size += len(token.text)
        elif token.kind == "start":
            self._start(token)
            if token.closed:
                self._end(token.name)
        elif token.kind == "end":
            self._end(token.name)

    def _start(self, token: Token) -> None:
        tag, given = token.name, token.attributes
        if tag == "TestLog":
            self.open = True
        elif tag == "TestSuite" and len(self.suites) < 500:
            self.suites.append(plain(given.get("name", "")))
        elif tag == "TestCase":
            self.case, self.found, self.microseconds = dict(given), [], ""
        elif tag == "TestingTime":
            self.timing = True
        elif tag in _KINDS and self.case is not None:
            self.problem_tag, self.text, self.size = tag, [], 0
            path, line = given.get("file"), _whole(given.get("line"))
            frames = (Frame(path, line),) if path and line else ()
            own = tuple(each for each in (self.case.get("file"),) if each)
            self.found.append(Found(plain(self.case.get("name", "")), self._suite(), frames=frames, own=own))
        elif tag == "LastCheckpoint" and self.problem_tag and self.found and not self.found[-1].frames:
            self._said()
            self.found[-1] = replace(self.found[-1], own_line=_whole(given.get("line")))

    def _said(self) -> None:
        """Give the open problem its text."""
        if self.problem_tag and self.found and not self.found[-1].message:
            message = shorten(plain("".join(self.text)).strip(), 8_000)
            kind = _KINDS[self.problem_tag]
            if re.match(r"memory access violation|signal: |fatal system error", message):
                kind = "crash"
            self.found[-1] = replace(self.found[-1], kind=kind, message=message)

    def _suite(self) -> str | None:
        return "/".join(self.suites[1:]) or None

    def _end(self, tag: str) -> None:
        if tag == self.problem_tag:
            self._said()
            self.problem_tag = None
        elif tag == "TestingTime":
            self.timing = False
        elif tag == "TestSuite" and self.suites:
            self.suites.pop()
        elif tag == "TestLog":
            self.open = False
        elif tag == "TestCase" and self.case is not None:
            outcome: Outcome = "passed"
            if self.case.get("skipped") == "yes":
                outcome = "skipped"
            elif self.found:
                outcome = "failed" if any(each.kind == "failure" for each in self.found) else "error"
            self.outcomes[outcome] += 1
            self.failures += self.found[: MAX_FAILURES - len(self.failures)]
            if len(self.tests) < MAX_TESTS:
                ms = _whole(self.microseconds)
                title, file = plain(self.case.get("name", "")), self.case.get("file")
                took = ms // 1000 if ms is not None else None
                self.tests.append(TestCase(title, self._suite(), file, took, outcome))
            self.case, self.found = None, []

    def result(self) -> Parsed:
        failures = self.failures
        if self.case is not None:
            own = tuple(each for each in (self.case.get("file"),) if each)
            title = plain(self.case.get("name", ""))
            last = Found(title, self._suite(), "crash", "run", message="the log ends in this test", own=own)
            failures = [*failures, *self.found, last]
        outcomes = self.outcomes
        counts = count(outcomes["passed"], outcomes["failed"], outcomes["error"], outcomes["skipped"])
        problem = self.problem or ("it ends in the middle" if self.open else None)
        return Parsed(counts, tuple(failures), not problem, problem, tuple(self.tests))


def _whole(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"\d{1,9}", text) else None

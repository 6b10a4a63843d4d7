"""Mocha's plain output (spec, dot and their like), which Cypress prints too. Source: Mocha 8 to 11."""

from __future__ import annotations

import re
from collections import Counter

from devbay.reports import javascript
from devbay.reports.locate import frames_in
from devbay.reports.plain import overwritten, plain
from devbay.reports.records import MAX_FAILURES, MAX_TESTS, Found, Outcome, Parsed, Scope, TestCase, count
from devbay.reports.source import Source

name = "mocha"
commands = frozenset({"mocha", "_mocha", "cypress"})

KEPT_LINES = 2_000
_TOTAL = re.compile(r"^ {1,4}(?P<number>\d+) (?P<word>passing|failing|pending)(?: \([^)]+\))?$")
_BLOCK = re.compile(r"^ {2}(?P<number>\d+)\) (?P<title>.*)$")
_PASSED = re.compile(r"^(?P<indent> {2,})[✔✓√] (?P<name>.+?)(?: \(\d+ms\))?$")
_PENDING = re.compile(r"^(?P<indent> {2,})- (?P<name>.+)$")
_FAILED = re.compile(r"^(?P<indent> {2,})\d+\) (?P<name>.+)$")
_SUITE = re.compile(r"^(?P<indent>(?: {2})+)(?P<name>\S.*)$")
_EXCEPTION = re.compile(r"^ ?(?:Exception during run: ?|✖ ERROR: ?)(?P<text>.*)$")
_NONE = re.compile(r"^ ?(?:✖ ERROR: )?(?P<text>(?:Error: )?No (?:test|spec) files found.*)$")
_SNIFF = re.compile(
    r"^ {2}\d+ passing \(|^ ?Exception during run:|^ ?(?:✖ ERROR: )?Error: No test files found", re.MULTILINE
)


def sniff(head: bytes) -> bool:
    return _SNIFF.search(javascript.printed(head)) is not None


def read(source: Source) -> Parsed:
    """What Mocha said. A hook that failed counts as a failure, as in Mocha's own totals."""
    reader = _Reader()
    for line in source.lines():
        reader.take(overwritten(plain(line)).rstrip())
    return reader.result()


class _Reader:
    def __init__(self) -> None:
        self.totals: Counter[str] = Counter()
        self.ended = self.none = False
        self.block: list[str] | None = None
        self.failures: list[Found] = []
        self.exception: list[str] = []
        self.suites: list[tuple[int, str]] = []
        self.tests: list[TestCase] = []
        self.marks: Counter[Outcome] = Counter()

    def take(self, line: str) -> None:
        if match := _TOTAL.match(line):
            self._close()
            self.totals[match["word"]] += int(match["number"])
            self.ended = True
        elif match := _NONE.match(line):
            self.none = True
            self.failures.append(javascript.problem("(run)", match["text"], scope="run"))
        elif match := _EXCEPTION.match(line):
            self.exception = [match["text"]]
        elif self.exception:
            if len(self.exception) < KEPT_LINES:
                self.exception.append(line)
        elif self.ended and (match := _BLOCK.match(line)):
            self._close()
            self.block = [match["title"]]
        elif self.block is not None:
            if len(self.block) < KEPT_LINES:
                self.block.append(line)
        elif not self.ended or self.suites:
            self._tree(line)

    def _tree(self, line: str) -> None:
        for pattern, outcome in ((_PASSED, "passed"), (_PENDING, "skipped"), (_FAILED, "failed")):
            if match := pattern.match(line):
                self._inside(len(match["indent"]))
                self.marks[outcome] += 1  # type: ignore[index]
                if len(self.tests) < MAX_TESTS:
                    suite = " ".join(title for _, title in self.suites) or None
                    self.tests.append(TestCase(match["name"], suite, None, None, outcome))  # type: ignore[arg-type]
                return
        if match := _SUITE.match(line):
            self._inside(len(match["indent"]))
            self.suites = [*self.suites, (len(match["indent"]), match["name"])][-50:]

    def _inside(self, indent: int) -> None:
        while self.suites and self.suites[-1][0] >= indent:
            self.suites.pop()

    def _close(self) -> None:
        if self.block is not None and len(self.failures) < MAX_FAILURES:
            self.failures.append(_described(self.block))
        self.block = None

    def result(self) -> Parsed:
        self._close()
        failures = self.failures
        if self.exception:
            failures.append(_not_loaded("\n".join(self.exception)))
        complete = self.ended or self.none or bool(self.exception)
        if not (complete or self.tests):
            return Parsed(counts=None)  # another of its commands, or nothing of it was printed
        totals, marks = self.totals, self.marks
        counts = count(totals["passing"], totals["failing"], 0, totals["pending"]) if self.ended else None
        if counts is None and self.none:
            counts = count()
        if not complete:
            counts = count(marks["passed"], marks["failed"], 0, marks["skipped"]) if marks else None
            failures = [javascript.problem(test.name, "", suite=test.suite) for test in self.tests
                        if test.outcome == "failed"]  # fmt: skip
            failures.append(javascript.died("Mocha", bool(self.tests)))
        return Parsed(
            counts=counts,
            failures=tuple(failures),
            complete=complete,
            problem=None if complete else "Mocha's summary is missing",
            tests=tuple(self.tests),
            stopped=None if complete else "crash",
        )


def _described(lines: list[str]) -> Found:
    """A failure: its titles, one a line and the last with a colon, then the error."""
    titles: list[str] = []
    at = 0
    for at, line in enumerate(lines):  # noqa: B007
        titles.append(line.strip())
        if line.endswith(":") or not line.strip():
            break
    *suites, leaf = [title for title in titles if title] or [""]
    leaf = leaf.removesuffix(":")
    scope: Scope = "suite" if javascript.hook_phase(leaf) else "test"
    return javascript.problem(leaf, "\n".join(lines[at + 1 :]), suite=" ".join(suites), scope=scope)


def _not_loaded(text: str) -> Found:
    """An error outside all tests: the run did not begin."""
    return javascript.problem("(run)", text, scope="run", frames=frames_in(text))

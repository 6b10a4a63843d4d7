"""Vitest's plain output, of any reporter, and its annotations for GitHub. Source: Vitest 1 to 4."""

from __future__ import annotations

import re
from collections import Counter
from urllib.parse import unquote

from devbay.answers import Counts
from devbay.reports import javascript
from devbay.reports.plain import overwritten, plain
from devbay.reports.records import (
    MAX_FAILURES,
    MAX_TESTS,
    Found,
    Outcome,
    Parsed,
    Scope,
    TestCase,
    add_counts,
    count,
)
from devbay.reports.source import Source

name = "vitest"
commands = frozenset({"vitest"})

KEPT_LINES = 2_000
_HEADER = re.compile(r"^ FAIL {2}(?P<title>(?:\|[^|]+\| +)?[^\s>]+\.\w+(?: > .*| \[ .*)?)$")
_RULE = re.compile(r"^⎯{2,}(?: *(?P<title>[A-Z][\w ]+?) *⎯+|\[\d+/\d+\]⎯*)?⎯*$")
_TESTS = re.compile(r"^ *Tests +(?P<counts>\d.*|no tests)$")
_END = re.compile(r"^ *(?:Test Files|Start at|Duration|Snapshots|Errors) +\S")
_COUNTED = re.compile(r"(\d+) (failed|passed|skipped|todo|expected fail)")
_NONE = re.compile(r"^ *No test (?:files|suite) found, exiting with code|^ *No test files found")
_RESULT = re.compile(r"^ {0,4}(?P<mark>[✓×↓□✗]) (?P<title>(?:\|.+?\| )?\S+\.\w+ > .+?)(?: +[\d.]+ ?m?s)?$")
_NOTE = re.compile(
    r"^::error file=(?P<path>[^,]*),(?:title=(?P<title>.*?),)?line=(?P<line>\d+).*?::(?P<text>.*)$"
)
_PROJECT = re.compile(r"^\|[^|]+\| +")
_SNIFF = re.compile(
    r"^ {0,2}(?:RUN|DEV) +v\d+\.\d"
    r"|^ *Test Files +\d+ (?:failed|passed|skipped)|^⎯+ Failed (?:Tests|Suites) \d+"
    r"|^::error file=[^\n]*title=[^\n]* > [^\n]*%0A ❯ |^ *No test files found, exiting",
    re.MULTILINE,
)
_MARKS: dict[str, Outcome] = {"✓": "passed", "×": "failed", "✗": "failed", "↓": "skipped", "□": "skipped"}


def sniff(head: bytes) -> bool:
    return _SNIFF.search(javascript.printed(head)) is not None


def read(source: Source) -> Parsed:
    """What Vitest said. Files that did not load count as errors."""
    reader = _Reader()
    for line in source.lines():
        reader.take(overwritten(plain(line)))
    return reader.result()


class _Reader:
    def __init__(self) -> None:
        self.titles: list[str] = []
        self.block: list[str] | None = None
        self.loose = False
        self.failures: list[Found] = []
        self.notes: list[Found] = []
        self.counts: Counts | None = None
        self.none = self.started = self.ended = False
        self.tests: list[TestCase] = []

    def take(self, line: str) -> None:
        if match := _HEADER.match(line):
            if any(each.strip() for each in self.block or []):
                self._close()
            self.titles.append(match["title"])
            self.block = []
        elif match := _RULE.match(line):
            self._close()
            if (match["title"] or "").startswith(("Unhandled", "Uncaught")):
                self.loose, self.block = True, []
        elif match := _TESTS.match(line):
            self._close()
            self._summary(match["counts"])
        elif _END.match(line):
            self._close()
        elif _NONE.match(line):
            self.none = True
        elif match := _NOTE.match(line):
            self._note(match)
        elif self.block is not None:
            if len(self.block) < KEPT_LINES:
                self.block.append(line)
        elif match := _RESULT.match(line):
            self._test(match)
        elif re.match(r"^ {0,2}(?:RUN|DEV) +v\d", line):
            self.started = True

    def _test(self, match: re.Match[str]) -> None:
        file, suites, leaf = _split(match["title"])
        if len(self.tests) < MAX_TESTS:
            suite = " > ".join(suites) or None
            self.tests.append(TestCase(leaf, suite, file, None, _MARKS[match["mark"]]))

    def _summary(self, text: str) -> None:
        numbers: Counter[str] = Counter()
        for number, word in _COUNTED.findall(text):
            numbers[word] += int(number)
        passed = numbers["passed"] + numbers["expected fail"]
        skipped = numbers["skipped"] + numbers["todo"]
        self.counts = add_counts([self.counts, count(passed, numbers["failed"], 0, skipped)])
        self.ended = True

    def _close(self) -> None:
        """The end of a block: one error of one or more tests, or of none."""
        text = "\n".join(self.block or [])
        if self.loose and text.strip():
            text = re.sub(r"^\s*Vitest caught \d+ unhandled errors?.*\n(?:This might .*\n)?", "", text)
            if text.strip():
                self._add(javascript.problem("(run)", text, scope="run"))
                self.loose = False
        for title in self.titles:
            self._add(_described(title, text))
        self.titles, self.block = [], [] if self.loose else None

    def _add(self, found: Found) -> None:
        if len(self.failures) < MAX_FAILURES:
            self.failures.append(found)

    def _note(self, match: re.Match[str]) -> None:
        """An annotation; its text is percent-encoded (GitHub's workflow commands)."""
        text, title = unquote(match["text"]), unquote(match["title"] or "")
        if len(self.notes) < MAX_FAILURES and title:
            self.notes.append(_described(title, text))

    def result(self) -> Parsed:
        self._close()
        failures = self.failures or self.notes
        errors = sum(found.scope == "suite" for found in failures)
        counts = self.counts
        if counts is None and self.notes:
            counts = count(failed=len(self.notes) - errors)
        if counts is None and self.none:
            counts = count()
        complete = self.ended or self.none or bool(self.notes)
        if not (complete or self.started or self.tests or failures):
            return Parsed(counts=None)  # another of its commands, or nothing of it was printed
        if not complete:
            failures = [*failures, javascript.died("Vitest", self.started)]
        return Parsed(
            counts=add_counts([counts, count(errors=errors)]) if counts else None,
            failures=tuple(failures),
            complete=complete,
            problem=None if complete else "Vitest's summary is missing",
            tests=tuple(self.tests),
            stopped=None if complete else "crash",
        )


def _split(title: str) -> tuple[str, list[str], str]:
    """(file, suites, test) of `|project| a.test.ts > suite > test`."""
    file, *names = _PROJECT.sub("", title).split(" > ")
    return file, names[:-1], names[-1] if names else ""


def _described(title: str, text: str) -> Found:
    title = re.sub(r" \[ \S.* \]$", "", title)
    file, suites, leaf = _split(title)
    scope: Scope = "test" if leaf else "suite"
    return javascript.problem(leaf or file, text, suite=" > ".join(suites), scope=scope, own=(file,))

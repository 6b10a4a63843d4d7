"""Jest's plain output. Source: `@jest/reporters` of Jest 27 to 30."""

from __future__ import annotations

import re
from collections import Counter

from devbay.answers import Counts
from devbay.reports import javascript
from devbay.reports.paths import looks_like_path
from devbay.reports.plain import overwritten, plain
from devbay.reports.records import (
    MAX_FAILURES,
    MAX_TESTS,
    Found,
    Outcome,
    Parsed,
    TestCase,
    add_counts,
    count,
)
from devbay.reports.source import Source

name = "jest"
commands = frozenset({"jest", "react-scripts", "craco"})

KEPT_LINES = 2_000
_FILE = re.compile(r"^ ?(?P<word>PASS|FAIL) +(?P<rest>\S.*?)(?: \([\d.]+ ?m?s(?:, [^)]*)?\))?$")
_TITLE = re.compile(r"^ {0,4}● +(?P<title>\S.*)$")
_TESTS = re.compile(r"^Tests: +(?P<counts>\d.*)$")
_COUNTED = re.compile(r"(\d+) (failed|passed|skipped|todo|total|pending)")
_RESULT = re.compile(r"^(?P<indent> +)(?P<mark>[✓✕○✎√×]) (?P<name>.+?)(?: \([\d.]+ m?s\))?$")
_DESCRIBE = re.compile(r"^(?P<indent> {2,})(?P<name>\S.*)$")
_END = re.compile(r"^(?:Test Suites: |Snapshots: |Ran all test suites|Summary of all failing tests)")
_NONE = re.compile(r"^No tests found(?:, exiting with code \d| related to files changed)?")
_SNIFF = re.compile(
    r"^(?:Tests|Test Suites): +\d+ (?:failed|passed|skipped|todo|pending|total)|^ {2}● .*\S"
    r"|^No tests found, exiting with code|^(?:PASS|FAIL) +\S+\.(?:test|spec)\.[cm]?[jt]sx?",
    re.MULTILINE,
)
_MARKS: dict[str, Outcome] = {
    "✓": "passed", "√": "passed", "✕": "failed", "×": "failed", "○": "skipped", "✎": "skipped"
}  # fmt: skip


def sniff(head: bytes) -> bool:
    return _SNIFF.search(javascript.printed(head)) is not None


def read(source: Source) -> Parsed:
    """What Jest said. Files that did not load count as errors."""
    reader = _Reader()
    for line in source.lines():
        reader.take(overwritten(plain(line)))
    return reader.result()


class _Reader:
    def __init__(self) -> None:
        self.file = ""
        self.title: str | None = None
        self.block: list[str] = []
        self.blocks: dict[tuple[str, str], list[str]] = {}
        self.counts: Counts | None = None
        self.none = self.ended = False
        self.describes: list[tuple[int, str]] = []
        self.tests: list[TestCase] = []
        self.marks: Counter[Outcome] = Counter()

    def take(self, line: str) -> None:
        if (match := _FILE.match(line)) and (path := _path(match["rest"])):
            self._close()
            self.file = path
            self.describes = []
        elif match := _TITLE.match(line):
            self._close()
            self.title = match["title"].strip()
        elif match := _TESTS.match(line):
            self._close()
            self._summary(match["counts"])
        elif _END.match(line):
            self._close()
        elif _NONE.match(line):
            self.none = True
        elif self.title is not None:
            if len(self.block) < KEPT_LINES:
                self.block.append(line)
        elif match := _RESULT.match(line):
            self._test(match)
        elif match := _DESCRIBE.match(line):
            self._inside(len(match["indent"]))
            self.describes.append((len(match["indent"]), match["name"]))

    def _inside(self, indent: int) -> None:
        while self.describes and self.describes[-1][0] >= indent:
            self.describes.pop()

    def _test(self, match: re.Match[str]) -> None:
        self._inside(len(match["indent"]))
        outcome = _MARKS[match["mark"]]
        title = re.sub(r"^(?:skipped|todo) ", "", match["name"]) if outcome == "skipped" else match["name"]
        self.marks[outcome] += 1
        if len(self.tests) < MAX_TESTS:
            suite = " › ".join(each for _, each in self.describes) or None
            self.tests.append(TestCase(title, suite, self.file or None, None, outcome))

    def _summary(self, text: str) -> None:
        numbers: Counter[str] = Counter()
        for number, word in _COUNTED.findall(text):
            numbers[word] += int(number)
        skipped = numbers["skipped"] + numbers["todo"] + numbers["pending"]
        self.counts = add_counts([self.counts, count(numbers["passed"], numbers["failed"], 0, skipped)])
        self.ended = True

    def _close(self) -> None:
        """The end of a block; Jest repeats all failures after a long run, which is no second failure."""
        if self.title is not None and self.title != "Console" and len(self.blocks) < MAX_FAILURES:
            self.blocks.setdefault((self.file, self.title), self.block)
        self.title, self.block = None, []

    def result(self) -> Parsed:
        self._close()
        failures: list[Found] = []
        errors = crashed = 0
        for (file, title), lines in self.blocks.items():
            found = _described(file, title, "\n".join(lines))
            failures.append(found)
            errors += found.scope == "suite"
            crashed += found.kind == "crash"
        counts = self.counts
        if counts is None and self.none and not failures:
            counts = count()
        if counts is None and self.marks:
            counts = count(self.marks["passed"], self.marks["failed"], 0, self.marks["skipped"])
        complete = self.ended or self.none or any(found.scope == "run" for found in failures)
        if not complete and (failures or counts):
            failures.append(javascript.died("Jest", True))
            crashed = 1
        return Parsed(
            counts=add_counts([counts, count(errors=errors)]) if counts else None,
            failures=tuple(failures),
            complete=complete,
            problem=None if complete else "Jest's summary is missing",
            tests=tuple(self.tests),
            stopped="crash" if crashed else None,
        )


def _path(rest: str) -> str:
    """The file of a result, which a project's name may precede; empty if this is no result."""
    words = rest.split()
    return next((" ".join(words[at:]) for at in (-1, 0) if looks_like_path(" ".join(words[at:]))), "")


def _described(file: str, title: str, text: str) -> Found:
    own = (file,) if file else ()
    if title.startswith("process.exit called with"):
        return javascript.problem("(run)", f"{title}\n{text}", scope="run", kind="crash", own=own)
    if title == "Test suite failed to run":
        return javascript.problem(file, text, scope="suite", own=own)
    if not file:
        return javascript.problem("(run)", f"{title}\n{text}", scope="run")
    *suites, leaf = title.split(" › ")
    return javascript.problem(leaf, text, suite=" › ".join(suites), own=own)

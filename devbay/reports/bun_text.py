"""What `bun test` prints. Source: Bun 1.0 to 1.4; an error stands before the result of its test."""

from __future__ import annotations

import re
from collections import Counter

from devbay.answers import Counts
from devbay.reports import javascript
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

name = "bun"
commands = frozenset({"bunx"})

KEPT_LINES = 2_000
_RESULT = re.compile(
    r"^(?:\((?P<word>pass|fail|skip|todo)\)|(?P<mark>[✓✗»✎])) (?P<title>.+?)(?: \[(?P<ms>[\d.]+)ms\])?$"
)
_FILE = re.compile(r"^(?P<path>\S.*\.[cm]?[jt]sx?):$")
_ERROR = re.compile(r"^(?:error|[A-Z][\w.]*(?:Error|Exception))(?::|$)")
_LATE = re.compile(r"^ +\^ (?P<text>.+)$")
_BETWEEN = re.compile(r"^# Unhandled error between tests$")
_DASHES = re.compile(r"^-{5,}$")
_TOTAL = re.compile(r"^ +(?P<number>\d+) (?P<word>pass|fail|skip|todo|errors?)$")
_RAN = re.compile(r"^Ran (?P<number>\d+) tests? across \d+ files?\.")
_NONE = re.compile(r"^(?:No tests found!|error: .*did not match any test files.*|No test files found.*)")
_SNIFF = re.compile(
    r"^bun test v\d|^\((?:pass|fail|skip|todo)\) \S.*|^Ran \d+ tests? across \d+ files?\. \[", re.MULTILINE
)
_OUTCOMES: dict[str, Outcome] = {
    "pass": "passed", "✓": "passed", "fail": "failed", "✗": "failed",
    "skip": "skipped", "»": "skipped", "todo": "skipped", "✎": "skipped",
}  # fmt: skip


def sniff(head: bytes) -> bool:
    return _SNIFF.search(javascript.printed(head)) is not None


def read(source: Source) -> Parsed:
    """What Bun said. Errors between tests (files that did not load) count as errors."""
    reader = _Reader()
    for line in source.lines():
        reader.take(overwritten(plain(line)))
    return reader.result()


class _Reader:
    def __init__(self) -> None:
        self.file = ""
        self.text: list[str] = []
        self.failures: list[Found] = []
        self.last: tuple[str, str] | None = (
            None  # (title, file) of the failure that the next line may explain
        )
        self.between: list[str] | None = None
        self.totals: Counter[str] = Counter()
        self.counts: Counts | None = None
        self.outcomes: Counter[Outcome] = Counter()
        self.tests: list[TestCase] = []
        self.none = self.ended = self.started = False

    def take(self, line: str) -> None:
        if self.between is not None:
            self._between(line)
        elif match := _RESULT.match(line):
            self._result(match)
        elif match := _FILE.match(line):
            self.file, self.text = match["path"], []
        elif self.last and (match := _LATE.match(line)):
            self._late(match["text"])
        elif _BETWEEN.match(line):
            self.between = []
        elif match := _TOTAL.match(line):
            self.totals[match["word"].replace("errors", "error")] += int(match["number"])
        elif _RAN.match(line):
            self._summary()
        elif _NONE.match(line):
            self.none = True
        elif line.startswith("bun test v"):
            self.started = True
        else:
            self.text.append(line)
            del self.text[:-KEPT_LINES]
            return
        if not _RESULT.match(line):
            self.last = None

    def _result(self, match: re.Match[str]) -> None:
        outcome = _OUTCOMES[match["word"] or match["mark"]]
        *suites, leaf = match["title"].split(" > ")
        self.outcomes[outcome] += 1
        if len(self.tests) < MAX_TESTS:
            ms = round(float(match["ms"])) if match["ms"] and match["ms"].count(".") < 2 else None
            self.tests.append(TestCase(leaf, " > ".join(suites) or None, self.file or None, ms, outcome))
        self.last = None
        if outcome == "failed":
            self.last = (match["title"], self.file)
            self._add(_described(match["title"], self.file, self.text))
        self.text = []

    def _late(self, said: str) -> None:
        """A line below a failure that says why: a time limit, or a `todo` that passed."""
        if self.last and self.failures:
            title, file = self.last
            self.failures[-1] = _described(title, file, [said])

    def _between(self, line: str) -> None:
        if not _DASHES.match(line):
            if self.between is not None and len(self.between) < KEPT_LINES:
                self.between.append(line)
        elif any(each.strip() for each in self.between or []):
            text = "\n".join(_error(self.between or []))
            self._add(javascript.problem(self.file or "(run)", text, scope="suite" if self.file else "run",
                                         kind="error", own=(self.file,) if self.file else ()))  # fmt: skip
            self.between = None

    def _add(self, found: Found) -> None:
        if len(self.failures) < MAX_FAILURES:
            self.failures.append(found)

    def _summary(self) -> None:
        totals = self.totals
        counts = count(totals["pass"], totals["fail"], totals["error"], totals["skip"] + totals["todo"])
        self.counts = add_counts([self.counts, counts])
        self.totals = Counter()
        self.ended = True

    def result(self) -> Parsed:
        failures, outcomes = self.failures, self.outcomes
        complete = self.ended or self.none
        if not (complete or self.tests or self.started):
            return Parsed(counts=None)  # another of its commands, or nothing of it was printed
        counts = self.counts or count(outcomes["passed"], outcomes["failed"], 0, outcomes["skipped"])
        if not complete:
            failures = [*failures, javascript.died("Bun", bool(self.tests))]
        return Parsed(
            counts=counts,
            failures=tuple(failures),
            complete=complete,
            problem=None if complete else "Bun's summary is missing",
            tests=tuple(self.tests),
            stopped=None if complete else "crash",
        )


def _error(lines: list[str]) -> list[str]:
    """The lines from the error on, without the excerpt of code before it."""
    start = next((i for i, line in enumerate(lines) if _ERROR.match(line)), None)
    return lines[start:] if start is not None else [line for line in lines if line.strip()]


def _described(title: str, file: str, lines: list[str]) -> Found:
    *suites, leaf = title.split(" > ")
    own = (file,) if file else ()
    text = "\n".join(_error(lines))
    if leaf == "(unnamed)":  # a hook of the suite, which has no name
        return javascript.problem(
            suites[-1] if suites else file,
            text,
            suite=" > ".join(suites),
            scope="suite",
            phase="setup",
            own=own,
        )
    return javascript.problem(leaf, text, suite=" > ".join(suites), own=own)

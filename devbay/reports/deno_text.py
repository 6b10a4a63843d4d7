"""What `deno test` prints. Source: `cli/tools/test/reporters/pretty.rs` of Deno 1.40 to 2."""

from __future__ import annotations

import re
from collections import Counter

from devbay.answers import Counts
from devbay.reports import javascript
from devbay.reports.locate import frames_in
from devbay.reports.paths import is_library
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

name = "deno"
commands = frozenset({"deno"})

KEPT_LINES = 2_000
_RUNNING = re.compile(r"^running \d+ tests? from (?P<path>\S.*)$")
_RESULT = re.compile(
    r"^(?P<indent> *)(?P<title>\S.*?) \.\.\. (?:.* )?(?P<word>ok|FAILED|ignored|cancelled)(?: \(.*\))?$"
)
_SECTION = re.compile(r"^ (?P<title>ERRORS|FAILURES) $")
_BLOCK = re.compile(r"^(?P<title>\S.*?) => (?P<path>\S.*?):(?P<line>\d+):\d+$")
_UNCAUGHT = re.compile(r"^(?P<path>\S+) \(uncaught error\)$")
_SUMMARY = re.compile(r"^(?:ok|FAILED) \| (?P<counts>\d+ passed.*)$")
_COUNTED = re.compile(r"(\d+) (passed|failed|ignored|measured|filtered out)")
_COMPILE = re.compile(
    r"^(?P<text>TS\d+ \[ERROR\]: .*|error: (?:Module not found |The module's source code"
    r"|(?:\(in promise\) )?(?:Uncaught )?\w*Error: ).*)$"
)
_NONE = re.compile(r"^error: No test modules found")
_END = re.compile(r"^(?:error: (?:Type checking failed|Test failed)|Found \d+ errors?\.)")
_SNIFF = re.compile(
    r"^running \d+ tests? from \S|^(?:ok|FAILED) \| \d+ passed"
    r"|^error: (?:No test modules found|Type checking failed)"
    r"|^TS\d+ \[ERROR\]: |^error: Module not found \"",
    re.MULTILINE,
)
_OUTCOMES: dict[str, Outcome] = {
    "ok": "passed", "FAILED": "failed", "ignored": "skipped", "cancelled": "skipped"
}  # fmt: skip


def sniff(head: bytes) -> bool:
    return _SNIFF.search(javascript.printed(head)) is not None


def read(source: Source) -> Parsed:
    """What Deno said. Steps are part of their test, as in Deno's own totals."""
    reader = _Reader()
    for line in source.lines():
        reader.take(overwritten(plain(line)))
    return reader.result()


class _Reader:
    def __init__(self) -> None:
        self.section = ""
        self.block: tuple[str, str, int | None] | None = None
        self.lines: list[str] = []
        self.file = ""
        self.failures: list[Found] = []
        self.compiling = False
        self.counts: Counts | None = None
        self.outcomes: Counter[Outcome] = Counter()
        self.tests: list[TestCase] = []
        self.none = self.ended = False

    def take(self, line: str) -> None:
        if match := _SUMMARY.match(line):
            self._close()
            self._summary(match["counts"])
        elif match := _SECTION.match(line):
            self._close()
            self.section = match["title"]
        elif _NONE.match(line):
            self.none = True
        elif _END.match(line):
            self._close()
        elif not self.section and (match := _COMPILE.match(line)):
            self._close()
            self.block, self.lines, self.compiling = ("", "", None), [match["text"]], True
        elif self.section == "ERRORS" and (match := _BLOCK.match(line)):
            self._close()
            self.block = (match["title"], match["path"], int(match["line"]))
        elif self.section == "ERRORS" and (match := _UNCAUGHT.match(line)):
            self._close()
            self.block = ("", match["path"], None)
        elif self.block is not None:
            if len(self.lines) < KEPT_LINES:
                self.lines.append(line)
        elif match := _RUNNING.match(line):
            self.file = match["path"]
        elif (match := _RESULT.match(line)) and not match["indent"]:
            self._result(match["title"], _OUTCOMES[match["word"]])

    def _result(self, title: str, outcome: Outcome) -> None:
        self.outcomes[outcome] += 1
        if len(self.tests) < MAX_TESTS:
            self.tests.append(TestCase(title, None, self.file or None, None, outcome))

    def _summary(self, text: str) -> None:
        numbers: Counter[str] = Counter()
        for number, word in _COUNTED.findall(re.sub(r"\([^)]*\)", "", text)):
            numbers[word] += int(number)
        counts = count(numbers["passed"], numbers["failed"], 0, numbers["ignored"])
        self.counts = add_counts([self.counts, counts])
        self.ended, self.section = True, ""

    def _close(self) -> None:
        if self.block is not None and len(self.failures) < MAX_FAILURES:
            self.failures.append(_described(*self.block, "\n".join(self.lines)))
        self.block, self.lines = None, []

    def result(self) -> Parsed:
        self._close()
        failures, outcomes = self.failures, self.outcomes
        complete = self.ended or self.none or self.compiling
        if not (complete or self.file or self.tests or failures):
            return Parsed(counts=None)  # another of its commands, or nothing of it was printed
        counts = self.counts
        if counts is None and self.none:
            counts = count()
        if not complete:
            counts = count(outcomes["passed"], outcomes["failed"], 0, outcomes["skipped"])
            failures = [*failures, javascript.died("Deno", bool(self.tests))]
        return Parsed(
            counts=counts,
            failures=tuple(failures),
            complete=complete,
            problem=None if complete else "Deno's summary is missing",
            tests=tuple(self.tests),
            stopped=None if complete else "crash",
        )


def _described(title: str, path: str, line: int | None, text: str) -> Found:
    text = re.sub(r"^error: (?:Uncaught )?(?:\(in promise\) )?(?=\w*Error)", "", text)
    # The line of code that threw, and a caret below it, come before the stack.
    text = re.sub(r"^.*\n\s+[\^~]+$\n?", "", text, flags=re.MULTILINE)
    if title:
        return javascript.problem(title, text, own=(path,), own_line=line)
    frames = frames_in(text)
    first = next((frame.path for frame in frames if not is_library(frame.path)), "")
    own = tuple(each for each in (path, first) if each)
    return javascript.problem(own[0] if own else "(run)", text, scope="suite" if own else "run", own=own)

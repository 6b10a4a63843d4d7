"""PHPUnit's plain output: progress, sections of numbered problems, testdox. Also ParaTest's.

What one problem says is in `phpunit_blocks`. Source: `TextUI/ResultPrinter.php` of PHPUnit 9, `TextUI/Output`
of PHPUnit 10 to 12.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from devbay.answers import Counts
from devbay.reports.phpunit_blocks import Block, describe, of_the_run
from devbay.reports.records import MAX_FAILURES, Found, Kind, Outcome, Parsed, TestCase, count
from devbay.reports.screen import Lines, screen_lines, screen_text
from devbay.reports.source import Source

name = "phpunit"
commands = frozenset({"phpunit", "paratest", "simple-phpunit"})

_BANNER = re.compile(r"PHPUnit (?P<major>\d+)\.\d+\S* by ")
_SECTION = re.compile(
    r"There (?:was|were) \d+ (?P<what>.+?)s?:|\d+ tests? triggered \d+ .*:|Time: [\d:.]+.*|--"
    r"|ERRORS!|FAILURES!|WARNINGS!|OK, but .*!"
)
_ITEM = re.compile(r"\d+\) (?P<title>.+)")
_TOTALS = re.compile(r"Tests: (?P<ran>\d+), Assertions: \d+(?:, (?P<rest>.*?))?\.")
_OK = re.compile(r"OK \((?P<ran>\d+) tests?, \d+ assertions?\)")
_COUNTED = re.compile(r"([A-Z][A-Za-z ]*): (\d+)")
_PROGRESS = re.compile(r"(?P<marks>[.FEWRSIDN]+)(?: +\d+ / \d+ \( *\d+%\))?")
_FATAL = re.compile(r"(?:PHP )?(?:Fatal error|Parse error): +.+|An error occurred inside PHPUnit\.")
_GROUP = re.compile(r"\S.* \((?P<class>[\w\\]+)\)|\w[\w ]*")
_DOX = re.compile(r" (?P<mark>[✔✘↩∅☢⚠]) (?P<title>.+?)(?: \[[\d.]+ ms\])?")
_DOX_LINE = re.compile(r"   [│┐├┊╵┴] ?(?P<text>.*)")
_KINDS: dict[str, Kind] = {
    "error": "error", "PHPUnit error": "error", "failure": "failure", "PHPUnit test runner warning": "error"
}  # fmt: skip
_OUTCOMES: dict[str, Outcome] = {
    ".": "passed", "F": "failed", "E": "error", "W": "passed", "R": "passed", "D": "passed", "N": "passed",
    "S": "skipped", "I": "skipped",
}  # fmt: skip
_SNIFF = re.compile(
    r"^PHPUnit \d+\.\d+\S* by |^Tests: \d+, Assertions: \d+|^OK \(\d+ tests?, \d+ assertions?\)$"
    r"|\bPHPUnit\\\w+\\",
    re.MULTILINE,
)


def sniff(head: bytes) -> bool:
    """Whether the bytes hold PHPUnit's banner or last line, or a class of its own."""
    return _SNIFF.search(screen_text(head)) is not None


def read(source: Source) -> Parsed:
    """What PHPUnit said. Output without its count of tests is not complete."""
    reader = _Reader()
    for line in screen_lines(source):
        reader.take(line)
    return reader.result()


@dataclass
class _Reader:
    """The state between lines. major: of PHPUnit's version; before 10 a warning was an outcome of a test."""

    major: int = 10
    kind: Kind | None = None
    in_section: bool = False
    blocks: list[Block] = field(default_factory=list)
    block: Block | None = None
    dox: list[Block] = field(default_factory=list)
    told: Block | None = None
    group: str = ""
    marks: Counter[Outcome] = field(default_factory=Counter)
    totals: Counter[str] = field(default_factory=Counter)
    ran: int | None = None
    fatal: Lines | None = None

    def take(self, line: str) -> None:
        if self.fatal is not None:
            self.fatal.add(line)
        if match := _BANNER.match(line):
            self.major = int(match["major"])
        elif match := _OK.fullmatch(line) or _TOTALS.fullmatch(line):
            self._totals(int(match["ran"]), match.groupdict().get("rest") or "")
        elif line == "No tests executed!":
            self._totals(0, "")
        elif match := _SECTION.fullmatch(line):
            self._section(match["what"])
        elif self.in_section and (match := _ITEM.fullmatch(line)):
            self.block = Block(match["title"], kind=self.kind)
            if self.kind and len(self.blocks) < MAX_FAILURES:
                self.blocks.append(self.block)
        elif self.block is not None:
            self.block.lines.add(line)
        elif _FATAL.fullmatch(line) and self.fatal is None:
            self.fatal = Lines()
            self.fatal.add(line)
        elif not self.in_section:
            self._progress(line)

    def _section(self, what: str | None) -> None:
        """A section of numbered problems, or the end of one. Risky and skipped tests fail nothing."""
        self.block = None
        self.in_section = what is not None
        self.kind = _KINDS.get(what or "")
        if what == "warning" and self.major < 10:
            self.kind = "error"

    def _totals(self, ran: int, rest: str) -> None:
        self.ran = (self.ran or 0) + ran
        self.block, self.in_section = None, False
        for what, number in _COUNTED.findall(rest):
            self.totals[what] += int(number)

    def _progress(self, line: str) -> None:
        if match := _PROGRESS.fullmatch(line):
            self.marks.update(_OUTCOMES[mark] for mark in match["marks"])
        elif match := _DOX.fullmatch(line):
            mark = match["mark"]
            self.marks["failed" if mark == "✘" else "skipped" if mark in "↩∅" else "passed"] += 1
            self.told = Block(match["title"], suite=self.group or None) if mark == "✘" else None
            if self.told is not None and len(self.dox) < MAX_FAILURES:
                self.dox.append(self.told)
        elif match := _DOX_LINE.fullmatch(line):
            if self.told is not None:
                self.told.lines.add(match["text"])
        elif match := _GROUP.fullmatch(line):
            self.group = match["class"] or line

    def result(self) -> Parsed:
        """Testdox counts where there are no sections: with both, they tell the same."""
        failures = [describe(block) for block in self.blocks or self.dox]
        run = None
        if self.fatal is not None and self.ran is None:
            run = of_the_run(self.fatal.all, began=bool(self.marks))
        elif self.ran is None:
            message = "the run ended before its count of tests"
            run = Found("phpunit", kind="crash", scope="run", message=message)
        if run is not None:
            failures.append(run)
        return Parsed(
            counts=self._counts(failures),
            failures=tuple(failures),
            complete=self.ran is not None or (run is not None and run.kind == "error"),
            problem=None if self.ran is not None else "PHPUnit's count of tests is missing",
            tests=tuple(
                TestCase(found.name, found.suite, None, None, "error" if found.kind == "error" else "failed")
                for found in failures
                if found.scope == "test"
            ),
        )

    def _counts(self, failures: list[Found]) -> Counts | None:
        if self.ran is None:
            seen = self.marks
            return count(seen["passed"], seen["failed"], seen["error"], seen["skipped"]) if seen else None
        failed, errors = self.totals["Failures"], self.totals["Errors"]
        if self.major < 10:
            errors += self.totals["Warnings"]
        skipped = self.totals["Skipped"] + self.totals["Incomplete"]
        return count(max(0, self.ran - failed - errors - skipped), failed, errors, skipped)

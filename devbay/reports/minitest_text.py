"""Minitest's plain output, also as Rails prints it.

Source: `minitest.rb` and `minitest/test.rb` of Minitest 5 and 6, `rails/test_unit/reporter.rb` of Rails 7.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from devbay.answers import Counts
from devbay.reports.compare import compared
from devbay.reports.locate import frames_in
from devbay.reports.records import (
    MAX_FAILURES,
    MAX_TESTS,
    Found,
    Frame,
    Outcome,
    Parsed,
    Phase,
    TestCase,
    count,
)
from devbay.reports.screen import Lines, dedented, screen_lines, screen_text
from devbay.reports.source import Source

name = "minitest"
commands = frozenset({"minitest"})

_SUMMARY = re.compile(
    r"(?P<ran>\d+) (?:runs|tests), \d+ assertions, (?P<failed>\d+) failures, (?P<errors>\d+) errors"
    r"(?:, (?P<skipped>\d+) skips)?"
)
_HEAD = re.compile(r"(?: +\d+\) )?(?P<word>Failure|Error|Skipped):")
_TITLE = re.compile(r"(?P<suite>\S.*?)#(?P<test>.+?)(?: \[(?P<place>.+?:\d+)\])?:")
_RERUN = re.compile(r"(?:bin/)?(?:rails|rake|test)(?: test)? (?P<path>\S+\.rb):(?P<line>\d+)")
_VERBOSE = re.compile(r"(?P<suite>\S.*?)#(?P<test>\S.*?) =(?: (?P<rest>.*))?")
_TIMED = re.compile(r"(?:.* )?(?P<seconds>\d+\.\d+) s = (?P<mark>[.FES])")
_MARKS = re.compile(r"[.FES]+")
_FRAME = re.compile(r"\s+\S.*:\d+:in [`'].*")
_OUTCOMES: dict[str, Outcome] = {".": "passed", "F": "failed", "E": "error", "S": "skipped"}
_SNIFF = re.compile(
    r"^\d+ (runs|tests), \d+ assertions, \d+ failures, \d+ errors(, \d+ skips)?$"
    r"|^Run options: .*--seed \d+$",
    re.MULTILINE,
)


def sniff(head: bytes) -> bool:
    """Whether the bytes hold Minitest's first or last line."""
    return _SNIFF.search(screen_text(head)) is not None


def read(source: Source) -> Parsed:
    """What Minitest said. Output without its count of runs is not complete."""
    reader = _Reader()
    for line in screen_lines(source):
        reader.take(line)
    return reader.result()


@dataclass
class _Block:
    """A failure or an error. place: where the assertion stands. rerun: where the test is, as Rails has it."""

    word: str
    suite: str
    test: str
    place: str | None
    lines: Lines = field(default_factory=Lines)
    rerun: tuple[str, int] | None = None


@dataclass
class _Reader:
    """The state between lines."""

    blocks: list[_Block] = field(default_factory=list)
    block: _Block | None = None
    head: str | None = None
    seen: dict[tuple[str, str], tuple[Outcome, int | None]] = field(default_factory=dict)
    current: tuple[str, str] | None = None
    marks: Counter[Outcome] = field(default_factory=Counter)
    totals: Counter[str] = field(default_factory=Counter)
    ended: bool = False

    def take(self, line: str) -> None:
        if match := _SUMMARY.fullmatch(line):
            self.ended, self.block, self.current = True, None, None
            for key, value in match.groupdict(default="0").items():
                self.totals[key] += int(value)
        elif match := _HEAD.fullmatch(line):
            self.head, self.block = match["word"], None
        elif self.head and (match := _TITLE.fullmatch(line)):
            self.block = _Block(self.head, match["suite"], match["test"], match["place"])
            if self.head != "Skipped" and len(self.blocks) < MAX_FAILURES:
                self.blocks.append(self.block)
            self.head = None
        elif match := _RERUN.fullmatch(line):
            if self.block is not None:
                self.block.rerun = (match["path"], int(match["line"]))
            self.block = None
        elif self.block is not None:
            self.block.lines.add(line)
        else:
            self._progress(line)

    def _progress(self, line: str) -> None:
        if match := _VERBOSE.fullmatch(line):
            self.current = (match["suite"], match["test"])
            line = match["rest"] or ""
        if match := _TIMED.fullmatch(line):
            self._outcome(match["mark"], float(match["seconds"]))
        elif _MARKS.fullmatch(line):
            self.marks.update(_OUTCOMES[mark] for mark in line)

    def _outcome(self, mark: str, seconds: float) -> None:
        if self.current and len(self.seen) < MAX_TESTS:
            self.seen[self.current] = (_OUTCOMES[mark], round(seconds * 1000))
        self.current = None

    def result(self) -> Parsed:
        failures = [_describe(block) for block in self.blocks]
        if not self.ended:
            suite, test = self.current or (None, "minitest")
            where = "in this test" if suite else "before its count of runs"
            failures.append(
                Found(test, suite=suite, kind="crash", scope="run", message=f"the run ended {where}")
            )
        for block in self.blocks:
            outcome: Outcome = "failed" if block.word == "Failure" else "error"
            self.seen.setdefault((block.suite, block.test), (outcome, None))
        return Parsed(
            counts=self._counts(),
            failures=tuple(failures),
            complete=self.ended,
            problem=None if self.ended else "Minitest's count of runs is missing",
            tests=tuple(
                TestCase(test, suite, None, duration, outcome)
                for (suite, test), (outcome, duration) in self.seen.items()
            ),
        )

    def _counts(self) -> Counts | None:
        if self.ended:
            ran, failed, errors, skipped = (
                self.totals[key] for key in ("ran", "failed", "errors", "skipped")
            )
            return count(max(0, ran - failed - errors - skipped), failed, errors, skipped)
        outcomes = self.marks or Counter(outcome for outcome, _ in self.seen.values())
        if not outcomes:
            return None
        return count(outcomes["passed"], outcomes["failed"], outcomes["error"], outcomes["skipped"])


def _describe(block: _Block) -> Found:
    lines = block.lines.all
    stack = [line for line in lines if _FRAME.fullmatch(line)] if block.word == "Error" else []
    first = next((at for at, line in enumerate(lines) if line in stack), len(lines))
    message = dedented(lines[:first])
    frames = frames_in(block.place or "") if block.place else frames_in("\n".join(stack))
    expected, actual = compared(message)
    return Found(
        block.test,
        suite=block.suite,
        kind="failure" if block.word == "Failure" else "error",
        phase=hook(frames),
        message=message,
        expected=expected,
        actual=actual,
        frames=frames,
        own=(block.rerun[0],) if block.rerun else (),
        own_line=block.rerun[1] if block.rerun else None,
    )


def hook(frames: tuple[Frame, ...]) -> Phase | None:
    """Whether the outermost frame is a method that runs around each test."""
    function = frames[-1].function if frames else None
    match = re.search(r"(?:^|[#.])(?:before_|after_)?(setup|teardown)$", function or "")
    if match is None:
        return None
    return "setup" if match[1] == "setup" else "teardown"

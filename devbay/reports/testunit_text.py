"""The plain output of Ruby's test-unit. Source: `test/unit/ui/console/testrunner.rb` of test-unit 3."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from devbay.reports.compare import compared
from devbay.reports.locate import frames_in
from devbay.reports.minitest_text import hook
from devbay.reports.records import MAX_FAILURES, Found, Outcome, Parsed, TestCase, count
from devbay.reports.screen import Lines, dedented, screen_lines, screen_text
from devbay.reports.source import Source

name = "test-unit"
commands = frozenset({"test-unit", "testrb"})

_SUMMARY = re.compile(
    r"(?P<ran>\d+) tests, \d+ assertions, (?P<failed>\d+) failures, (?P<errors>\d+) errors"
    r", (?P<pending>\d+) pendings(?:, (?P<omitted>\d+) omissions)?(?:, \d+ notifications)?"
)
_DOUBLE = re.compile(r"={40,}")
_HEAD = re.compile(
    r"(?P<word>Failure|Error|Pending|Omission|Notification): (?P<test>.+?)"
    r"\((?P<suite>[\w:]+)\)\]?(?: \[(?P<place>.+?:\d+)\])?(?:: ?(?P<rest>.*))?"
)
_FRAME = re.compile(r"(?P<frame>\S.*\.\w+:\d+:in [`'].*)")
_SNIPPET = re.compile(r"\s*(?:=> ?)?\s*\d+: .*|\s*(?:=> ?)?\s*\d+:")
_MARKS = re.compile(r"[.FEPON]+")
_OUTCOMES: dict[str, Outcome] = {
    ".": "passed", "F": "failed", "E": "error", "P": "skipped", "O": "skipped", "N": "passed"
}  # fmt: skip
_SNIFF = re.compile(
    r"^\d+ tests, \d+ assertions, \d+ failures, \d+ errors, \d+ pendings|^Loaded suite .+\nStarted$",
    re.MULTILINE,
)


def sniff(head: bytes) -> bool:
    """Whether the bytes hold test-unit's first or last lines."""
    return _SNIFF.search(screen_text(head)) is not None


def read(source: Source) -> Parsed:
    """What test-unit said. Output without its count of tests is not complete."""
    reader = _Reader()
    for line in screen_lines(source):
        reader.take(line)
    return reader.result()


@dataclass
class _Block:
    """A failure or an error between two double lines."""

    head: re.Match[str]
    lines: Lines = field(default_factory=Lines)


@dataclass
class _Reader:
    """The state between lines."""

    blocks: list[_Block] = field(default_factory=list)
    block: _Block | None = None
    after_double: bool = False
    marks: Counter[Outcome] = field(default_factory=Counter)
    totals: Counter[str] = field(default_factory=Counter)
    ended: bool = False

    def take(self, line: str) -> None:
        double = bool(_DOUBLE.fullmatch(line))
        if match := _SUMMARY.fullmatch(line):
            self.ended = True
            for key, value in match.groupdict(default="0").items():
                self.totals[key] += int(value)
        elif self.after_double and (match := _HEAD.fullmatch(line)):
            self.block = _Block(match)
            if match["word"] in ("Failure", "Error") and len(self.blocks) < MAX_FAILURES:
                self.blocks.append(self.block)
        elif double:
            self.block = None
        elif self.block is not None:
            self.block.lines.add(line)
        elif match := re.search(r"(?:^|\t)([.FEPON]+)$", line):
            self.marks.update(_OUTCOMES[mark] for mark in match[1])
        self.after_double = double

    def result(self) -> Parsed:
        failures = [_describe(block) for block in self.blocks]
        counts = None
        if self.ended:
            failed, errors = self.totals["failed"], self.totals["errors"]
            skipped = self.totals["pending"] + self.totals["omitted"]
            counts = count(max(0, self.totals["ran"] - failed - errors - skipped), failed, errors, skipped)
        else:
            message = "the run ended before its count of tests"
            failures.append(Found("test-unit", kind="crash", scope="run", message=message))
            seen = self.marks
            if seen:
                counts = count(seen["passed"], seen["failed"], seen["error"], seen["skipped"])
        return Parsed(
            counts=counts,
            failures=tuple(failures),
            complete=self.ended,
            problem=None if self.ended else "test-unit's count of tests is missing",
            tests=tuple(
                TestCase(
                    block.head["test"],
                    block.head["suite"],
                    None,
                    None,
                    "failed" if block.head["word"] == "Failure" else "error",
                )
                for block in self.blocks
            ),
        )


def _describe(block: _Block) -> Found:
    head = block.head
    stack: list[str] = [f"{head['place']}:"] if head["place"] else []
    told: list[str] = [head["rest"]] if head["rest"] else []
    for line in block.lines.all:
        if frame := _FRAME.fullmatch(line):
            stack.append(frame["frame"])
        elif not (stack and _SNIPPET.fullmatch(line)):
            told.append(line)
    message = dedented(told)
    frames = frames_in("\n".join(stack))
    expected, actual = compared(message)
    return Found(
        head["test"],
        suite=head["suite"],
        kind="failure" if head["word"] == "Failure" else "error",
        phase=hook(frames),
        message=message,
        expected=expected,
        actual=actual,
        frames=frames,
    )

"""The pretty output of bats. Source: `libexec/bats-core/bats-format-pretty` of bats 1.5 to 1.11."""

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
    Kind,
    Outcome,
    Parsed,
    Phase,
    TestCase,
    count,
)
from devbay.reports.screen import Lines, dedented, screen_lines, screen_text
from devbay.reports.source import Source

name = "bats"
commands = frozenset({"bats"})

_FILE = re.compile(r"(?P<file>\S.*\.\w+)")
_TEST = re.compile(
    r" (?P<mark>[✓✗-]) (?P<name>.*?)(?: \((?P<why>skipped.*|timeout: .*)\))?(?: \[(?P<ms>\d*)(?:ms)?\])?"
)
_SUMMARY = re.compile(
    r"(?P<ran>\d+) tests?, (?P<failed>\d+) failures?(?:, (?P<skipped>\d+) skipped)?"
    r"(?:, \d+ not run)?(?:, \d+ timed out)?(?: in \d+ seconds)?"
)
_TOLD = re.compile(r"   (?P<text>.*)|")
_HOOK = re.compile(r"(?P<when>setup|teardown)(?:_file|_suite)? failed")
_PLACE = re.compile(r"^\s*\(?(?:from function `(?P<function>[^']+)' )?in (?:test )?file .+, line \d+[,)]$")
_OUTCOMES: dict[str, Outcome] = {"✓": "passed", "✗": "failed", "-": "skipped"}
_SNIFF = re.compile(
    r"^\d+ tests?, \d+ failures?(, \d+ skipped)?(, \d+ not run)?(, \d+ timed out)?( in \d+ seconds)?$"
    r"|^   \((in test file .+, line \d+\)|from function `\w+' in )",
    re.MULTILINE,
)


def sniff(head: bytes) -> bool:
    """Whether the bytes hold the last line of the pretty formatter, or a place as it prints it."""
    return _SNIFF.search(screen_text(head)) is not None


def read(source: Source) -> Parsed:
    """What bats said. Output without its count of tests is not complete."""
    reader = _Reader()
    for line in screen_lines(source):
        reader.take(line)
    return reader.result()


@dataclass
class _Block:
    """A test that failed, or a hook around the tests of a file."""

    name: str
    file: str | None
    why: str | None
    lines: Lines = field(default_factory=Lines)


@dataclass
class _Reader:
    """The state between lines."""

    file: str | None = None
    blocks: list[_Block] = field(default_factory=list)
    block: _Block | None = None
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    tests: list[TestCase] = field(default_factory=list)
    summary: dict[str, int] | None = None

    def take(self, line: str) -> None:
        if match := _SUMMARY.fullmatch(line):
            self.summary = {key: int(value or 0) for key, value in match.groupdict().items()}
            self.block = None
        elif match := _TEST.fullmatch(line):
            self._test(match)
        elif self.block is not None and (match := _TOLD.fullmatch(line)):
            self.block.lines.add(match["text"] or "")
        elif match := _FILE.fullmatch(line):
            self.file, self.block = match["file"], None

    def _test(self, match: re.Match[str]) -> None:
        self.block = None
        outcome = _OUTCOMES[match["mark"]]
        hook = _HOOK.fullmatch(match["name"])
        if outcome == "failed":
            outcome = "error" if hook else "failed"
            self.block = _Block(match["name"], self.file, match["why"])
            if len(self.blocks) < MAX_FAILURES:
                self.blocks.append(self.block)
        self.outcomes[outcome] += 1
        if not hook and len(self.tests) < MAX_TESTS:
            duration = int(match["ms"]) if match["ms"] else None
            self.tests.append(TestCase(match["name"], self.file, self.file, duration, outcome))

    def result(self) -> Parsed:
        failures = [_describe(block) for block in self.blocks]
        complete = self.summary is not None
        if not complete:
            message = "the run ended before its count of tests"
            failures.append(Found(self.file or "bats", kind="crash", scope="run", message=message))
        return Parsed(
            counts=self._counts(),
            failures=tuple(failures),
            complete=complete,
            problem=None if complete else "bats's count of tests is missing",
            tests=tuple(self.tests),
        )

    def _counts(self) -> Counts | None:
        seen = self.outcomes
        if not seen and self.summary is not None:
            ran, failed, skipped = (self.summary[key] for key in ("ran", "failed", "skipped"))
            return count(max(0, ran - failed - skipped), failed, 0, skipped)
        return count(seen["passed"], seen["failed"], seen["error"], seen["skipped"]) if seen else None


def _describe(block: _Block) -> Found:
    """The places first, then the command that failed, then what it printed."""
    places = [line for line in block.lines.all if _PLACE.match(line)]
    message = dedented([line for line in block.lines.all if line not in places]).strip()
    hook = _HOOK.fullmatch(block.name)
    function = next((match["function"] for line in places if (match := _PLACE.match(line))), None)
    phase: Phase | None = None
    if hook or function in ("setup", "teardown"):
        phase = "teardown" if (hook["when"] if hook else function) == "teardown" else "setup"
    kind: Kind = "error" if phase else "failure"
    if block.why and block.why.startswith("timeout"):
        kind, message = "timeout", message or block.why
    expected, actual = compared(message)
    return Found(
        block.name,
        suite=block.file,
        kind=kind,
        scope="suite" if hook else "test",
        phase=phase,
        message=message,
        expected=expected,
        actual=actual,
        frames=frames_in("\n".join(places)),
        own=(block.file,) if block.file else (),
    )

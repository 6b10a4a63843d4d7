"""The plain output of `dotnet test`. Source: `ConsoleLogger.cs` of VSTest 16 and 17."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from devbay.answers import Counts
from devbay.reports.compare import compared
from devbay.reports.locate import frames_in
from devbay.reports.plain import tail
from devbay.reports.records import MAX_FAILURES, Found, Parsed, Stop, TestCase, add_counts, count
from devbay.reports.screen import Lines, dedented, screen_lines, screen_text
from devbay.reports.source import Source

name = "dotnet"
commands = frozenset({"vstest.console", "vstest.console.exe"})

KEPT_OUTPUT = 4_000

_TEST = re.compile(r"  (?P<word>Failed|Passed|Skipped) (?P<test>\S.*?)(?: \[[\d.,< ]+ ?m?s[\w ]*\])?")
_PART = re.compile(r"  (?P<part>Error Message|Stack Trace|Standard (?:Output|Error) Messages|Debug Traces?):")
_SUMMARY = re.compile(
    r"(?:Passed|Failed|Skipped)! +- Failed: +(?P<failed>\d+), Passed: +(?P<passed>\d+)"
    r", Skipped: +(?P<skipped>\d+), Total: +\d+.*"
)
_LONG = re.compile(r" *(?P<what>Total tests|Passed|Failed|Skipped): (?P<number>\d+)")
_NONE = re.compile(r"No test (?:is available|matches the given testcase filter).*")
_ABORTED = re.compile(r"The active test run was aborted.*|Test Run Aborted.*", re.IGNORECASE)
_HUNG = re.compile(r"inactivity time|hang dump", re.IGNORECASE)
_THROWN = re.compile(r"(?:Test method \S+ threw exception:\s*)?[\w.]*Exception ?: ")
_SNIFF = re.compile(
    r"^(?:Passed|Failed|Skipped)! +- Failed: +\d+, Passed: +\d+|^Starting test execution, please wait"
    r"|^Test Run (?:Failed|Successful|Aborted)\.",
    re.MULTILINE,
)


def sniff(head: bytes) -> bool:
    """Whether the bytes hold VSTest's first or last lines."""
    return _SNIFF.search(screen_text(head)) is not None


def read(source: Source) -> Parsed:
    """What the test platform said of every project."""
    reader = _Reader()
    for line in screen_lines(source):
        reader.take(line)
    return reader.result()


@dataclass
class _Block:
    """A test that failed, with its parts by their heads."""

    test: str
    parts: dict[str, Lines] = field(default_factory=dict)

    def text(self, part: str) -> str:
        return dedented(self.parts[part].all) if part in self.parts else ""


@dataclass
class _Reader:
    """The state between lines."""

    blocks: list[_Block] = field(default_factory=list)
    block: _Block | None = None
    part: Lines | None = None
    counts: list[Counts] = field(default_factory=list)
    long: dict[str, int] = field(default_factory=dict)
    nothing: bool = False
    aborted: str = ""
    ended: bool = False

    def take(self, line: str) -> None:
        if match := _SUMMARY.fullmatch(line):
            passed, failed, skipped = (int(match[key]) for key in ("passed", "failed", "skipped"))
            self.counts.append(count(passed, failed, 0, skipped))
            self._close()
            self.ended = True
        elif match := _TEST.fullmatch(line):
            self._close()
            if match["word"] == "Failed":
                self.block = _Block(match["test"])
                if len(self.blocks) < MAX_FAILURES:
                    self.blocks.append(self.block)
        elif self.block is not None and (match := _PART.fullmatch(line)):
            self.part = self.block.parts.setdefault(match["part"], Lines())
        elif match := _ABORTED.fullmatch(line):
            self._close()
            self.aborted = self.aborted or line
        elif _NONE.fullmatch(line):
            self.nothing = True
        elif line.startswith(("Test Run ", "Total tests: ")) or (
            self.block is None and _LONG.fullmatch(line)
        ):
            self._close()
            self.ended = True
            if match := _LONG.fullmatch(line):
                self.long[match["what"]] = self.long.get(match["what"], 0) + int(match["number"])
        elif self.part is not None:
            self.part.add(line)

    def _close(self) -> None:
        self.block = self.part = None

    def result(self) -> Parsed:
        failures = [_describe(block) for block in self.blocks]
        stopped: Stop | None = None
        if self.aborted:
            stopped = "timeout" if _HUNG.search(self.aborted) else "crash"
            failures.append(Found("dotnet test", kind=stopped, scope="run", message=self.aborted))
        counts = add_counts(self.counts)
        if counts is None and self.long:
            passed, failed = self.long.get("Passed", 0), self.long.get("Failed", 0)
            counts = count(passed, failed, 0, self.long.get("Skipped", 0))
        if counts is None and self.nothing:
            counts = count()
        complete = self.ended or self.nothing or stopped is not None or (counts is None and not failures)
        return Parsed(
            counts=counts,
            failures=tuple(failures),
            complete=complete,
            problem=None if complete else "the count of tests is missing",
            tests=tuple(TestCase(block.test, None, None, None, "failed") for block in self.blocks),
            stopped=stopped,
        )


def _describe(block: _Block) -> Found:
    message, stack = block.text("Error Message").strip(), block.text("Stack Trace")
    output = "\n".join(
        filter(None, (block.text("Standard Output Messages"), block.text("Standard Error Messages")))
    )
    bare = re.split(r"[(<]", block.test, maxsplit=1)[0]
    owner = bare.rpartition(".")[0] if re.fullmatch(r"[\w.+]+", bare) else ""
    expected, actual = compared(message)
    return Found(
        block.test[len(owner) :].lstrip(".") if owner else block.test,
        suite=owner or None,
        kind="error" if _THROWN.match(message) else "failure",
        message=message,
        expected=expected,
        actual=actual,
        frames=frames_in(stack),
        own=(owner, f"*/{owner.rpartition('.')[2]}.cs") if owner else (),
        output=tail(output.strip(), KEPT_OUTPUT) or None,
    )

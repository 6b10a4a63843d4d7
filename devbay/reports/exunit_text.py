"""The plain output of Elixir's ExUnit. Source: `ex_unit/cli_formatter.ex` of Elixir 1.12 to 1.18."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from devbay.answers import Counts
from devbay.reports.compare import compared
from devbay.reports.records import MAX_FAILURES, Found, Frame, Parsed, TestCase, count
from devbay.reports.screen import Lines, dedented, screen_lines, screen_text
from devbay.reports.source import Source

name = "exunit"
commands: frozenset[str] = frozenset()

_HEAD = re.compile(
    r"  +\d+\) (?:(?P<test>(?:test|doctest|property) .+) \((?P<module>[\w.]+)\)"
    r"|(?P<whole>[\w.]+): failure on .+)"
)
_SUMMARY = re.compile(r"(?:\d+ (?:doctests?|propert(?:y|ies)|tests?), )*\d+ failures?(?:, \d+ \w+)*")
_COUNTED = re.compile(r"(\d+) (\w+)")
_FINISHED = re.compile(r"Finished in [\d.]+ seconds(?: \(.*\))?")
_PLACE = re.compile(r"(?P<path>\S+\.exs?):(?P<line>\d+)")
_FRAME = re.compile(
    r"\s*(?:\((?P<app>\w+) [\w.+-]+\) )?(?P<path>[\w./-]+\.(?:exs?|erl)):(?P<line>\d+): (?P<function>.+)"
)
_RAISED = re.compile(r"\*\* \((?P<type>[\w.]+)\) ?(?P<text>.*)")
_LOADING = re.compile(r"== Compilation error in file (?P<path>\S+) ==")
_LIBRARIES = frozenset({"elixir", "ex_unit", "stdlib", "kernel", "mix", "logger", "iex", "eex"})
_SNIFF = re.compile(
    r"^Finished in [\d.]+ seconds[^\n]*\n(?:\d+ (?:doctest|propert|test)\w*, )*\d+ failures?(?:, \d+ \w+)*$"
    r"|^== Compilation error in file \S+\.exs? ==$",
    re.MULTILINE,
)


def sniff(head: bytes) -> bool:
    """Whether the bytes hold ExUnit's last lines, or an Elixir file that does not compile."""
    return _SNIFF.search(screen_text(head)) is not None


def read(source: Source) -> Parsed:
    """What ExUnit said. Output without its count of tests is not complete."""
    reader = _Reader()
    for line in screen_lines(source):
        reader.take(line)
    return reader.result()


@dataclass
class _Block:
    """A numbered failure. test: None where a whole module failed."""

    test: str | None
    module: str
    lines: Lines = field(default_factory=Lines)


@dataclass
class _Reader:
    """The state between lines."""

    blocks: list[_Block] = field(default_factory=list)
    block: _Block | None = None
    loading: list[_Block] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    finished: bool = False
    ended: bool = False

    def take(self, line: str) -> None:
        if match := _HEAD.fullmatch(line):
            self.block = _Block(match["test"], match["module"] or match["whole"])
            if len(self.blocks) < MAX_FAILURES:
                self.blocks.append(self.block)
        elif _FINISHED.fullmatch(line):
            self.finished, self.block = True, None
        elif self.finished and _SUMMARY.fullmatch(line):
            self.ended, self.finished = True, False
            for number, what in _COUNTED.findall(line):
                self.numbers[what.rstrip("s")] = self.numbers.get(what.rstrip("s"), 0) + int(number)
        elif match := _LOADING.fullmatch(line):
            self.block = _Block(None, match["path"])
            self.loading.append(self.block)
            del self.loading[MAX_FAILURES:]
        elif self.block is not None and (line.startswith("     ") or not line or self.block in self.loading):
            self.block.lines.add(line)

    def result(self) -> Parsed:
        failures = [_describe(block) for block in self.blocks] + [_unloaded(block) for block in self.loading]
        complete = self.ended or bool(self.loading)
        if not complete:
            message = "the run ended before its count of tests"
            failures.append(Found("exunit", kind="crash", scope="run", message=message))
        return Parsed(
            counts=self._counts(),
            failures=tuple(failures),
            complete=complete,
            problem=None if complete else "ExUnit's count of tests is missing",
            tests=tuple(
                TestCase(block.test, block.module, None, None, "failed")
                for block in self.blocks
                if block.test
            ),
        )

    def _counts(self) -> Counts | None:
        """Tests of a module whose `setup_all` failed are errors; what tags exclude is skipped."""
        if not self.ended:
            return None
        ran = sum(self.numbers.get(what, 0) for what in ("test", "doctest", "property", "propertie"))
        failed, errors = self.numbers.get("failure", 0), self.numbers.get("invalid", 0)
        skipped = self.numbers.get("skipped", 0) + self.numbers.get("excluded", 0)
        return count(max(0, ran - failed - errors - skipped), failed, errors, skipped)


def _describe(block: _Block) -> Found:
    lines = block.lines.all
    place = _PLACE.fullmatch(lines[0].strip()) if lines else None
    at = next((at for at, line in enumerate(lines) if line.strip() == "stacktrace:"), len(lines))
    message = dedented(lines[1 if place else 0 : at])
    raised = _RAISED.match(message)
    if raised:
        message = re.sub(r"(?:\n *code:.*)$", "", message)
        message = f"{raised['type']}: {raised['text']}{message[raised.end() :]}"
    expected, actual = compared(message)
    return Found(
        block.test or block.module,
        suite=block.module,
        kind="error" if raised and not raised["type"].startswith("ExUnit.") else "failure",
        scope="test" if block.test else "suite",
        phase=None if block.test else "setup",
        message=message,
        expected=expected,
        actual=actual,
        frames=_frames(lines[at:]),
        own=(place["path"],) if place else (),
        own_line=int(place["line"]) if place else None,
    )


def _unloaded(block: _Block) -> Found:
    """A file that does not compile."""
    text = block.lines.text.strip()
    raised = _RAISED.match(text)
    message = f"{raised['type']}: {raised['text']}" if raised else text
    at = re.search(re.escape(block.module) + r":(\d+)", text)
    return Found(
        block.module,
        kind="error",
        scope="suite",
        message=message,
        own=(block.module,),
        own_line=int(at[1]) if at else None,
    )


def _frames(lines: list[str]) -> tuple[Frame, ...]:
    found = (_FRAME.fullmatch(line) for line in lines)
    return tuple(
        Frame(match["path"], int(match["line"]), match["function"])
        for match in found
        if match and match["app"] not in _LIBRARIES
    )

"""Catch2's console and compact output. Source: its reporters of versions 2.13 and 3.0 to 3.8."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from devbay.answers import Counts
from devbay.reports.compare import compared
from devbay.reports.plain import plain, shorten
from devbay.reports.records import MAX_FAILURES, Found, Frame, Kind, Parsed, Stop, count
from devbay.reports.source import Source

name = "catch2"
commands: frozenset[str] = frozenset()

MAX_LINES = 100
MAX_WIDTH = 4_000

_RULE = re.compile(r"^(?:-{70,}|={70,}|\.{70,}|~{70,})$")
_PLACE = re.compile(r"^(?P<path>\S[^\n]*?)(?::(?P<line>\d+)|\((?P<msvc>\d+)\))$")
_BLOCK = re.compile(
    r"^(?P<path>\S[^\n]*?)(?::(?P<line>\d+)|\((?P<msvc>\d+)\)): "
    r"(?P<what>FAILED|PASSED|SKIPPED|failed|passed|skipped|warning|info)(?:: ?(?P<rest>.*)| - but was ok.*)?$"
)
_TOTALS = re.compile(r"^test cases: +(?P<total>\d+)(?P<parts>(?: +\| +\d+ [a-z ]+?)+) *$")
_PART = re.compile(r"(\d+) (passed|failed as expected|failed|skipped)")
_ALL = re.compile(r"^All tests passed \(\d+ assertions? in (?P<count>\d+) test cases?\)")
_COMPACT = re.compile(r"^(?:Passed|Failed) (?:(?:all|both) )?(?P<count>\d+) test cases?(?:,| with| \()")
_NONE = re.compile(r"^(?:No tests ran|No test cases matched .*|No tests ran\.)$")
_SNIFF = re.compile(
    rb"^(?:\x1b\[[\d;]*m)*(?:test cases: +\d+ \| |All tests passed \(\d+ assertions? in \d+ test case"
    rb"|\S+ is a Catch2? v[\d.]+\S* (?:b\d+ )?host application"
    rb"|(?:Passed|Failed) (?:(?:all|both) )?\d+ test cases?(?:, failed| with \d+ assertion))",
    re.MULTILINE,
)


def sniff(head: bytes) -> bool:
    """Whether the bytes hold Catch2's banner or its totals."""
    return _SNIFF.search(head) is not None


def read(source: Source) -> Parsed:
    """The failed assertions, one each, and the totals. Without totals the run ended early."""
    reader = _Reader()
    for raw in source.lines():
        reader.take(plain(raw).rsplit("\r", 1)[-1][:MAX_WIDTH])
    return reader.result()


@dataclass
class _Reader:
    title: list[str] = field(default_factory=list)
    titling: bool = False
    block: tuple[Frame, list[str], bool] | None = None
    failures: list[Found] = field(default_factory=list)
    counts: Counts | None = None
    sections: int = 0

    def take(self, line: str) -> None:
        if _RULE.match(line):
            self._end()
            if line[0] == "-":
                self.titling = not self.titling
                self.title = [] if self.titling else self.title
            return
        if self.titling:
            if len(self.title) < MAX_LINES:
                self.title.append(line)
        elif match := _BLOCK.match(line):
            self._begin(match)
        elif self._totals(line):
            self._end()
        elif self.block is not None:
            self._inside(line)

    def _begin(self, match: re.Match[str]) -> None:
        self._end()
        self.sections += 1
        if match["what"].lower() == "failed":
            rest = match["rest"]
            frame = Frame(match["path"], int(match["line"] or match["msvc"]))
            self.block = frame, [rest] if rest else [], match["what"] == "failed"

    def _inside(self, line: str) -> None:
        if self.block is None:
            return
        _, lines, compact = self.block
        if not line.strip() and lines and not compact:
            self._end()
        elif len(lines) < MAX_LINES:
            lines.append(line)

    def _end(self) -> None:
        block, self.block = self.block, None
        if block is None or len(self.failures) >= MAX_FAILURES:
            return
        frame, lines, compact = block
        message = "\n".join(_dedented(line) for line in lines).strip()
        case = [part.strip() for part in self.title if part.strip()]
        file = re.split(r"[\\/]", frame.path)[-1]
        self.failures.append(failed("/".join(case) or f"{file}:{frame.line}", message, (frame,), compact))

    def _totals(self, line: str) -> bool:
        if match := _TOTALS.match(line):
            numbers = {word: int(number) for number, word in _PART.findall(match["parts"])}
            failed, skipped = numbers.get("failed", 0), numbers.get("skipped", 0)
            passed = numbers.get("passed", 0) + numbers.get("failed as expected", 0)
            self.counts = count(passed, failed, 0, skipped)
        elif match := _ALL.match(line):
            self.counts = count(passed=int(match["count"]))
        elif match := _COMPACT.match(line):
            number = int(match["count"])
            good = line.startswith("Passed")
            self.counts = count(passed=number if good else 0, failed=0 if good else number)
        elif _NONE.match(line):
            self.counts = self.counts or count()
        else:
            return False
        return True

    def result(self) -> Parsed:
        self._end()
        fatal = any(found.kind == "crash" for found in self.failures)
        stopped: Stop | None = "crash" if fatal else None
        complete = self.counts is not None or fatal
        return Parsed(
            counts=self.counts,
            failures=tuple(self.failures),
            complete=complete,
            problem=None if complete else "Catch2's totals are missing",
            stopped=stopped,
        )


def _dedented(line: str) -> str:
    return line.removeprefix("  ")


def failed(name: str, message: str, frames: tuple[Frame, ...], compact: bool = False) -> Found:
    """A failed assertion of Catch2's, from any of its reporters."""
    kind: Kind = "failure"
    if re.search(
        r"^due to a fatal error condition|^fatal error condition|^SIG[A-Z]+ - ", message, re.MULTILINE
    ):
        kind = "crash"
    elif re.search(r"^due to unexpected exception|^unexpected exception\b", message, re.MULTILINE):
        kind = "error"
    message = shorten(message, 8_000)
    expected, actual = _operands(message, compact)
    own = (frames[0].path,) if frames else ()
    return Found(name, None, kind, message=message, expected=expected, actual=actual, frames=frames, own=own)


def _operands(message: str, compact: bool) -> tuple[str | None, str | None]:
    """The operands of a comparison by `==`, as Catch2 expanded them (the actual value stands first)."""
    pattern = (
        r" for: (.+?) == (.+?)(?: with \d+ message|$)" if compact else r"^with expansion:\n(.+?) == (.+)$"
    )
    match = re.search(pattern, message, re.MULTILINE)
    if match and "\n" not in match[0].removeprefix("with expansion:\n"):
        return match[2].strip(), match[1].strip()
    return compared(message)

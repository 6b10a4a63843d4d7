"""RSpec's plain output: the progress, documentation and failures formatters.

Source: `rspec/core/formatters` of RSpec 3 (exception_presenter.rb, documentation_formatter.rb).
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from devbay.answers import Counts
from devbay.reports.compare import compared
from devbay.reports.locate import frames_in
from devbay.reports.paths import is_library
from devbay.reports.records import MAX_FAILURES, Found, Outcome, Parsed, Phase, TestCase, count
from devbay.reports.screen import Lines, dedented, screen_lines, screen_text
from devbay.reports.source import Source

name = "rspec"
commands = frozenset({"rspec"})

_SUMMARY = re.compile(
    r"(?P<ran>\d+) examples?, (?P<failed>\d+) failures?(?:, (?P<pending>\d+) pending)?"
    r"(?:, (?P<outside>\d+) errors? occurred outside of examples)?"
)
_ITEM = re.compile(r"  +(?P<number>\d+)\) (?P<title>.+)")
_PART = re.compile(r" +\d+\.\d+\) (?P<rest>.*)")
_SECTION = re.compile(r"(?P<title>Pending|Failures|Failed examples|Deprecation Warnings): ?.*|Finished in .*")
_OUTSIDE = re.compile(
    r"An error occurred (?:while loading (?P<path>\S+?\.\w+)|in an? [`'](?P<hook>.+?)['`] hook)\.?"
    r"(?: - Did you mean.*)?"
)
_RERUN = re.compile(
    r"rspec ['\"]?(?P<path>[^\s'\"\[:]+\.\w+)['\"]?(?::(?P<line>\d+)|\[[\d:]+\]['\"]?) # (?P<title>.+)"
)
_LISTED = re.compile(r"(?P<path>(?:[A-Za-z]:)?[^\s:]+\.rb):(?P<line>\d+):(?P<title>.+)")
_DOCUMENTED = re.compile(
    r"(?P<indent>(?:  )*)(?P<title>\S.*?)"
    r"(?: \((?:(?P<failed>FAILED) - \d+|PENDING: (?P<pending>.*))\))?"
)
_MARKS = re.compile(r"[.F*]+")
_FRAME = re.compile(r"\s*# (?P<rest>.*)")
_SHARED = re.compile(r"\s*Shared Example Group: .* called from (?P<place>\S+:\d+).*")
_CODE = re.compile(r"\s*Failure/Error:(?P<code>.*)")
_RAISED = re.compile(r"(?P<type>[A-Z]\w*(?:::\w+)*):")
_HOOK = re.compile(r"(?:prepend_|append_)?(?P<when>before|after)\b")
_SNIFF = re.compile(
    r"^\d+ examples?, \d+ failures?(, \d+ pending|, \d+ errors? occurred outside of examples)*$"
    r"|^Failed examples:$|\(FAILED - \d+\)$|^Finished in .* \(files took .* to load\)$"
    r"|^An error occurred while loading \S+\.rb\.$",
    re.MULTILINE,
)


def sniff(head: bytes) -> bool:
    """Whether the bytes hold RSpec's last lines, or a failure of its documentation formatter."""
    return _SNIFF.search(screen_text(head)) is not None


def read(source: Source) -> Parsed:
    """What RSpec said. Output without its count of examples is not complete."""
    reader = _Reader()
    for line in screen_lines(source):
        reader.take(line)
    return reader.result()


@dataclass
class _Block:
    """A numbered failure, or an error outside of the examples (`path`: of the file that did not load)."""

    title: str
    lines: Lines = field(default_factory=Lines)
    path: str | None = None
    outside: bool = False


@dataclass
class _Documented:
    """A failed line of the documentation formatter below the groups it stands in."""

    groups: tuple[str, ...]
    title: str


@dataclass
class _Reader:
    """The state between lines."""

    section: str = ""
    blocks: list[_Block] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    last: tuple[int, bool] | None = None
    documented: list[_Documented] = field(default_factory=list)
    reruns: dict[str, tuple[str, int | None]] = field(default_factory=dict)
    listed: list[tuple[str, int, str]] = field(default_factory=list)
    marks: Counter[Outcome] = field(default_factory=Counter)
    leaves: Counter[Outcome] = field(default_factory=Counter)
    totals: Counter[str] = field(default_factory=Counter)
    ended: bool = False

    def take(self, line: str) -> None:
        if match := _SUMMARY.fullmatch(line):
            self.ended, self.section = True, ""
            for key, value in match.groupdict(default="0").items():
                self.totals[key] += int(value)
        elif match := _OUTSIDE.fullmatch(line):
            self.section = "outside"
            title = match["path"] or f"{match['hook']} hook"
            self._begin(_Block(title, path=match["path"], outside=True))
        elif match := _SECTION.fullmatch(line):
            self.section = match["title"] or "Finished"
        elif self.section == "Failures":
            if match := _ITEM.fullmatch(line):
                self._begin(_Block(match["title"]))
            elif self.blocks:
                self.blocks[-1].lines.add(line)
        elif self.section == "outside":
            self.blocks[-1].lines.add(line)
        elif match := _RERUN.fullmatch(line):
            line_number = int(match["line"]) if match["line"] else None
            self.reruns.setdefault(match["title"], (match["path"], line_number))
        elif not self.section and not self.ended:
            self._progress(line)

    def _begin(self, block: _Block) -> None:
        if len(self.blocks) < MAX_FAILURES or block.outside:
            self.blocks.append(block)

    def _progress(self, line: str) -> None:
        if _MARKS.fullmatch(line):
            for mark in line:
                self.marks["passed" if mark == "." else "failed" if mark == "F" else "skipped"] += 1
        elif match := _LISTED.fullmatch(line):
            self.listed.append((match["path"], int(match["line"]), match["title"]))
            del self.listed[MAX_FAILURES:]
        elif line and (match := _DOCUMENTED.fullmatch(line)):
            depth = len(match["indent"]) // 2
            self._leaf(depth)
            decided = bool(match["failed"] or match["pending"] is not None)
            if match["failed"]:
                self.leaves["failed"] += 1
                self.documented.append(_Documented(tuple(self.groups[:depth]), match["title"]))
                del self.documented[MAX_FAILURES:]
            elif decided:
                self.leaves["skipped"] += 1
            self.groups[depth:] = [match["title"]]
            self.last = (depth, decided)

    def _leaf(self, depth: int) -> None:
        """The line before this one was an example that passed, if nothing stands below it."""
        if self.last is not None and depth > 0 and depth <= self.last[0] and not self.last[1]:
            self.leaves["passed"] += 1

    def result(self) -> Parsed:
        failures = [found for block in self.blocks for found in self._describe(block)]
        if not any(not block.outside for block in self.blocks):
            failures += self._unlisted()
        complete = self.ended or bool(self.listed)
        if not complete:
            message = "the run ended before its summary"
            failures.append(Found("rspec", kind="crash", scope="run", message=message))
        tests = tuple(TestCase(title, None, path, None, "failed") for title, (path, _) in self.reruns.items())
        return Parsed(
            counts=self._counts(),
            failures=tuple(failures),
            complete=complete,
            problem=None if complete else "RSpec's count of examples is missing",
            tests=tests,
        )

    def _unlisted(self) -> list[Found]:
        """Failures that only the documentation or the failures formatter names."""
        if self.listed:
            return [Found(title, own=(path,), own_line=line, message="") for path, line, title in self.listed]
        return [Found(each.title, suite=" ".join(each.groups) or None) for each in self.documented]

    def _counts(self) -> Counts | None:
        if self.ended:
            ran, failed, pending = (self.totals[key] for key in ("ran", "failed", "pending"))
            return count(max(0, ran - failed - pending), failed, self.totals["outside"], pending)
        if self.listed:
            return count(failed=len(self.listed))
        seen = self.leaves if self.documented or not self.marks else self.marks
        return count(seen["passed"], seen["failed"], 0, seen["skipped"]) if seen else None

    def _describe(self, block: _Block) -> list[Found]:
        title = block.title.removesuffix(" FIXED")
        path, line = self.reruns.get(title, (block.path, None))
        parts: list[list[str]] = [[]]
        for each in block.lines.all:
            if match := _PART.fullmatch(each):
                parts.append([match["rest"]])
            else:
                parts[-1].append(each)
        parts = [part for part in parts if any(text.strip() for text in part)]
        if len(parts) > 1:
            parts = parts[1:]  # the first only says how many there are
        return [self._part(block, title, part, path, line) for part in parts or [[]]]

    def _part(self, block: _Block, title: str, lines: list[str], path: str | None, at: int | None) -> Found:
        code, message, stack = _read_part(lines)
        raised = _RAISED.match(message)
        hook = _HOOK.match(code.strip()) or (_HOOK.match(title) if block.outside else None)
        phase: Phase | None = ("setup" if hook["when"] == "before" else "teardown") if hook else None
        if raised:
            text = dedented(message[raised.end() :].split("\n"))
            message = f"{raised['type']}: {text}".rstrip(": ")
        expected, actual = compared(message)
        frames = frames_in(stack)
        if block.outside and all(is_library(frame.path) for frame in frames):
            frames = frames_in(message)  # a file with a syntax error was never on the stack
        return Found(
            title,
            kind="error" if raised or block.outside else "failure",
            scope="suite" if block.outside else "test",
            phase=phase,
            message=message or code.strip(),
            expected=expected,
            actual=actual,
            frames=frames,
            own=(path,) if path else (),
            own_line=at,
        )


def _read_part(lines: list[str]) -> tuple[str, str, str]:
    """(The line of code that failed, what was wrong, the stack) of one failure.

    Code of several lines starts below `Failure/Error:` and ends at an empty line. Of chained exceptions the
    stack is that of the last.
    """
    code: list[str] = []
    message: list[str] = []
    stack: list[str] = []
    below = caused = False
    for line in lines:
        if frame := _FRAME.fullmatch(line):
            caused = caused or frame["rest"].startswith("---")
            if not caused:
                stack.append(frame["rest"])
        elif shared := _SHARED.fullmatch(line):
            stack.append(shared["place"])
        elif start := _CODE.fullmatch(line):
            code.append(start["code"])
            message.clear()  # other files that could have been meant
            below = not start["code"].strip()
        elif below and (line.strip() or len(code) < 2):
            code.append(line)
        else:
            below = False
            if not stack:
                message.append(line)
    return "\n".join(code).strip("\n"), dedented(message), "\n".join(stack)

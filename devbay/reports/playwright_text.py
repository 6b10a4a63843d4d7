"""Playwright's plain output (line, list, dot, github). Source: `reporters/base.ts`, 1.40 to 1.57."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from devbay.reports import javascript
from devbay.reports.locate import frames_in
from devbay.reports.paths import is_library
from devbay.reports.plain import overwritten, plain
from devbay.reports.records import MAX_FAILURES, Found, Parsed, count
from devbay.reports.source import Source

name = "playwright"
commands = frozenset({"playwright"})

KEPT_LINES = 2_000
_PLACE = r"(?:\[(?P<project>[^\]]+)\] › )?(?P<path>\S.*?):(?P<line>\d+):\d+ › (?P<title>.+?)"
_BLOCK = re.compile(rf"^ {{2}}\d+\) {_PLACE}(?: ─+)?$")
_LISTED = re.compile(rf"^ {{4}}{_PLACE}(?: ─+)?$")
_TOTAL = re.compile(
    r"^ {2}(?P<number>\d+) (?P<word>failed|flaky|skipped|did not run|passed|interrupted|timed out)"
    r"(?: \([^)]*\))?$"
)
_RUNNING = re.compile(r"^Running (?P<number>\d+) tests? using \d+ workers?")
_RETRY = re.compile(r"^ {4}Retry #\d+ ─+")
_OUTSIDE = re.compile(r"^(?P<text>(?:[A-Z]\w*)?Error: .*)$")
_NONE = re.compile(r"^Error: No tests found")
_ERROR = re.compile(r"^ {4}(?:\w*Error\b|Test timeout of|Expected to fail)")
_STACK = re.compile(r"^\s+at \S")
_SNIFF = re.compile(
    rf"^Running \d+ tests? using \d+ workers?|^ {{2}}\d+\) {_PLACE.replace('?P<', '?P<s')} ─+$"
    r"|^Error: No tests found$|^ {3}at \S+\.[cm]?[jt]sx?:\d+\n\n? *>? *\d+ \|",
    re.MULTILINE,
)


def sniff(head: bytes) -> bool:
    return _SNIFF.search(javascript.printed(head)) is not None


def read(source: Source) -> Parsed:
    """What Playwright said. Tests that passed when tried again are not failures."""
    reader = _Reader()
    for line in source.lines():
        reader.take(overwritten(plain(line)).rstrip())
    return reader.result()


@dataclass
class _Block:
    """A failed test: path, line and title as its head has them, and the text of its first try."""

    path: str
    line: int
    title: str
    lines: list[str] = field(default_factory=list)
    closed: bool = False


@dataclass
class _Reader:
    blocks: list[_Block] = field(default_factory=list)
    outside: list[list[str]] = field(default_factory=list)
    totals: Counter[str] = field(default_factory=Counter)
    listed: dict[tuple[str, int, str], str] = field(default_factory=dict)  # how the tests listed ended
    word: str = ""
    planned: int | None = None
    none: bool = False

    def take(self, line: str) -> None:
        if match := _BLOCK.match(line):
            if len(self.blocks) < MAX_FAILURES:
                self.blocks.append(_Block(match["path"], int(match["line"]), match["title"]))
        elif match := _TOTAL.match(line):
            self.word = match["word"]
            self.totals[self.word] += int(match["number"])
            self._close()
        elif self.word and (match := _LISTED.match(line)):
            self.listed[match["path"], int(match["line"]), match["title"]] = self.word
        elif match := _RUNNING.match(line):
            self.planned = (self.planned or 0) + int(match["number"])
        elif _RETRY.match(line) or (line and not line.startswith("    ") and self.blocks):
            self._close()
        elif self.blocks and not self.blocks[-1].closed:
            if len(self.blocks[-1].lines) < KEPT_LINES:
                self.blocks[-1].lines.append(line)
        elif self.planned is None:
            self._outside(line)

    def _close(self) -> None:
        if self.blocks:
            self.blocks[-1].closed = True

    def _outside(self, line: str) -> None:
        """Errors before any test ran: files that did not load, a configuration that is wrong."""
        if _NONE.match(line):
            self.none = True
        if match := _OUTSIDE.match(line):
            if len(self.outside) < MAX_FAILURES:
                self.outside.append([match["text"]])
        elif self.outside and len(self.outside[-1]) < KEPT_LINES:
            self.outside[-1].append(line)

    def result(self) -> Parsed:
        failures: list[Found] = []
        for block in self.blocks:
            title = self._listed(block)
            if title is not None:
                failures += _described(block, title)
        failures += [_loading("\n".join(lines)) for lines in self.outside]
        totals = self.totals
        complete = bool(totals) or self.none or bool(self.outside)
        if not complete and self.planned is None and not failures:
            return Parsed(counts=None)  # another of its commands, or nothing of it was printed
        if not complete:
            failures.append(javascript.died("Playwright", self.planned is not None))
        errors = sum(found.scope == "suite" for found in failures)
        counts = count(
            totals["passed"] + totals["flaky"],
            totals["failed"] + totals["timed out"] + totals["interrupted"],
            errors,
            totals["skipped"] + totals["did not run"],
        )
        return Parsed(
            counts=counts if complete else None,
            failures=tuple(failures[:MAX_FAILURES]),
            complete=complete,
            problem=None if complete else "Playwright's totals are missing",
            stopped=None if complete else "crash",
        )

    def _listed(self, block: _Block) -> str | None:
        """The title as the list at the end has it (a head goes on with the step); None of a flaky test."""
        for (path, line, title), word in self.listed.items():
            if (path, line) == (block.path, block.line) and (block.title + " ›").startswith(title):
                return None if word == "flaky" else title
        return block.title


def _described(block: _Block, title: str) -> list[Found]:
    """A record for each error of a test: soft assertions fail several times."""
    parts: list[list[str]] = [[]]
    after_stack = False
    for line in block.lines:
        if line.startswith("    Error Context:"):
            continue
        if after_stack and _ERROR.match(line):
            parts.append([])
        after_stack = bool(_STACK.match(line)) or (after_stack and not line)
        parts[-1].append(line)
    *suites, leaf = title.split(" › ")
    return [
        javascript.problem(
            leaf, "\n".join(part), suite=" › ".join(suites), own=(block.path,), own_line=block.line
        )
        for part in parts[:50]
    ]


def _loading(text: str) -> Found:
    """An error of no test: of the file that its stack names, or of the run."""
    paths = [frame.path for frame in frames_in(text) if not is_library(frame.path)]
    path = next((each for each in paths if each.startswith("/")), paths[0] if paths else "")
    if not path:
        return javascript.problem("(run)", text, scope="run")
    return javascript.problem(path, text, scope="suite", own=(path,))

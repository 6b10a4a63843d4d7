"""pytest's plain output, of any verbosity and traceback style, also when it ends in the middle.

The sections are read here: progress, failure blocks, the short summary and the last line. What one block says
is in `pytest_blocks`. Source: `_pytest/terminal.py` of pytest 8 and 9, and xdist 3.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from devbay.answers import Counts
from devbay.reports.plain import plain
from devbay.reports.pytest_blocks import Block, describe, run_problem
from devbay.reports.records import (
    MAX_FAILURES,
    MAX_TESTS,
    Found,
    Outcome,
    Parsed,
    Stop,
    TestCase,
    add_counts,
    count,
)
from devbay.reports.source import Source

name = "pytest"
commands = frozenset({"pytest", "py.test"})

_SECTION = re.compile(r"^={2,} (?P<title>.+?) ={2,}$")
_SUMMARY = re.compile(
    r"^(?:=+ )?(?P<counts>(?:\d+ [a-z]+(?: [a-z]+)?(?:, )?)+|no tests ran|no tests collected[^=]*)"
    r" in [\d.]+m?s(?: \([\d:, day]+\))?(?: =+)?$"
)
_COUNTED = re.compile(r"(\d+) ([a-z]+(?: [a-z]+)?)")
_TITLE = re.compile(r"^_+ (?P<title>.+) _+$")
_SEPARATOR = re.compile(r"^(_ )+_?$")
_BANG = re.compile(r"^!{3,} (?P<text>.+) !{3,}$")
_WORDS = r"PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS|RERUN|SUBPASSED|SUBFAILED|SUBSKIPPED|SUBFAIL|SUBPASS"
_VERBOSE = re.compile(rf"^(?P<node>\S+?::.+?) (?P<word>{_WORDS})\b.*$")
_WORKER = re.compile(rf"^\[gw\d+\] (?:\[ *\d+%\] )?(?P<word>{_WORDS}) (?P<node>\S+::.+?)\s*$")
_STARTED = re.compile(r"^(?P<node>[^\s:]+\.py::\S.*?)(?:\s|$)")
_LATE_WORD = re.compile(rf"^(?:.*\s)?(?P<word>{_WORDS})(?: \(.*\))?(?: +\[ *\d+%\])?$")
_PROGRESS = re.compile(
    r"^(?:\S+\.py )?(?P<marks>[.FEsxXRuU,-]+) *(?P<percent>\[ *(\d+)%\]|\[ *(\d+)/(\d+)\])?$"
)
_SHORT = re.compile(
    r"^(?P<word>PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS|SUBFAILED|SUBFAIL)(?P<sub>[\[(].*?)?"
    r" (?P<rest>[^\s:]\S*?\.\w+(?:(?:::| - ).*)?)$"
)
_PREFIX = re.compile(r"^(?P<prefix>\S.{0,60}?[|:>\]] +)=+ [A-Za-z].* =+$", re.MULTILINE)
_TIMESTAMP = re.compile(r"^\d{4}-\d\d-\d\dT[\d:.]+Z ")
_OUTCOMES: dict[str, Outcome] = {
    "PASSED": "passed",
    "XPASS": "passed",
    "FAILED": "failed",
    "ERROR": "error",
    "SKIPPED": "skipped",
    "XFAIL": "skipped",
}
_MARKS: dict[str, Outcome] = {
    ".": "passed", "X": "passed", "F": "failed", "E": "error", "s": "skipped", "x": "skipped"
}  # fmt: skip
_SNIFF = re.compile(
    rb"={5,} (test session starts|short test summary info) ={5,}"
    rb"|^(\x1b\[[\d;]*m|=| )*"
    rb"(\d+ (passed|failed|error|errors|skipped|deselected|xfailed)\b[^\n]{0,80}|no tests ran) in [\d.]+m?s",
    re.MULTILINE,
)


def sniff(head: bytes) -> bool:
    """Whether the bytes hold pytest's banner, its short summary or its last line."""
    return _SNIFF.search(head) is not None


def read(source: Source) -> Parsed:
    """What pytest said. Output that ends without pytest's last line is not complete."""
    reader = _Reader()
    prefix = _line_prefix(source)
    for raw in source.lines():
        line = plain(raw)
        line = _TIMESTAMP.sub("", line)
        if prefix and line.startswith(prefix.rstrip()):
            line = line[len(prefix) :]
        reader.take(line.rsplit("\r", 1)[-1])
    return reader.result()


def _line_prefix(source: Source) -> str:
    """What a wrapper (`docker compose up`, a CI log) puts in front of each line."""
    text = _TIMESTAMP.sub("", plain(source.sample().decode("utf-8", "replace")))
    match = _PREFIX.search(text)
    return match["prefix"] if match else ""


@dataclass
class _Short:
    """A line of the short test summary."""

    word: str
    node: str
    text: str
    used: bool = False

    @classmethod
    def of(cls, word: str, rest: str, sub: str = "") -> _Short:
        """rest: `path::test[a - b] - text`; the node ends at the first ` - ` that no bracket is open at."""
        starts = [match.start() for match in re.finditer(" - ", rest)]
        balanced = (at for at in starts if rest.count("[", 0, at) <= rest.count("]", 0, at))
        end = next(balanced, len(rest))
        return cls(word, rest[:end] + sub, rest[end + 3 :])

    @property
    def path(self) -> str:
        return self.node.partition("::")[0]

    @property
    def title(self) -> str:
        """The test as the head of its block names it: `TestTax.test_unknown_country`."""
        test, bracket, parameters = self.node.partition("::")[2].partition("[")
        return test.replace("::", ".") + bracket + parameters


@dataclass
class _Reader:
    """The state between lines."""

    section: str = ""
    blocks: list[Block] = field(default_factory=list)
    shorts: list[_Short] = field(default_factory=list)
    seen: dict[str, Outcome] = field(default_factory=dict)
    subtests: list[tuple[str, str]] = field(default_factory=list)
    current: str | None = None
    marks: Counter[str] = field(default_factory=Counter)
    percent: int = 0
    counts: Counts | None = None
    ended: bool = False
    going: bool = False
    bang: str = ""
    run_lines: list[str] = field(default_factory=list)
    collecting_run: bool = False

    def take(self, line: str) -> None:
        if self._run_level(line):
            return
        if summary := _SUMMARY.match(line):
            self._summary(_counts(summary["counts"]))
        elif section := _SECTION.match(line):
            self.section = section["title"]
            self.going = self.going or self.section == "test session starts"
        elif bang := _BANG.match(line):
            self.bang = bang["text"]
        elif self.section == "short test summary info":
            self._short(line)
        elif self.section in ("FAILURES", "ERRORS"):
            self._block(line)
        elif self.section in ("", "test session starts"):
            self._progress(line)

    def _summary(self, counts: Counts) -> None:
        """The last line of a session; a command may have run several, one after the other."""
        again = self.ended and self.going
        self.counts = add_counts([self.counts, counts]) if again else counts
        self.ended, self.going, self.section = True, False, ""

    def _run_level(self, line: str) -> bool:
        """Lines about the whole run: crashes, internal and usage errors, a conftest that does not load."""
        if line.startswith("INTERNALERROR> "):
            self.run_lines.append(line)
            return True
        start = re.search(
            r"Fatal Python error: |^\++ Timeout \++$|(?<=\S )\++ Timeout \++$"
            r"|^ImportError while loading conftest |^ERROR: |^\S*: error: ",
            line,
        )
        if start and (not self.section or self.section == "test session starts"):
            if start.start():
                self._progress(line[: start.start()].rstrip("\n"))
            self.run_lines.append(line[start.start() :])
            self.collecting_run = True
            return True
        if self.collecting_run:
            if self.section in ("", "test session starts") and not _SUMMARY.match(line):
                if len(self.run_lines) < 2000:
                    self.run_lines.append(line)
                return True
            self.collecting_run = False
        return False

    def _progress(self, line: str) -> None:
        if match := _VERBOSE.match(line) or _WORKER.match(line):
            self._outcome(match["node"], match["word"])
        elif match := _STARTED.match(line):
            self.current = match["node"]
        elif self.current and (match := _LATE_WORD.match(line)):
            self._outcome(self.current, match["word"])
        elif match := _PROGRESS.match(line):
            self.marks.update(match["marks"])
            if match["percent"]:
                self.percent = int(match[3]) if match[3] else 100 * int(match[4]) // max(1, int(match[5]))
            self.going = True

    def _outcome(self, node: str, word: str) -> None:
        if word.startswith("SUB"):
            return
        if self.current == node:
            self.current = None
        outcome = _OUTCOMES.get(word)
        if outcome and (len(self.seen) < MAX_TESTS or node in self.seen):
            self.seen[node] = outcome

    def _block(self, line: str) -> None:
        title = None if _SEPARATOR.match(line) else _TITLE.match(line)
        if title:
            if len(self.blocks) < MAX_FAILURES:
                self.blocks.append(Block(self.section, title["title"]))
        else:
            if not self.blocks or self.blocks[-1].section != self.section:
                self.blocks.append(Block(self.section, ""))
            self.blocks[-1].add(line)

    def _short(self, line: str) -> None:
        match = _SHORT.match(line)
        if match is None:
            return
        word = match["word"]
        if word.startswith("SUB"):
            self.shorts.append(_Short.of("FAILED", match["rest"], " " + (match["sub"] or "").strip()))
        elif word in ("FAILED", "ERROR"):
            short = _Short.of(word, match["rest"])
            self.shorts.append(short)
            self.seen.setdefault(short.node, _OUTCOMES[word])
        elif word == "PASSED":
            self.seen.setdefault(match["rest"], "passed")

    def result(self) -> Parsed:
        failures = self._failures()
        run = run_problem(self.run_lines, self.bang)
        stopped: Stop | None = None
        if run is not None:
            failures.append(run)
            stopped = "timeout" if run.kind == "timeout" else "crash" if run.kind == "crash" else None
        complete = self.ended or self.percent == 100 or run is not None
        if not complete and self.current and run is None:
            path, _, test = self.current.partition("::")
            failures.append(
                Found(
                    test,
                    suite=path,
                    kind="crash",
                    scope="run",
                    own=(path,),
                    message="the run ended in this test",
                )
            )
        failures += self._unlisted(failures)
        return Parsed(
            counts=self.counts or self._counted(),
            failures=tuple(failures[:MAX_FAILURES]),
            complete=complete,
            problem=None if complete else "pytest's last line is missing",
            tests=self._tests(),
            stopped=stopped,
        )

    def _failures(self) -> list[Found]:
        found: list[Found] = []
        for block in self.blocks:
            if not block.title:
                continue
            short = self._short_of(block)
            found += describe(block, short.node if short else None, short.text if short else "")
        loose = [line for block in self.blocks if not block.title for line in block.located()]
        rest = [short for short in self.shorts if not short.used]
        for short in rest:
            if re.fullmatch(r"contains \d+ failed subtests?", short.text):
                continue
            line = _take_line(loose, short)
            found.append(self._from_short(short, line))
        return found

    def _short_of(self, block: Block) -> _Short | None:
        """The summary line of a block: same title, and of several the one whose file the block mentions."""
        title = block.crashed or block.test
        same = [short for short in self.shorts if not short.used and title in (short.title, short.node)]
        if block.section == "ERRORS":
            same = [short for short in same if short.word == "ERROR"] or same
        else:
            same = [short for short in same if short.word == "FAILED"] or same
        chosen = next((short for short in same if block.mentions(short.path)), same[0] if same else None)
        if chosen is not None:
            chosen.used = True
        return chosen

    def _from_short(self, short: _Short, line: str | None) -> Found:
        block = Block(
            "ERRORS" if short.word == "ERROR" else "FAILURES", short.title or f"ERROR collecting {short.path}"
        )
        if line is not None:
            block.add(line)
        return describe(block, short.node, short.text)[0]

    def _unlisted(self, failures: list[Found]) -> list[Found]:
        """Failures that only the progress shows, because the end of the output is missing."""
        if self.ended or self.shorts or self.blocks:
            return []
        result = []
        for node, outcome in self.seen.items():
            if outcome in ("failed", "error"):
                path, _, test = node.partition("::")
                kind = "error" if outcome == "error" else "failure"
                result.append(Found(test.rpartition("::")[2], suite=path, kind=kind, own=(path,)))  # type: ignore[arg-type]
        return result

    def _counted(self) -> Counts | None:
        """Counts from the progress, for want of a last line."""
        outcomes: Counter[Outcome] = Counter()
        for mark, times in self.marks.items():
            if mark in _MARKS:
                outcomes[_MARKS[mark]] += times
        if outcomes.total() < len(self.seen):
            outcomes = Counter(self.seen.values())
        if not outcomes:
            return None
        return count(outcomes["passed"], outcomes["failed"], outcomes["error"], outcomes["skipped"])

    def _tests(self) -> tuple[TestCase, ...]:
        cases = []
        for node, outcome in list(self.seen.items())[:MAX_TESTS]:
            path, _, test = node.partition("::")
            suite, _, leaf = test.rpartition("::")
            cases.append(TestCase(leaf or path, suite.replace("::", ".") or path, path, None, outcome))
        return tuple(cases)


def _take_line(loose: list[str], short: _Short) -> str | None:
    """The `path:line: message` line of `--tb=line` for a summary line; they come in the same order."""
    for index, line in enumerate(loose):
        text = line.split(": ", 1)[-1]
        start = short.text.removesuffix("...")
        if not start or text.startswith(start) or text.split(": ")[0] == start:
            return loose.pop(index)
    return None


def _counts(text: str) -> Counts:
    """The counts of the last line. Unexpected passes pass, expected failures are skipped."""
    numbers: Counter[str] = Counter()
    for number, word in _COUNTED.findall(text):
        numbers[word] += int(number)
    return count(
        passed=numbers["passed"] + numbers["xpassed"],
        failed=numbers["failed"],
        errors=numbers["error"] + numbers["errors"],
        skipped=numbers["skipped"] + numbers["xfailed"],
    )

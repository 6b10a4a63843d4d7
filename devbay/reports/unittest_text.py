"""The plain output of Python's unittest, and of runners that print alike (Django, nose, Twisted's trial).

Source: `unittest/runner.py` and `unittest/case.py` of Python 3.8 to 3.14.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from devbay.answers import Counts
from devbay.reports.compare import compared
from devbay.reports.locate import frames_in
from devbay.reports.paths import is_library
from devbay.reports.plain import tail
from devbay.reports.records import (
    MAX_FAILURES,
    MAX_TESTS,
    Found,
    Frame,
    Outcome,
    Parsed,
    Phase,
    Scope,
    TestCase,
    count,
)
from devbay.reports.screen import Lines, screen_lines, screen_text
from devbay.reports.source import Source

name = "unittest"
commands = frozenset({"unittest"})

KEPT_OUTPUT = 4_000

_DOUBLE = re.compile(r"={70,}")
_RULE = re.compile(r"-{70,}")
_HEAD = re.compile(
    r"(?P<word>ERROR|FAIL|UNEXPECTED SUCCESS): (?P<test>\S+?)(?: \((?P<id>[\w.<>-]+)\))?(?P<sub> [\[(].*)?"
)
_RAN = re.compile(r"Ran (?P<ran>\d+) tests? in [\d.]+s")
_RESULT = re.compile(r"(?:OK|FAILED|NO TESTS RAN)(?: \((?P<counted>[\w =,]+)\))?")
_COUNTED = re.compile(r"([a-z ]+)=(\d+)")
_WORD = r"(?P<word>ok|FAIL|ERROR|skipped [\"'].*[\"']|expected failure|unexpected success)"
_STARTED = re.compile(
    r"(?P<test>\w+) \((?P<id>[\w.<>-]+)\)(?: (?P<sub>[\[(].*))?(?: \.\.\.(?: (?P<rest>.*))?)?"
)
_LATE = re.compile(rf"(?:.* \.\.\. )?{_WORD}")
_MARKS = re.compile(r"[.FEsxu]+")
_ENDED = re.compile(r"(?P<what>Timeout \(\d+:\d\d:\d\d(?:\.\d+)?\)!|Fatal Python error: .*)$")
_CAPTURED = re.compile(r"Std(?:out|err):")
_LOADER = "unittest.loader."
_HOOKS: dict[str, Phase] = {
    "setUpClass": "setup",
    "setUpModule": "setup",
    "tearDownClass": "teardown",
    "tearDownModule": "teardown",
}
_AROUND: dict[str | None, Phase] = {
    "setUp": "setup",
    "asyncSetUp": "setup",
    "tearDown": "teardown",
    "asyncTearDown": "teardown",
}
_OUTCOMES: dict[str, Outcome] = {
    "ok": "passed", ".": "passed", "FAIL": "failed", "F": "failed", "ERROR": "error", "E": "error",
    "skipped": "skipped", "s": "skipped", "expected failure": "skipped", "x": "skipped",
    "unexpected success": "failed", "u": "failed", "UNEXPECTED SUCCESS": "failed",
}  # fmt: skip
_SNIFF = re.compile(
    r"^Ran \d+ tests? in [\d.]+s$"
    r"|^={70,}\n(?:ERROR|FAIL): \S+.*\n(?:.*\n)?-{70,}$"
    r"|^test\w* \([\w.]+\) \.\.\. ",
    re.MULTILINE,
)


def sniff(head: bytes) -> bool:
    """Whether the bytes hold unittest's last lines, one of its blocks, or a line of its verbose progress."""
    return _SNIFF.search(screen_text(head)) is not None


def read(source: Source) -> Parsed:
    """What unittest said. Output without the line `Ran N tests` is not complete."""
    reader = _Reader()
    for line in screen_lines(source):
        reader.take(line)
    return reader.result()


@dataclass
class _Block:
    """A block that starts with `ERROR: ` or `FAIL: `. ruled: its dashed line is past."""

    word: str
    test: str
    owner: str | None
    sub: str
    lines: Lines = field(default_factory=Lines)
    ruled: bool = False


@dataclass
class _Reader:
    """The state between lines."""

    blocks: list[_Block] = field(default_factory=list)
    block: _Block | None = None
    after_double: bool = False
    seen: dict[tuple[str, str], Outcome] = field(default_factory=dict)
    current: tuple[str, str] | None = None
    marks: Counter[str] = field(default_factory=Counter)
    ran: int | None = None
    counted: Counter[str] = field(default_factory=Counter)
    ending: Lines | None = None

    def take(self, line: str) -> None:
        if self.ending is not None:
            self.ending.add(line)
        elif match := _RAN.fullmatch(line):
            self.ran = (self.ran or 0) + int(match["ran"])
            self.block, self.current = None, None
        elif self.ran is not None and (match := _RESULT.fullmatch(line)):
            for what, number in _COUNTED.findall(match["counted"] or ""):
                self.counted[what.strip()] += int(number)
        elif self.after_double and (match := _HEAD.fullmatch(line)):
            self._begin(match)
        elif self.block is not None and not _DOUBLE.fullmatch(line):
            if _RULE.fullmatch(line) and not self.block.ruled:
                self.block.ruled = True
            elif self.block.ruled:
                self.block.lines.add(line)
        else:
            self._progress(line)
        self.after_double = bool(_DOUBLE.fullmatch(line))

    def _begin(self, match: re.Match[str]) -> None:
        test, identity = match["test"], match["id"]
        block = _Block(match["word"], test, _owner(test, identity), match["sub"] or "")
        self.block = block
        if len(self.blocks) < MAX_FAILURES:
            self.blocks.append(block)
        self.seen.setdefault((test, block.owner or ""), _OUTCOMES[block.word])

    def _progress(self, line: str) -> None:
        if match := _ENDED.search(line):
            if match.start():
                self._progress(line[: match.start()].rstrip())
            self.ending = Lines()
            self.ending.add(match["what"])
        elif match := _STARTED.fullmatch(line):
            self.current = (match["test"], _owner(match["test"], match["id"]) or "")
            if match["rest"] is not None and (late := _LATE.fullmatch(match["rest"])):
                self._outcome(late["word"])
        elif self.current and (match := _LATE.fullmatch(line)):
            self._outcome(match["word"])
        elif _MARKS.fullmatch(line):
            self.marks.update(line)

    def _outcome(self, word: str) -> None:
        outcome = _OUTCOMES["skipped" if word.startswith("skipped") else word]
        if self.current and (len(self.seen) < MAX_TESTS or self.current in self.seen):
            self.seen[self.current] = outcome
        self.current = None

    def result(self) -> Parsed:
        failures = [_describe(block) for block in self.blocks]
        ended = self._ended()
        if ended is not None:
            failures.append(ended)
        return Parsed(
            counts=self._counts(failures),
            failures=tuple(failures),
            complete=self.ran is not None or (ended is not None and self.ending is not None),
            problem=None if self.ran is not None else "unittest's last lines are missing",
            tests=tuple(
                TestCase(test, owner or None, owner or None, None, outcome)
                for (test, owner), outcome in self.seen.items()
            ),
            stopped="timeout" if ended is not None and ended.kind == "timeout" else None,
        )

    def _ended(self) -> Found | None:
        """What ended the run before its last lines, if anything did."""
        if self.ran is not None:
            return None
        test, owner = self.current or ("unittest", "")
        own = (owner,) if owner else ()
        if self.ending is None:
            where = "in this test" if self.current else "before its last lines"
            message = f"the run ended {where}"
            return Found(test, suite=owner or None, kind="crash", scope="run", message=message, own=own)
        lines = self.ending.all
        return Found(
            test,
            suite=owner or None,
            kind="timeout" if lines[0].startswith("Timeout") else "crash",
            scope="run",
            message=lines[0],
            frames=frames_in("\n".join(lines)),
            own=own,
        )

    def _counts(self, failures: Sequence[Found]) -> Counts | None:
        """Of a whole run by its last lines, of one that was cut off by its progress.

        Tests that ran are counted once, however many of their subtests failed; what failed around them
        (`setUpClass`) is counted besides.
        """
        if self.ran is None:
            outcomes = Counter(_OUTCOMES[mark] for mark in self.marks.elements())
            if len(self.seen) >= outcomes.total():
                outcomes = Counter(self.seen.values())
            if not outcomes:
                return None
            return count(outcomes["passed"], outcomes["failed"], outcomes["error"], outcomes["skipped"])
        inside: dict[tuple[str, str | None], str] = {}
        hooks = 0
        for block in self.blocks:
            if block.test in _HOOKS:
                hooks += 1
            else:
                inside.setdefault((block.test, block.owner), block.word)
        listed = Counter(inside.values())
        failed, errors = listed["FAIL"] + self.counted["unexpected successes"], listed["ERROR"]
        skipped = self.counted["skipped"] + self.counted["expected failures"]
        passed = max(0, self.ran - failed - errors - skipped)
        return count(passed, failed, errors + hooks, skipped)


def _owner(test: str, identity: str | None) -> str | None:
    """The class of a test; since Python 3.11 what stands in brackets ends with the test itself."""
    if identity is None:
        return None
    return identity.removesuffix(f".{test}")


def _describe(block: _Block) -> Found:
    body, output = _parts(block.lines.all)
    text = "\n".join(body)
    frames = frames_in(text)
    message = _message(body) or ("the test was expected to fail" if block.word.startswith("UNEX") else "")
    expected, actual = compared(message)
    owner, test = block.owner or "", block.test
    scope: Scope = "test"
    phase = _HOOKS.get(test)
    if phase:
        scope = "suite"
    elif owner.startswith(_LOADER):
        scope, owner, test = "suite", "", _loaded(test, owner)
    else:
        phase = _phase(frames)
    return Found(
        name=test + block.sub,
        suite=owner or None,
        kind="error" if block.word == "ERROR" else "failure",
        scope=scope,
        phase=phase,
        message=message,
        expected=expected,
        actual=actual,
        frames=frames,
        own=(owner or test,) if owner or scope == "suite" else (),
        output=tail("\n".join(output).strip(), KEPT_OUTPUT) or None,
    )


def _loaded(test: str, owner: str) -> str:
    """The module that did not load: `tests.test_a` of `_FailedTest.tests.test_a`."""
    whole = re.sub(r"^unittest\.loader\._\w+\.?", "", owner)
    return f"{whole}.{test}" if whole and not whole.endswith(test) else whole or test


def _phase(frames: Sequence[Frame]) -> Phase | None:
    """Whether the outermost of the user's functions is one that runs before or after the test."""
    return next((_AROUND.get(f.function) for f in reversed(frames) if not is_library(f.path)), None)


def _parts(lines: Sequence[str]) -> tuple[list[str], list[str]]:
    """(Traceback, what `--buffer` captured), without the rule that ends the last block."""
    lines = lines[:-1] if lines and _RULE.fullmatch(lines[-1]) else lines
    start = next((at for at, line in enumerate(lines) if _CAPTURED.fullmatch(line)), len(lines))
    return list(lines[:start]), [line for line in lines[start:] if not _CAPTURED.fullmatch(line)]


def _message(lines: Sequence[str]) -> str:
    """What follows the last frame of a traceback and its code; without a traceback everything."""
    last = max((at for at, line in enumerate(lines) if re.match(r'[ |+]*File "', line)), default=-1)
    if last < 0:
        return "\n".join(lines).strip()
    for at in range(last + 1, len(lines)):
        if re.match(r"[^\s|+-]", lines[at]):
            return "\n".join(lines[at:]).strip()
    return ""

"""TAP 12 to 14, of any producer: test points, plans, subtests in both notations, diagnostics, a bail-out.

This module reads lines; what a failed point says is in `tap_points`. Sources: testanything.org's
specifications of TAP 12, 13 and 14, and the output of Test::More, bats, node:test, tape, AVA, Vitest, Mocha,
Catch2 and pytest-tap.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from dataclasses import dataclass, field, replace

from devbay.reports.plain import plain
from devbay.reports.records import MAX_FAILURES, MAX_TESTS, Found, Outcome, Parsed, TestCase, count
from devbay.reports.source import Source
from devbay.reports.tap_points import Point, describe, perl_blocks, run_problem

name = "tap"
commands = frozenset({"tape", "tap", "faucet"})

MAX_NESTED = 60
KEPT_LINES = 400
_POINT = re.compile(
    r"^(?P<indent>[ \t]*)(?P<not>not )?ok\b(?: (?P<number>\d+))?(?:[ \t]+(?:- ?)?(?P<rest>.*?))?[ \t]*$"
)
_PLAN = re.compile(r"^(?P<indent>[ \t]*)1\.\.(?P<count>\d{1,9})[ \t]*(?:#.*)?$")
_VERSION = re.compile(r"^[ \t]*TAP version \d+[ \t]*$")
_COMMENT = re.compile(r"^(?P<indent>[ \t]*)# ?(?P<text>.*)$")
_BAIL = re.compile(r"^[ \t]*Bail out!(?P<reason>.*)$")
_YAML_START = re.compile(r"^[ \t]+---[ \t]*$")
_YAML_END = re.compile(r"^[ \t]+\.\.\.[ \t]*$")
_DIRECTIVE = re.compile(r"(?<!\\)#[ \t]*(?P<word>skip|todo)(?:ped)?\b[:\s]*(?P<reason>.*)$", re.IGNORECASE)
_TIME = re.compile(r"[ \t]+# time=(?P<ms>[\d.]+)ms[ \t]*$")
_SUBTEST = re.compile(r"^Subtest: (?P<name>.*)$")
_DURATION = re.compile(r" +duration_ms: (\d{1,12}(?:\.\d{1,12})?)$")
_TOTAL = re.compile(r"^(tests|suites|pass|fail|cancelled|skipped|todo|duration_ms|skip|ok) +[\d.]+$|^ok$")
_SNIFF = re.compile(
    rb"^[ \t]*TAP version 1\d[ \t\r]*$|^1\.\.\d{1,9}[ \t\r]*(?:#.*)?$|^(?:not )?ok \d+(?:[ \t]+\S.*)?\r?$",
    re.MULTILINE,
)


def sniff(head: bytes) -> bool:
    """Whether a line is a version, a plan or a numbered test point."""
    return _SNIFF.search(head) is not None


def read(source: Source) -> Parsed:
    """The points. A stream without its plan, or shorter than it, is not complete."""
    reader = _Reader()
    for line in source.lines():
        reader.take(plain(line))
    return reader.result()


@dataclass
class _Level:
    """An open (sub)test: its indent, its announced name, and what was found in it.

    header: the comment that named the current group. comments: those since the last point.
    """

    indent: int
    name: str = ""
    points: int = 0
    failed: int = 0
    header: str = ""
    comments: list[str] = field(default_factory=list)


@dataclass
class _Reader:
    levels: list[_Level] = field(default_factory=lambda: [_Level(0)])
    last: Point | None = None
    yaml: bool = False
    braces: list[Point] = field(default_factory=list)
    failed: list[Point] = field(default_factory=list)
    tests: list[TestCase] = field(default_factory=list)
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    planned: int | None = None
    ran: int = 0
    versions: int = 0
    bail: str | None = None
    noise: deque[str] = field(default_factory=lambda: deque(maxlen=KEPT_LINES))
    died: str | None = None
    late: list[str] = field(default_factory=list)

    def take(self, line: str) -> None:
        if self.yaml and self._in_yaml(line):
            return
        if self.braces and line.strip() == "}":
            self._close()
        elif _YAML_START.match(line) and self.last is not None:
            self.yaml = True
        elif (match := _POINT.match(line)) and self._is_point(match):
            self._point(match)
        elif match := _PLAN.match(line):
            self._plan(match)
        elif match := _COMMENT.match(line):
            self._comment(match)
        elif match := _BAIL.match(line):
            self.bail = match["reason"].strip() or "the producer bailed out"
        elif _VERSION.match(line):
            self.versions += 1
        else:
            self._other(line)

    def _is_point(self, match: re.Match[str]) -> bool:
        """Prose may start with `ok`: a point has a number, a dash, or nothing at all behind it."""
        return bool(match["number"] or match["rest"] is None or re.match(r".*ok\b +- ", match[0]))

    def _in_yaml(self, line: str) -> bool:
        """Take a line of a YAML block; False if the block ended without its mark."""
        if _YAML_END.match(line):
            self.yaml = False
        elif (match := _POINT.match(line)) and match["number"] and not match["indent"] and not self.braces:
            self.yaml = False
            return False
        elif self.last is not None and len(self.last.yaml) < KEPT_LINES:
            self.last.yaml.append(line)
            self._note_duration(self.last, line)
        return True

    def _note_duration(self, point: Point, line: str) -> None:
        """Node tells a test's duration in its block, after the test was counted."""
        match = _DURATION.match(line)
        if match and self.tests and not point.parent and len(self.tests) < MAX_TESTS:
            self.tests[-1] = replace(self.tests[-1], duration_ms=round(float(match[1])))

    def _level(self, indent: int) -> _Level:
        """The level of an indent; levels that are deeper end."""
        while len(self.levels) > 1 and self.levels[-1].indent > indent:
            self.levels.pop()
        if self.levels[-1].indent < indent and len(self.levels) < MAX_NESTED:
            self.levels.append(_Level(indent))
        return self.levels[-1]

    def _point(self, match: re.Match[str]) -> None:
        indent = len(match["indent"].expandtabs())
        children = next((each for each in self.levels if each.indent > indent), None)
        level = self._level(indent)
        rest = match["rest"] or ""
        opens = rest == "{" or rest.endswith(" {")
        rest = rest[:-1].rstrip() if opens else rest
        ms = None
        if time := _TIME.search(rest):
            ms, rest = round(float(time["ms"])) if time["ms"].count(".") < 2 else None, rest[: time.start()]
        directive = _DIRECTIVE.search(rest)
        point = Point(
            number=match["number"] or "",
            name=(rest[: directive.start()] if directive else rest).strip().replace("\\#", "#"),
            ok=match["not"] is None,
            skipped=directive is not None,
            above=self._above(),
            before=level.comments,
            ms=ms,
            parent=children is not None and children.points > 0,
            failed_inside=children.failed if children else 0,
        )
        self._header(level, point)
        level.comments, level.points = [], level.points + 1
        level.failed += not point.ok and not point.skipped
        if indent == self.levels[0].indent:
            self.ran += 1
        if opens:
            self.braces.append(point)
            self.last = None
            self._level(indent + 4).name = point.name
        else:
            self._finished(point)
            self.last = point
        level.name = "" if not self.braces else level.name
        self.noise.clear()

    def _above(self) -> tuple[str, ...]:
        return tuple(level.name for level in self.levels[:-1] if level.name) + tuple(
            name for name in [self.levels[-1].name if self.braces else ""] if name
        )

    def _header(self, level: _Level, point: Point) -> None:
        """Comments before a point: its group's name (tape, Catch2) or the last failure's diagnostics."""
        comments = [text for text in level.comments if not _TOTAL.match(text)]
        if level.name or not comments:
            point.group = "" if level.name else level.header
            return
        last = self.last
        about_last = last is not None and not last.ok and not last.yaml and last.diagnostics
        if about_last and last is not None:
            single = len(last.diagnostics) == 1 and not last.diagnostics[0].startswith(" ")
            if not single or re.search(r"\bline \d+", last.diagnostics[0]):
                point.group, point.before = level.header, []
                return
            last.diagnostics = []
        level.header = point.group = comments[-1]

    def _plan(self, match: re.Match[str]) -> None:
        if len(match["indent"].expandtabs()) == self.levels[0].indent:
            self.planned = (self.planned or 0) + int(match["count"])
        self.last = None

    def _comment(self, match: re.Match[str]) -> None:
        text, indent = match["text"], len(match["indent"].expandtabs())
        if subtest := _SUBTEST.match(text):
            level = self._level(indent)
            level.name = subtest["name"].replace("\\#", "#")
            return
        level = self.levels[-1] if self.levels[-1].indent >= indent else self._level(indent)
        if len(level.comments) < KEPT_LINES:
            level.comments.append(text)
        last = self.last if self.last is not None and not self.last.ok else None
        if last is not None and not _TOTAL.match(text) and len(last.diagnostics) < KEPT_LINES:
            last.diagnostics.append(text)
        if len(self.late) < MAX_FAILURES:
            self.late.append(text)

    def _other(self, line: str) -> None:
        """A line that is not TAP: Mocha's text of a failure, or what the code printed."""
        if self.last is not None and not self.last.ok and line.startswith("  "):
            if len(self.last.text) < KEPT_LINES:
                self.last.text.append(line)
            return
        self.noise.append(line)
        if re.match(r"Node\.js v\d+", line) and self.died is None:
            self.died = "\n".join(self.noise)

    def _close(self) -> None:
        """The end of a subtest in braces."""
        point = self.braces.pop()
        inner = self.levels.pop() if len(self.levels) > 1 else self.levels[0]
        point.parent, point.failed_inside = inner.points > 0, inner.failed
        self._finished(point)
        self.last = None
        self.levels[-1].name = self.braces[-1].name if self.braces else ""

    def _finished(self, point: Point) -> None:
        """Count a point; one that has points of its own counts only for what it failed at itself."""
        if not point.parent:
            self.outcomes[point.outcome()] += 1
            if len(self.tests) < MAX_TESTS:
                self.tests.append(point.test_case())
        if not point.ok and not point.skipped and len(self.failed) < MAX_FAILURES:
            self.failed.append(point)

    def result(self) -> Parsed:
        found: list[Found] = []
        late = perl_blocks(self.late)
        for point in self.failed:
            found += describe(point, late)
        if self.planned is None and not self.ran and self.bail is None and not self.versions:
            return Parsed(counts=None)  # another of its commands, or nothing of it was printed
        complete = self.planned is not None and self.ran >= self.planned
        why = "the plan is missing" if self.planned is None else f"{self.planned} tests were planned"
        run = run_problem(self.bail, self.died, None if complete else f"{why}, {self.ran} ran")
        if run is not None:
            found.append(run)
        outcomes = self.outcomes
        return Parsed(
            counts=count(outcomes["passed"], outcomes["failed"], outcomes["error"], outcomes["skipped"]),
            failures=tuple(found[:MAX_FAILURES]),
            complete=complete or run is not None,
            problem=None if complete else f"{why}, {self.ran} ran",
            tests=tuple(self.tests),
            stopped="crash" if run is not None and run.kind == "crash" else None,
        )

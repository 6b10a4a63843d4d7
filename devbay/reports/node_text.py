"""node:test's spec reporter, the default at a terminal. Source: `lib/internal/test_runner`, node 20 to 24."""

from __future__ import annotations

import re
from collections import Counter, deque
from dataclasses import dataclass, field

from devbay.reports import javascript
from devbay.reports.locate import frames_in
from devbay.reports.paths import looks_like_path
from devbay.reports.plain import overwritten, plain
from devbay.reports.records import MAX_FAILURES, MAX_TESTS, Found, Outcome, Parsed, Phase, TestCase, count
from devbay.reports.source import Source

name = "node-test"
commands: frozenset[str] = frozenset()

KEPT_LINES = 2_000
_TOTAL = re.compile(
    r"^ℹ (?P<word>tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) (?P<number>[\d.]+)$"
)
_FAILING = re.compile(r"^✖ failing tests:$")
_AT = re.compile(r"^test at (?P<path>.+):(?P<line>\d+):\d+$")
_RESULT = re.compile(
    r"^(?P<indent> *)(?P<mark>[✔✖﹣⚠▶]) (?P<name>.*?)(?: \((?P<ms>[\d.]+)ms\))?"
    r"(?P<directive> # (?:SKIP|TODO|.*))?$"
)
_SNIFF = re.compile(r"^ℹ (?:tests|suites|pass) \d+$|^✖ failing tests:$", re.MULTILINE)
_CANCELLED = "test did not finish before its parent"


def sniff(head: bytes) -> bool:
    return _SNIFF.search(javascript.printed(head)) is not None


def read(source: Source) -> Parsed:
    """What the reporter said. Totals are the runner's own; suites and cancelled parents are no tests."""
    reader = _Reader()
    for line in source.lines():
        reader.take(overwritten(plain(line)))
    return reader.result()


@dataclass
class _Block:
    """A failure of the list at the end."""

    path: str
    line: int
    name: str = ""
    lines: list[str] = field(default_factory=list)


@dataclass
class _Reader:
    totals: dict[str, int] = field(default_factory=dict)
    blocks: list[_Block] = field(default_factory=list)
    listing: bool = False
    suites: list[tuple[int, str]] = field(default_factory=list)
    around: dict[str, list[str]] = field(default_factory=dict)  # suites of each failed name, in order
    groups: dict[str, bool] = field(default_factory=dict)  # suite: whether a test in it failed
    tests: list[TestCase] = field(default_factory=list)
    printed: deque[str] = field(default_factory=lambda: deque(maxlen=200))
    before: dict[str, str] = field(default_factory=dict)

    def take(self, line: str) -> None:
        if match := _TOTAL.match(line):
            if match["word"] != "duration_ms":
                word = match["word"]
                self.totals[word] = self.totals.get(word, 0) + int(float(match["number"]))
        elif _FAILING.match(line):
            self.listing = True
        elif self.listing:
            self._listed(line)
        elif match := _RESULT.match(line):
            self._result(match)
        else:
            self.printed.append(line)

    def _listed(self, line: str) -> None:
        if match := _AT.match(line):
            if len(self.blocks) < MAX_FAILURES:
                self.blocks.append(_Block(match["path"], int(match["line"])))
            return
        block = self.blocks[-1] if self.blocks else None
        if block is None:
            return
        match = _RESULT.match(line)
        if not block.name and match and not match["indent"]:
            if match["directive"]:  # a test that is still to do may fail
                self.blocks.pop()
            block.name = match["name"]
        elif len(block.lines) < KEPT_LINES:
            block.lines.append(line)

    def _result(self, match: re.Match[str]) -> None:
        indent, mark, title = len(match["indent"]), match["mark"], match["name"]
        while self.suites and self.suites[-1][0] > indent:
            self.suites.pop()
        if mark == "▶":
            if self.suites and self.suites[-1][0] == indent:
                self.suites.pop()
            self.suites.append((indent, title))
            self.groups.setdefault(title, False)
            return
        ends = self.suites[-1] == (indent, title) if self.suites else False
        if self.suites and self.suites[-1][0] == indent:
            self.suites.pop()
        inside = [each for _, each in self.suites]
        if mark == "✖":
            if not ends:
                for each in inside:
                    self.groups[each] = True
            if len(self.around) < MAX_FAILURES:
                self.around.setdefault(title, []).append(" › ".join(inside))
            if looks_like_path(title):
                self.before[title] = "\n".join(self.printed)
        self.printed.clear()
        if not ends and len(self.tests) < MAX_TESTS:
            outcome: Outcome = "passed" if mark == "✔" else "failed" if mark == "✖" else "skipped"
            outcome = "skipped" if match["directive"] else outcome
            ms = round(float(match["ms"])) if match["ms"] and match["ms"].count(".") < 2 else None
            self.tests.append(TestCase(title, " › ".join(inside) or None, None, ms, outcome))

    def result(self) -> Parsed:
        failures = [found for block in self.blocks if (found := self._described(block)) is not None]
        complete = "tests" in self.totals
        if not (complete or self.tests or failures):
            return Parsed(counts=None)
        totals = Counter(self.totals)
        counts = count(
            totals["pass"],
            totals["fail"] + totals["cancelled"],
            0,
            totals["skipped"] + totals["todo"],
        )
        if not complete:
            outcomes = Counter(test.outcome for test in self.tests)
            counts = count(outcomes["passed"], outcomes["failed"], 0, outcomes["skipped"])
            failures = [javascript.problem(test.name, "", suite=test.suite) for test in self.tests
                        if test.outcome == "failed"]  # fmt: skip
            failures.append(javascript.died("node:test", bool(self.tests)))
        return Parsed(
            counts=counts,
            failures=tuple(failures),
            complete=complete,
            problem=None if complete else "the totals of node:test are missing",
            tests=tuple(self.tests),
            stopped=None if complete else "crash",
        )

    def _described(self, block: _Block) -> Found | None:
        text = "\n".join(block.lines).strip("\n")
        said = text.strip()
        if said.startswith("'") and said.endswith("'") and "\n    at " not in said:
            text = said = said[1:-1]
        if said.startswith(_CANCELLED):
            return None
        if said == "test failed" and looks_like_path(block.name):
            return _file_failed(block, self.before.get(block.name, ""))
        suites = self.around.get(block.name) or [""]
        hook = "TestHook." in text or "hookFailed" in text
        whole = hook and block.name in self.groups
        late = whole and not self.groups[block.name]
        phase: Phase | None = ("teardown" if late else "setup") if hook else None
        found = javascript.problem(
            block.name,
            text,
            suite=suites.pop(0) if len(suites) > 1 else suites[0],
            scope="suite" if whole else "test",
            phase=phase,
            kind="error" if hook else None,
            own=(block.path,),
            own_line=block.line,
        )
        return None if re.fullmatch(r"\d+ subtests? failed", found.message) else found


def _file_failed(block: _Block, printed: str) -> Found:
    """A file that could not be run; what it printed stands before its result."""
    lines = printed.split("\n")
    error = next(
        (i for i, line in enumerate(lines) if re.match(r"[A-Z]\w*(?:Error|Exception)\b", line)), None
    )
    said = "\n".join(lines[error:]) if error is not None else printed.strip() or "test failed"
    said = re.split(r"\nNode\.js v\d", said)[0]
    return javascript.problem(block.name, said, scope="suite", own=(block.name,), frames=frames_in(printed))

"""The packages and tests of a `go test` run, whichever format told of them: outcomes, counts, problems.

Subtests count once: a parent that only fails because a subtest did is no test of its own.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from devbay.reports.go_blocks import describe, describe_run, panic_start, running_tests, test_in
from devbay.reports.go_build import Build
from devbay.reports.records import MAX_FAILURES, MAX_TESTS, Found, Outcome, Parsed, TestCase, count

MAX_LINES = 200
MAX_WIDTH = 4_000
MAX_KEPT = 32 * 1024 * 1024
"""Characters of output kept of all tests that did not pass; further ones are told without their output."""
MAX_OPEN = 100_000


@dataclass
class Room:
    """How much of the tests' output may still be kept."""

    left: int = MAX_KEPT


@dataclass
class Lines:
    """The first and last lines of an output."""

    room: Room
    first: list[str] = field(default_factory=list)
    last: deque[str] | None = None

    def add(self, line: str) -> None:
        line = line[:MAX_WIDTH]
        if self.room.left < len(line):
            return
        if len(self.first) < MAX_LINES:
            self.first.append(line)
        else:
            if self.last is None:
                self.last = deque(maxlen=MAX_LINES)
            if len(self.last) == MAX_LINES:
                self.room.left += len(self.last[0])
            self.last.append(line)
        self.room.left -= len(line)

    def drop(self) -> None:
        self.room.left += sum(map(len, self.all()))
        self.first, self.last = [], None

    def all(self) -> list[str]:
        return [*self.first, *(self.last or ())]


@dataclass
class Test:
    """A test, subtest, example, fuzz target or seed. outcome: None while it runs."""

    __test__ = False

    name: str
    lines: Lines
    outcome: Outcome | None = None
    duration_ms: int | None = None


@dataclass
class Package:
    """A package whose tests run. loose: what was printed outside of tests. beyond: tests only counted."""

    room: Room
    loose: Lines
    name: str | None = None
    tests: dict[str, Test] = field(default_factory=dict)
    beyond: Counter[Outcome] = field(default_factory=Counter)

    @classmethod
    def of(cls, run: Run, name: str | None = None) -> Package:
        return cls(run.room, Lines(run.room), name)

    def test(self, name: str) -> Test:
        if name not in self.tests and len(self.tests) >= MAX_OPEN:
            return Test(name, Lines(self.room))
        return self.tests.get(name) or self.tests.setdefault(name, Test(name, Lines(self.room)))

    def ended(self, name: str, outcome: Outcome, duration_ms: int | None) -> Test:
        test = self.test(name)
        if name not in self.tests:
            self.beyond[outcome] += 1
        test.outcome, test.duration_ms = outcome, duration_ms
        if outcome == "passed":
            test.lines.drop()
        return test


@dataclass
class Run:
    """All packages. all_seen: passing tests are printed too, so that the counts are the run's."""

    build: Build = field(default_factory=Build)
    room: Room = field(default_factory=Room)
    outcomes: dict[Outcome, int] = field(
        default_factory=lambda: {"passed": 0, "failed": 0, "error": 0, "skipped": 0}
    )
    failures: list[Found] = field(default_factory=list)
    tests: list[TestCase] = field(default_factory=list)
    all_seen: bool = True
    timed_out: bool = False
    ended_packages: int = 0

    def end(self, package: Package, failed: bool, cut: bool = False) -> None:
        """A package is over. cut: the output ended before the package did."""
        self.ended_packages += 1
        parents = _ancestors(package.tests)
        any_failed = self._blame(package) if failed or cut else False
        blamed = _ancestors(name for name, test in package.tests.items() if test.outcome == "failed")
        for test in package.tests.values():
            if test.outcome is None:
                continue
            failing = test.outcome == "failed"
            any_failed = any_failed or failing
            if test.name in parents and not (failing and _alone(test, blamed)):
                continue
            self._count(test, package)
        for outcome, number in package.beyond.items():
            self.outcomes[outcome] += number
        any_failed = any_failed or package.beyond["failed"] > 0
        if failed and not any_failed and not self.build.failing(package.name or ""):
            self._unexplained(package)

    def result(self, complete: bool, problem: str | None = None) -> Parsed:
        counts = count(
            self.outcomes["passed"],
            self.outcomes["failed"],
            self.outcomes["error"],
            self.outcomes["skipped"],
        )
        failures = [*self.build.failures(), *self.failures][:MAX_FAILURES]
        known = self.all_seen or counts.total
        return Parsed(
            counts=counts if known else None,
            failures=tuple(failures),
            complete=complete,
            problem=problem,
            tests=tuple(self.tests),
            stopped="timeout" if self.timed_out else None,
        )

    def _count(self, test: Test, package: Package) -> None:
        outcome = test.outcome
        if outcome == "failed":
            found = describe(test.name, package.name, test.lines.all())
            self.timed_out = self.timed_out or found.kind == "timeout"
            outcome = "error" if found.kind != "failure" else "failed"
            if len(self.failures) < MAX_FAILURES:
                self.failures.append(found)
        if outcome is None:
            return
        self.outcomes[outcome] += 1
        if len(self.tests) < MAX_TESTS:
            self.tests.append(TestCase(test.name, package.name, None, test.duration_ms, outcome))

    def _blame(self, package: Package) -> bool:
        """Give a trace that stands outside of tests to the test it is about; whether there is one."""
        lines = package.loose.all()
        at = panic_start(lines)
        if at is None:
            return False
        trace = lines[at:]
        names = running_tests(trace)
        names = [name for name in names if name not in _ancestors(names)]
        for name in names:
            package.test(name).outcome = "failed"
            for line in trace:
                package.test(name).lines.add(line)
        if names:
            package.loose.drop()
        return bool(names)

    def _unexplained(self, package: Package) -> None:
        """A package that failed although no test of it did: it crashed, exited, or never began."""
        running = [test for test in package.tests.values() if test.outcome is None]
        outer = _ancestors(test.name for test in running)
        inner = [test for test in running if test.name not in outer]
        own = next((lines for t in inner if panic_start(lines := t.lines.all()) is not None), None)
        if own is None and len(inner) == 1:
            own = inner[0].lines.all()
        lines = [*(own or []), *package.loose.all()]
        start = panic_start(lines)
        named = test_in(lines[start:]) if start is not None else None
        last = next((test for test in inner if test.name == named), inner[-1] if inner else None)
        found = describe_run(package.name or "go test", lines, last.name if last else None)
        if found.kind == "timeout":
            self.timed_out = True
            if last is not None:
                found = replace(found, scope="test")
                self.outcomes["error"] += 1
        self.failures.append(found)


def _ancestors(names: Iterable[str]) -> set[str]:
    """The tests that others, by their names, are subtests of."""
    found: set[str] = set()
    for name in names:
        while "/" in name and (name := name.rpartition("/")[0]) not in found:
            found.add(name)
    return found


def _alone(test: Test, blamed: set[str]) -> bool:
    """Whether a parent failed although none of its subtests did, or with a panic of its own."""
    return test.name not in blamed or panic_start(test.lines.all()) is not None

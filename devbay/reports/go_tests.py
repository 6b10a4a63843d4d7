"""The packages and tests of a `go test` run, whichever format told of them: outcomes, counts, problems.

Subtests count once: a parent that only fails because a subtest did is no test of its own.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace

from devbay.reports.go_blocks import describe, describe_run, panic_start, running_tests, test_in
from devbay.reports.go_build import Build
from devbay.reports.records import MAX_FAILURES, MAX_TESTS, Found, Outcome, Parsed, TestCase, count

MAX_LINES = 400
MAX_OPEN = 50_000


@dataclass
class Lines:
    """The first and last lines of an output."""

    first: list[str] = field(default_factory=list)
    last: deque[str] = field(default_factory=lambda: deque(maxlen=MAX_LINES))

    def add(self, line: str) -> None:
        if len(self.first) < MAX_LINES:
            self.first.append(line)
        else:
            self.last.append(line)

    def all(self) -> list[str]:
        return [*self.first, *self.last]


@dataclass
class Test:
    """A test, subtest, example, fuzz target or seed. outcome: None while it runs."""

    __test__ = False

    name: str
    outcome: Outcome | None = None
    duration_ms: int | None = None
    lines: Lines = field(default_factory=Lines)


@dataclass
class Package:
    """A package whose tests run. loose: what was printed outside of tests."""

    name: str | None = None
    tests: dict[str, Test] = field(default_factory=dict)
    loose: Lines = field(default_factory=Lines)

    def test(self, name: str) -> Test:
        if name not in self.tests and len(self.tests) >= MAX_OPEN:
            return Test(name)
        return self.tests.setdefault(name, Test(name))

    def ended(self, name: str, outcome: Outcome, duration_ms: int | None) -> Test:
        test = self.test(name)
        test.outcome, test.duration_ms = outcome, duration_ms
        if outcome == "passed":
            test.lines = Lines()
        return test


@dataclass
class Run:
    """All packages. all_seen: passing tests are printed too, so that the counts are the run's."""

    build: Build = field(default_factory=Build)
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
        parents = {name.rpartition("/")[0] for name in package.tests if "/" in name}
        parents |= {parent.rpartition("/")[0] for parent in parents if "/" in parent}
        blamed = self._blame(package, parents) if failed or cut else False
        any_failed = blamed
        for test in package.tests.values():
            if test.outcome is None:
                continue
            failing = test.outcome == "failed"
            any_failed = any_failed or failing
            if test.name in parents and not (failing and self._alone(test, package)):
                continue
            self._count(test, package)
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

    def _alone(self, test: Test, package: Package) -> bool:
        """Whether a parent failed although none of its subtests did, or with a panic of its own."""
        below = (t for name, t in package.tests.items() if name.startswith(test.name + "/"))
        if panic_start(test.lines.all()) is not None:
            return True
        return not any(each.outcome in ("failed", "error") for each in below)

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

    def _blame(self, package: Package, parents: set[str]) -> bool:
        """Give a trace that stands outside of tests to the test it is about; whether there is one."""
        lines = package.loose.all()
        at = panic_start(lines)
        if at is None:
            return False
        trace = lines[at:]
        names = running_tests(trace)
        names = [name for name in names if not any(other.startswith(name + "/") for other in names)]
        for name in names:
            package.test(name).outcome = "failed"
            for line in trace:
                package.test(name).lines.add(line)
        if names:
            package.loose = Lines()
        return bool(names)

    def _unexplained(self, package: Package) -> None:
        """A package that failed although no test of it did: it crashed, exited, or never began."""
        running = [test for test in package.tests.values() if test.outcome is None]
        inner = [t for t in running if not any(o.name.startswith(t.name + "/") for o in running)]
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

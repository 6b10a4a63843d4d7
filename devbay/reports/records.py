"""What a report format yields: counts, problems found, and the tests that ran, before paths are mapped."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

from devbay.answers import Counts

Kind = Literal["failure", "error", "timeout", "crash"]
Scope = Literal["test", "suite", "run", "finding"]
Phase = Literal["setup", "teardown"]
Outcome = Literal["passed", "failed", "error", "skipped"]
Stop = Literal["crash", "timeout"]

MAX_FAILURES = 20_000
MAX_TESTS = 200_000
"""Bounds on what one report keeps in memory; counts go on beyond them."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One place in a stack, with the path as the output spelled it.

    line: 1-based. cause: it belongs to an earlier exception that led to the one that was raised.
    """

    path: str
    line: int
    function: str | None = None
    cause: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """One problem as a format found it.

    frames: deepest first. own: spellings of the test's own file, most reliable first (a path, or a dotted
    class or module name). own_line: where the runner says that the test is, for want of a frame. package: the
    import path that bare file names stand in (Go).
    """

    name: str
    suite: str | None = None
    kind: Kind = "failure"
    scope: Scope = "test"
    phase: Phase | None = None
    message: str = ""
    expected: str | None = None
    actual: str | None = None
    frames: tuple[Frame, ...] = ()
    own: tuple[str, ...] = ()
    own_line: int | None = None
    output: str | None = None
    package: str | None = None


@dataclass(frozen=True, slots=True)
class TestCase:
    """One test of a run, for the history. file: as the report spelled it, until it is mapped."""

    __test__: ClassVar[bool] = False

    name: str
    suite: str | None
    file: str | None
    duration_ms: int | None
    outcome: Outcome


@dataclass(frozen=True)
class Parsed:
    """What one source said.

    counts: None where it cannot be known. complete: False if the source ends before the report does.
    problem: what was wrong with the source itself, in words. stopped: the run ended early as a whole.
    checker: this is a linter's or type checker's report, in which nothing found is good. hidden: failures
    that the source counts but does not list.
    """

    counts: Counts | None
    failures: tuple[Found, ...] = ()
    complete: bool = True
    problem: str | None = None
    tests: tuple[TestCase, ...] = ()
    stopped: Stop | None = None
    checker: bool = False
    hidden: int = 0


def count(passed: int = 0, failed: int = 0, errors: int = 0, skipped: int = 0) -> Counts:
    """Counts whose total is the sum of the parts."""
    total = passed + failed + errors + skipped
    return Counts(total=total, passed=passed, failed=failed, errors=errors, skipped=skipped)


def add_counts(counts: Iterable[Counts | None]) -> Counts | None:
    """The sum of those that are known; None if none is."""
    known = [each for each in counts if each is not None]
    if not known:
        return None
    return count(
        sum(each.passed for each in known),
        sum(each.failed for each in known),
        sum(each.errors for each in known),
        sum(each.skipped for each in known),
    )


def merge(parts: Iterable[Parsed]) -> Parsed:
    """Several files of one run as one report."""
    parts = list(parts)
    problems = [part.problem for part in parts if part.problem]
    return Parsed(
        counts=add_counts(part.counts for part in parts),
        failures=tuple(found for part in parts for found in part.failures)[:MAX_FAILURES],
        complete=all(part.complete for part in parts),
        problem="; ".join(problems[:3]) or None,
        tests=tuple(test for part in parts for test in part.tests)[:MAX_TESTS],
        stopped=next((part.stopped for part in parts if part.stopped), None),
        checker=any(part.checker for part in parts),
        hidden=sum(part.hidden for part in parts),
    )

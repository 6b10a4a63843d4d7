"""The history of runs: their tests in the store, the last failures, and the run to compare with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from devbay.answers import Failure, RunResult
from devbay.bays.parts import Bay
from devbay.errors import DevbayError
from devbay.reports.records import TestCase
from devbay.store import RunRecord, RunTestRecord, Store
from devbay.tasks.compare import Key, compare, with_flaky

KEPT_RUNS = 50
"""Runs of a task in a bay that keep their tests."""
MAX_TESTS = 10_000
"""Tests kept of one run."""
BASE = "base"


@dataclass(frozen=True)
class Baseline:
    """The run that another is compared with. what: in words."""

    run: RunRecord
    what: str


def last_failures(store: Store, bay: Bay, task: str) -> list[Failure]:
    """What failed in the last run of a task in a bay. Raises `no_earlier_run`, `nothing_failed`."""
    run = store.newest_run(task, bay_id=bay.record.id)
    if run is None:
        raise DevbayError(
            "no_earlier_run",
            f"{task} has not run in {bay.record.name} yet, so there are no last failures",
            next=f"bay_run_task(bay={bay.record.name!r}, task={task!r})",
        )
    failures = [failure for failure in _failures(run) if failure.scope in ("test", "suite")]
    if not failures:
        why = "passed" if run.status == "passed" else f"ended as {run.status} and names no failed test"
        raise DevbayError(
            "nothing_failed",
            f"the last run of {task} in {bay.record.name} ({run.id}) {why}",
            next=f"bay_run_task(bay={bay.record.name!r}, task={task!r})",
        )
    return failures


def baseline(store: Store, bay: Bay, task: str, compare_to: str, open_bay: Callable[[str], Bay]) -> Baseline:
    """The run that `compare_to` names: `base`, a run's id, or a bay.

    Raises `no_run_to_compare`, `other_task`, and what opening a bay raises.
    """
    if compare_to == BASE:
        commit = bay.record.base_commit
        run = store.newest_run(task, commit=commit, whole=True) if commit else None
        if run is None:
            raise DevbayError(
                "no_run_to_compare",
                f"{task} has not run on the base commit {commit[:10] or '(unknown)'} of {bay.record.name}"
                " without local changes",
                next=f"bay_create(name='base-{commit[:7]}', from_branch={commit!r}), and run {task} there",
            )
        return Baseline(run, f"base {commit[:10]} ({run.id})")
    run = store.run(compare_to)
    if run is not None:
        if run.task != task:
            raise DevbayError(
                "other_task",
                f"run {run.id} is of the task {run.task}, not {task}",
                next="name a run of the task",
            )
        if run.result is None or "exit_code" not in run.result:
            raise DevbayError(
                "no_run_to_compare", f"run {run.id} has no result to compare with", next="name another run"
            )
        return Baseline(run, run.id)
    other = open_bay(compare_to)
    run = store.newest_run(task, bay_id=other.record.id, whole=True)
    if run is None:
        raise DevbayError(
            "no_run_to_compare",
            f"{task} has not run in {other.record.name} yet",
            next=f"bay_run_task(bay={other.record.name!r}, task={task!r})",
        )
    return Baseline(run, f"{other.record.name} ({run.id})")


def told(
    store: Store, result: RunResult, tests: Sequence[TestCase], against: Baseline | None, *, whole: bool
) -> RunResult:
    """A result with what the history adds: flaky tests and the comparison. whole: no test was left out."""
    changes: dict[str, object] = {}
    tree = result.tree
    if tree is not None and tree.commit and not tree.dirty and result.failures and result.task:
        passed = store.passed_on(tree.commit, result.task)
        changes["failures"] = with_flaky(result.failures, passed)
    if against is not None and result.exit_code is not None:
        passed_here: list[Key] = [(t.file, t.suite, t.name) for t in tests if t.outcome == "passed"]
        # of a run that failed, what did not fail passed only if the report does not list what did
        ended = result.status == "passed" or (result.reason == "tests_failed" and not passed_here)
        changes["comparison"] = compare(
            against.what, result.failures, _failures(against.run), passed_here, whole=whole and ended
        )
    return result.model_copy(update=changes) if changes else result


def remember(store: Store, run: RunRecord, tests: Sequence[TestCase]) -> None:
    """Keep a run's tests, failing ones first where there are too many."""
    if len(tests) > MAX_TESTS:
        tests = sorted(tests, key=lambda test: test.outcome in ("passed", "skipped"))[:MAX_TESTS]
    records = [RunTestRecord(run.id, t.suite, t.name, t.file, t.outcome, t.duration_ms) for t in tests]
    store.add_run_tests(run, records, keep=KEPT_RUNS)


def recalled(store: Store, run: str) -> list[TestCase]:
    """The tests that are kept of a run."""
    return [
        TestCase(test.name, test.suite, test.file, test.duration_ms, test.outcome)  # type: ignore[arg-type]
        for test in store.run_tests(run)
    ]


def _failures(run: RunRecord) -> list[Failure]:
    return RunResult.model_validate(run.result).failures if run.result else []

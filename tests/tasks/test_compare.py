"""Comparisons of runs, flaky tests, and the history that they come from."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from devbay.answers import Failure, RunResult, Tree
from devbay.errors import DevbayError
from devbay.reports.records import TestCase
from devbay.store import RunRecord, Store
from devbay.tasks.compare import Tests, compare, with_flaky
from devbay.tasks.history import baseline, last_failures, recalled, remember, told


def failed(name: str, file: str | None = "a.py", suite: str | None = None, **more: Any) -> Failure:
    return Failure(name=name, file=file, suite=suite, **more)


def test_failures_are_new_fixed_or_shared() -> None:
    here = [failed("new"), failed("both"), failed("(run)", None, scope="run")]
    there = [failed("both"), failed("fixed"), failed("not run here")]
    found = compare("main (r1)", here, there, [("a.py", None, "fixed")], whole=False)
    assert found.as_json() == {
        "with": "main (r1)", "new": ["a.py: new"], "fixed": ["a.py: fixed"], "shared": ["a.py: both"],
    }  # fmt: skip
    assert compare("r", here, there, [], whole=True).fixed == ["a.py: fixed", "a.py: not run here"]


def test_a_finding_is_the_same_on_another_line() -> None:
    here = [failed("E501", message="too long", line=9, scope="finding")]
    there = [
        failed("E501", message="too long", line=3, scope="finding"),
        failed("E501", message="x", scope="finding"),
    ]
    found = compare("r", here, there, [], whole=False)
    assert (len(found.new), len(found.shared)) == (0, 1)


def test_names_are_bounded_and_what_is_left_out_is_counted() -> None:
    found = compare("r", [failed(f"{n} {'x' * 300}") for n in range(100)], [], [], whole=True)
    assert sum(map(len, found.new)) <= 1_200
    assert len(found.new) + found.more_new == 100


def test_tests_of_one_name_in_two_files_are_kept_apart_where_files_are_known() -> None:
    tests = Tests([("a.js", None, "works"), (None, "s", "x")])
    assert ("a.js", None, "works") in tests
    assert ("b.js", None, "works") not in tests
    assert (None, None, "works") in tests
    assert ("b.js", "s", "x") in tests
    assert ("a.js", "t", "works") not in tests


def test_only_a_test_that_passed_elsewhere_is_flaky() -> None:
    marked = with_flaky([failed("a"), failed("b"), failed("a", scope="suite")], [("a.py", None, "a")])
    assert [failure.flaky for failure in marked] == [True, False, False]
    assert "flaky" not in marked[1].as_json()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "home" / "state.db")


def bay(name: str = "one", base: str = "c0") -> Any:
    return SimpleNamespace(record=SimpleNamespace(id=f"id-{name}", name=name, base_commit=base))


def ended(
    store: Store, run: str, status: str, *failures: Failure, bay_id: str = "id-one", **more: Any
) -> None:
    result = RunResult(run=run, status=status, exit_code=1, failures=list(failures))  # type: ignore[arg-type]
    record = RunRecord(run, bay_id, "unit", status, "t", "/f", result=result.as_json(), **more)
    store.add_run(record)
    remember(store, record, [TestCase("good", None, "a.py", 3, "passed")])


def test_the_last_failures_are_those_of_the_last_run(store: Store) -> None:
    ended(store, "r0", "failed", failed("old"))
    ended(store, "r1", "failed", failed("a"), failed("(run)", None, scope="run"))
    ended(store, "r2", "cancelled", failed("b"))
    ended(store, "r3", "failed", failed("c"), bay_id="id-two")
    assert [failure.name for failure in last_failures(store, bay(), "unit")] == ["a"]


@pytest.mark.parametrize(("status", "code"), [(None, "no_earlier_run"), ("passed", "nothing_failed"),
                                              ("error", "nothing_failed")])  # fmt: skip
def test_without_last_failures_the_error_says_what_there_was(
    store: Store, status: str | None, code: str
) -> None:
    if status:
        ended(store, "r0", status)
    with pytest.raises(DevbayError) as caught:
        last_failures(store, bay(), "unit")
    assert caught.value.code == code
    assert "bay_run_task" in caught.value.next


def test_a_run_is_compared_with_a_bay_a_run_or_the_base_commit(store: Store) -> None:
    ended(store, "r0", "passed", bay_id="id-two", tree_commit="c0", tree_dirty=False)
    ended(store, "r1", "passed", bay_id="id-two", tree_commit="c1", tree_dirty=False)
    found = [
        baseline(store, bay(), "unit", what, lambda name: bay(name)).run.id for what in ("two", "r0", "base")
    ]
    assert found == ["r1", "r0", "r0"]


@pytest.mark.parametrize(
    ("what", "task", "code"),
    [("empty", "unit", "no_run_to_compare"), ("base", "lint", "no_run_to_compare"),
     ("r0", "lint", "other_task"), ("r1", "unit", "no_run_to_compare")],
)  # fmt: skip
def test_what_cannot_be_compared_with_is_an_error_with_a_way_on(
    store: Store, what: str, task: str, code: str
) -> None:
    ended(store, "r0", "passed", tree_commit="c0", tree_dirty=False)
    store.add_run(RunRecord("r1", "id-one", "unit", "running", "t", "/f"))
    with pytest.raises(DevbayError) as caught:
        baseline(store, bay(), task, what, lambda name: bay(name))
    assert caught.value.code == code
    assert caught.value.next


def test_a_failure_of_a_clean_tree_is_flaky_if_the_test_passed_on_that_commit(store: Store) -> None:
    ended(store, "r0", "passed", tree_commit="c0", tree_dirty=False)
    for dirty, flaky in ((False, True), (True, False)):
        result = RunResult(
            task="unit",
            status="failed",
            exit_code=1,
            tree=Tree(commit="c0", dirty=dirty),
            failures=[failed("good")],
        )
        assert told(store, result, [], None, whole=True).failures[0].flaky is flaky


def test_the_tests_of_a_run_are_recalled_with_their_durations(store: Store) -> None:
    ended(store, "r0", "passed")
    assert recalled(store, "r0") == [TestCase("good", None, "a.py", 3, "passed")]

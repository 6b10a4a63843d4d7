import pytest

from devbay.answers import Counts, Failure, ReportSource
from devbay.reports.records import Stop, count
from devbay.reports.verdict import Ending, Reading, ReportProblem, verdict

REPORT = ReportSource(format="junit", source="r.xml")
TEST = Failure(name="t", message="no")
LOADING = Failure(name="a.py", scope="suite", kind="error")
HOOK = Failure(name="before all", scope="suite", kind="error", phase="setup")
FINDING = Failure(name="E1", scope="finding")
CRASH = Failure(name="t", scope="run", kind="crash")


def reading(
    counts: Counts | None = None,
    *failures: Failure,
    complete: bool = True,
    stopped: Stop | None = None,
    checker: bool = False,
    hidden: int = 0,
) -> Reading:
    return Reading(
        REPORT, counts, failures, complete=complete, stopped=stopped, checker=checker, hidden=hidden
    )


GREEN, RED = count(passed=2), count(passed=1, failed=1)


@pytest.mark.parametrize(
    ("code", "read", "status", "reason"),
    [
        (0, reading(GREEN), "passed", None),
        (0, reading(count(skipped=2)), "passed", None),
        (0, reading(count(), checker=True), "passed", None),
        (1, reading(RED, TEST), "failed", "tests_failed"),
        (1, reading(RED), "failed", "tests_failed"),
        (1, reading(count(failed=1), FINDING), "failed", "findings"),
        (0, reading(RED, TEST), "failed", "unreported"),
        (0, reading(RED), "failed", "unreported"),
        (1, reading(GREEN), "error", "unreported"),
        (0, reading(GREEN, hidden=1), "error", "unreported"),
        (0, reading(count()), "error", "no_tests"),
        (5, reading(count()), "error", "no_tests"),
        (2, reading(count(errors=1), LOADING), "error", "collection_error"),
        (1, reading(RED, LOADING, TEST), "failed", "tests_failed"),
        (1, reading(count(passed=1), HOOK), "failed", "tests_failed"),
        (139, reading(GREEN), "error", "crash"),
        (-11, reading(RED, TEST), "error", "crash"),
        (137, reading(count(failed=137), TEST), "failed", "tests_failed"),
        (130, reading(count(failed=3), TEST), "failed", "tests_failed"),
        (1, reading(GREEN, CRASH), "error", "crash"),
        (0, reading(GREEN, CRASH), "error", "crash"),
        (0, reading(GREEN, complete=False), "error", "report_truncated"),
        (1, reading(RED, TEST, complete=False), "error", "report_truncated"),
        (1, reading(RED, TEST, stopped="timeout"), "timeout", "timeout"),
    ],
)
def test_exit_code_and_report_must_agree(code: int, read: Reading, status: str, reason: str | None) -> None:
    found = verdict(Ending(code), declared=True, reading=read)
    assert (found.status, found.reason) == (status, reason)
    assert found.parsed


@pytest.mark.parametrize(
    ("code", "declared", "problem", "status", "reason"),
    [
        (0, False, None, "passed", None),
        (3, False, None, "failed", None),
        (139, False, None, "error", "crash"),
        (0, True, "missing", "error", "no_report"),
        (1, True, "missing", "error", "no_report"),
        (137, True, "missing", "error", "crash"),
        (0, True, "stale", "error", "report_stale"),
        (0, True, "unreadable", "error", "no_report"),
        (None, False, None, "error", "no_report"),
    ],
)
def test_without_a_report_the_exit_code_alone_decides_only_if_none_was_wanted(
    code: int | None, declared: bool, problem: ReportProblem | None, status: str, reason: str | None
) -> None:
    found = verdict(Ending(code), declared=declared, reading=None, problem=problem)
    assert (found.status, found.reason) == (status, reason)
    assert found.parts()["parsed"] is False
    assert found.parts()["counts"] is None


def test_how_the_command_was_ended_comes_before_what_it_reported() -> None:
    green = reading(GREEN)
    assert verdict(Ending(0, timed_out=True), declared=True, reading=green).status == "timeout"
    assert verdict(Ending(0, cancelled=True), declared=True, reading=green).status == "cancelled"
    killed = verdict(Ending(137, oom_killed=True), declared=True, reading=green)
    assert (killed.status, killed.reason) == ("error", "out_of_memory")


def test_a_run_that_was_ended_keeps_what_it_had_found() -> None:
    found = verdict(Ending(137, timed_out=True), declared=True, reading=reading(RED, TEST, CRASH))
    assert found.counts == RED
    assert [failure.kind for failure in found.failures] == ["failure", "timeout"]


def test_output_is_shown_only_where_no_failure_tells_what_went_wrong() -> None:
    assert verdict(Ending(0), declared=True, reading=reading(GREEN), output="x").output is None
    assert verdict(Ending(1), declared=True, reading=reading(RED, TEST), output="x").output is None
    assert verdict(Ending(1), declared=True, reading=reading(GREEN), output="x").output == "x"
    assert verdict(Ending(1), declared=False, reading=None, output="x").output == "x"


def test_a_run_that_its_time_limit_ended_has_a_record_although_nothing_was_printed() -> None:
    judged = verdict(Ending(None, timed_out=True), declared=False, reading=None)
    assert [(f.kind, f.scope) for f in judged.failures] == [("timeout", "run")]


def test_a_known_runner_that_fails_without_a_word_is_an_error_and_has_a_record() -> None:
    judged = verdict(Ending(6), declared=False, reading=None, runner="mocha")
    assert (judged.status, judged.reason) == ("error", "unreported")
    assert [(f.kind, f.scope, f.message) for f in judged.failures] == [
        ("crash", "run", "mocha exited 6 and named no test")
    ]


def test_an_unknown_command_that_fails_is_judged_by_its_exit_code_alone() -> None:
    judged = verdict(Ending(6), declared=False, reading=None)
    assert (judged.status, judged.reason, judged.failures) == ("failed", None, ())

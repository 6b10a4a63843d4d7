import json

import pytest

from devbay.answers import Comparison, Failure, ReportSource, RunResult, Tree
from devbay.reports.budget import dense_text, grouped, page, present
from devbay.reports.records import count


def failure(number: int, **fields: object) -> Failure:
    known: dict[str, object] = {
        "suite": f"tests.test_module_{number}.TestSomething",
        "name": f"test_number_{number}",
        "file": f"packages/api/tests/test_module_{number}.py",
        "line": 100 + number,
        "message": f"AssertionError: {number} is not it " + "and so on " * 80,
        "expected": "x" * 250,
        "actual": "y" * 250,
        "frames": [f"packages/api/src/module_{n}.py:{n}" for n in range(12)],
        "output": "line of output\n" * 100,
    }
    return Failure.model_validate(known | fields)


def result(status: str, *failures: Failure, **fields: object) -> RunResult:
    known: dict[str, object] = {
        "run": "r-20261130-1a2b3c",
        "bay": "login-fix",
        "task": "unit",
        "status": status,
        "exit_code": 0 if status == "passed" else 1,
        "duration_ms": 1234,
        "tree": Tree(commit="a" * 40, dirty=True),
        "started_services": ["db"],
        "parsed": True,
        "report": ReportSource(format="junit", source="reports/unit.xml"),
        "counts": count(passed=200, failed=len(failures)),
        "log": "/home/someone/.local/state/devbay/runs/r-20261130-1a2b3c/output.log",
    }
    known |= {"failures": list(failures)} if failures else {}
    return RunResult.model_validate(known | fields)


def size(shown: RunResult) -> int:
    return len(json.dumps(shown.as_json(), ensure_ascii=False).encode())


@pytest.mark.parametrize(
    ("number", "limit"), [(0, 600), (1, 2_000), (3, 2_000), (4, 6_000), (20, 6_000), (300, 6_000)]
)
def test_a_result_stays_within_its_budget(number: int, limit: int) -> None:
    whole = result("failed" if number else "passed", *(failure(n) for n in range(number)))
    shown = present(whole)
    assert size(shown) <= limit
    assert len(shown.failures) + shown.more_failures == number


def test_twenty_failures_are_all_shown_with_their_places() -> None:
    shown = present(result("failed", *(failure(n) for n in range(20))))
    assert [each.line for each in shown.failures] == [100 + n for n in range(20)]


def test_pages_follow_each_other_without_gap() -> None:
    failures = [failure(n) for n in range(45)]
    seen: list[str] = []
    more = 1
    while more:
        shown, more = page(failures, len(seen))
        assert shown
        seen += [each.name for each in shown]
    assert seen == [each.name for each in failures]


def test_the_same_failure_of_many_tests_is_one_group_that_counts_them() -> None:
    same = [failure(7, name=f"test_{n}") for n in range(5)]
    assert [each.name for each in grouped([*same, failure(8)])] == [
        "test_0 (and 4 more with the same message)",
        "test_number_8",
    ]


def test_failures_without_a_message_are_not_thrown_together() -> None:
    assert len(grouped([Failure(name="a"), Failure(name="b")])) == 2


def test_values_are_whole_or_left_out() -> None:
    shown, _ = page([failure(1, expected="x" * 500, output="", frames=[])])
    assert (shown[0].expected, shown[0].actual) == (None, "y" * 250)
    shown, _ = page([failure(1, expected="2", actual="3")])
    assert (shown[0].expected, shown[0].actual) == ("2", "3")


def test_a_message_is_at_most_600_characters() -> None:
    shown, _ = page([failure(1, message="\x1b[31m" + "m" * 5000)])
    assert len(shown[0].message) <= 600
    assert "\x1b" not in shown[0].message


def test_the_dense_text_is_a_verdict_and_a_line_per_failure() -> None:
    text = dense_text(result("failed", Failure(name="test_a", file="t.py", line=3, message="assert 1\n== 2"),
                             reason="tests_failed"))  # fmt: skip
    assert text.splitlines() == [
        "unit failed (tests_failed): 1 failed, 200 passed; exit code 1 in 1.2 s",
        "t.py:3: test_a: assert 1 == 2",
    ]


def test_a_comparison_and_a_flaky_test_are_told_in_text() -> None:
    compared = Comparison.model_validate(
        {"with": "main (r1)", "new": ["a.py: x"], "fixed": [], "shared": ["a.py: y"], "more_shared": 3}
    )
    failures = [Failure(name="x", file="a.py", line=3, message="no", flaky=True)]
    text = dense_text(RunResult(task="unit", status="failed", failures=failures, comparison=compared))
    assert "a.py:3: x [flaky: it passed on this commit]: no" in text
    assert "compared with main (r1): 1 new, 0 fixed, 4 shared\nnew: a.py: x" in text


def test_a_comparison_counts_in_the_budget() -> None:
    names = [f"tests/test_{n}.py: test_of_some_length_{n}" for n in range(15)]
    compared = Comparison.model_validate({"with": "main (r1)", "new": names})
    failures = [
        Failure(name=f"test_{n}", file="tests/test_a.py", line=n, message=f"{n} " + "m" * 500)
        for n in range(1, 21)
    ]
    shown = present(RunResult(task="unit", status="failed", failures=failures, comparison=compared))
    assert len(json.dumps(shown.as_json())) < 6_000
    assert shown.as_json()["comparison"]["with"] == "main (r1)"

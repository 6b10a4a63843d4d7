"""How a run is judged whose output is a checker's, or that of a build before tests."""

import pytest

from devbay.reports.paths import PathMapper
from devbay.reports.reading import conclude
from devbay.reports.source import Source
from devbay.reports.verdict import Ending, Verdict

_COMPILE = "gcc -c a.c\na.c:3:1: error: expected ';'\nmake: *** [Makefile:3: a.o] Error 1\n"
_MYPY = "a.py:3: error: Bad  [arg-type]\nFound 1 error in 1 file (checked 1 source file)\n"
_WARNING = "a.c:1:2: warning: unused [-Wunused]\n"


def judged(output: str, argv: list[str], code: int = 1, report: str | None = None) -> Verdict:
    reports = [] if report is None else [Source("r.xml", data=report.encode())]
    return conclude(
        Ending(code),
        reports=reports,
        output=[Source("output", data=output.encode())],
        mapper=PathMapper(None),
        declared=bool(reports),
        argv=argv,
    ).verdict


@pytest.mark.parametrize(
    "argv", [["make", "test"], ["npm", "run", "test:unit"], ["sh", "-c", "make && pytest"]]
)
def test_a_build_that_fails_before_the_tests_is_a_collection_error(argv: list[str]) -> None:
    verdict = judged(_COMPILE, argv)
    assert (verdict.status, verdict.reason, verdict.counts) == ("error", "collection_error", None)
    assert [(f.scope, f.kind, f.file, f.line) for f in verdict.failures] == [("suite", "error", "a.c", 3)]


@pytest.mark.parametrize("argv", [["make"], ["ruff", "check", "tests"], ["gcc", "-c", "tests/a.c"]])
def test_the_same_lines_are_findings_where_no_tests_were_asked_for(argv: list[str]) -> None:
    verdict = judged(_COMPILE, argv)
    assert (verdict.status, verdict.reason) == ("failed", "findings")


def test_findings_of_a_linter_before_the_tests_are_findings() -> None:
    verdict = judged(_MYPY, ["sh", "-c", "mypy . && pytest"])
    assert (verdict.status, verdict.reason) == ("failed", "findings")
    assert verdict.failures[0].name == "arg-type"


def test_findings_beside_a_green_report_explain_the_exit_code() -> None:
    green = '<testsuite name="a"><testcase name="x"/></testsuite>'
    verdict = judged(_MYPY, ["sh", "-c", "pytest && mypy ."], report=green)
    assert (verdict.status, verdict.reason) == ("failed", "findings")


def test_findings_beside_green_tests_in_one_output_explain_the_exit_code() -> None:
    tests = "===== test session starts =====\na.py .   [100%]\n===== 1 passed in 0.10s =====\n"
    verdict = judged(tests + _MYPY, ["sh", "-c", "pytest; mypy ."])
    assert (verdict.status, verdict.reason) == ("failed", "findings")
    assert verdict.counts is not None
    assert verdict.counts.passed == 1
    assert judged(tests + _WARNING, ["sh", "-c", "pytest"]).reason == "unreported"


def test_warnings_pass_with_the_checkers_exit_code_and_errors_do_not() -> None:
    assert judged(_WARNING, ["make"], code=0).status == "passed"
    assert judged(_WARNING, ["make"], code=2).reason == "findings"
    swallowed = judged(_MYPY, ["sh", "-c", "mypy . | tee log"], code=0)
    assert (swallowed.status, swallowed.reason) == ("failed", "findings")


def test_a_clean_checker_that_exits_otherwise_is_not_believed() -> None:
    assert judged("All checks passed!\n", ["ruff", "check"], code=0).status == "passed"
    assert judged("All checks passed!\n", ["ruff", "check"], code=2).status == "error"


def test_a_rules_error_before_the_tests_is_a_finding_though_the_language_is_compiled() -> None:
    rows = "/r/a.ts\n  1:7  error  'u' is unused  no-unused-vars\n\n✖ 1 problem (1 error, 0 warnings)\n"
    assert judged(rows, ["npm", "test"]).reason == "findings"


def test_a_run_that_was_cut_off_stays_one_whatever_was_printed_like_a_finding() -> None:
    started = '{"Action":"run","Package":"p","Test":"TestA"}\n'
    crashed = judged(started + _COMPILE, ["go", "test", "-json", "./..."])
    assert (crashed.status, crashed.reason) == ("error", "report_truncated")
    assert all(failure.scope != "finding" for failure in crashed.failures)

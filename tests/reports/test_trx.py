"""TRX as `dotnet test` writes it."""

from __future__ import annotations

from devbay.reports import trx
from devbay.reports.paths import PathMapper
from devbay.reports.records import Parsed
from devbay.reports.source import Source
from tests.reports.samples import failures_of, numbers

NAMESPACE = "http://microsoft.com/schemas/VisualStudio/TeamTest/2010"


def result(
    name: str, outcome: str, message: str = "", stack: str = "", inner: str = "", ident: str = "1"
) -> str:
    error = (
        f"<ErrorInfo><Message>{message}</Message><StackTrace>{stack}</StackTrace></ErrorInfo>"
        if message
        else ""
    )
    return (
        f'<UnitTestResult testId="{ident}" testName="{name}" outcome="{outcome}" duration="00:00:01.2500000">'
        f"<Output><StdOut>pouring</StdOut>{error}</Output>{inner}</UnitTestResult>"
    )


def parsed_of(*results: str, rest: str = "") -> Parsed:
    text = (
        f'\ufeff<?xml version="1.0" encoding="utf-8"?>\n<TestRun id="r" xmlns="{NAMESPACE}"><Results>'
        f"{''.join(results)}</Results>{rest}</TestRun>"
    )
    assert trx.sniff(text.encode())
    return trx.read(Source("run.trx", data=text.encode()))


def test_a_failure_has_its_class_place_and_values() -> None:
    parsed = parsed_of(
        result(
            "Acme.CupTests.Holds(size: 3)",
            "Failed",
            "Assert.Equal() Failure: Values differ\nExpected: 4\nActual:   3",
            "   at Xunit.Assert.Equal(Object a) in /_/src/Assert.cs:line 9\n"
            "   at Acme.CupTests.Holds(Int32 size) in /src/tests/CupTests.cs:line 17",
        ),
        rest='<TestDefinitions><UnitTest name="n" id="1">'
        '<TestMethod className="Acme.CupTests" name="Holds"/></UnitTest></TestDefinitions>',
    )
    (failure,) = failures_of(parsed, PathMapper.as_named(None, "/src"))
    assert (failure.suite, failure.name, failure.kind) == ("Acme.CupTests", "Holds(size: 3)", "failure")
    assert (failure.file, failure.line) == ("tests/CupTests.cs", 17)
    assert (failure.expected, failure.actual, failure.output) == ("4", "3", "pouring")
    assert [(test.suite, test.duration_ms) for test in parsed.tests] == [("Acme.CupTests", 1250)]


def test_an_exception_is_an_error_and_a_time_limit_a_timeout() -> None:
    parsed = parsed_of(
        result("a", "Failed", "System.InvalidOperationException : dry"),
        result("b", "Failed", "Test method N.C.b threw exception: \nSystem.IO.IOException: dry"),
        result("c", "Timeout", "Test 'c' exceeded execution timeout period."),
    )
    assert [f.kind for f in parsed.failures] == ["error", "error", "timeout"]


def test_outcomes_are_counted_one_by_one() -> None:
    parsed = parsed_of(*(result("t", each) for each in ("Passed", "Passed", "NotExecuted", "Inconclusive")))
    assert numbers(parsed) == (4, 2, 0, 0, 2)


def test_rows_of_a_data_driven_test_count_and_the_test_around_them_does_not() -> None:
    rows = "".join(result(f"t ({i})", outcome, message) for i, outcome, message in (
        (0, "Passed", ""), (1, "Failed", "Assert.Fail failed.")))  # fmt: skip
    parsed = parsed_of(
        result("t", "Failed", "One or more data rows failed", inner=f"<InnerResults>{rows}</InnerResults>")
    )
    assert numbers(parsed) == (2, 1, 1, 0, 0)
    assert [f.name for f in parsed.failures] == ["t (1)"]


def test_a_host_that_crashed_is_a_crash_of_the_run() -> None:
    text = "The active test run was aborted. Reason: Test host process crashed : Stack overflow."
    parsed = parsed_of(
        result("a", "Passed"),
        rest='<ResultSummary outcome="Failed"><RunInfos><RunInfo outcome="Error">'
        f"<Text>{text}</Text></RunInfo></RunInfos></ResultSummary>",
    )
    assert parsed.stopped == "crash"
    assert [(f.kind, f.scope, f.message) for f in parsed.failures] == [("crash", "run", text)]


def test_a_report_that_is_cut_off_or_has_a_doctype_is_not_complete() -> None:
    cut = trx.read(
        Source("r", data=f'<TestRun xmlns="{NAMESPACE}"><Results>{result("a", "Passed")}'.encode())
    )
    bomb = trx.read(Source("r", data=b'<!DOCTYPE x [<!ENTITY a "b">]><TestRun/>'))
    assert not cut.complete
    assert numbers(cut) == (1, 1, 0, 0, 0)
    assert not bomb.complete

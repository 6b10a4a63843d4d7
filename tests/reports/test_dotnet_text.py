"""`dotnet test`'s plain output."""

from __future__ import annotations

from devbay.reports import dotnet_text
from devbay.reports.paths import PathMapper
from devbay.reports.records import Parsed
from devbay.reports.source import Source
from tests.reports.samples import failures_of, numbers

PRINTED = """\
Starting test execution, please wait...
A total of 1 test files matched the specified pattern.
[xUnit.net 00:00:00.51]     Acme.CupTests.Holds(size: 3) [FAIL]
  Passed Acme.CupTests.Opens [3 ms]
  Failed Acme.CupTests.Holds(size: 3) [12 ms]
  Error Message:
   Assert.Equal() Failure: Values differ
Expected: 4
Actual:   3
  Stack Trace:
     at Acme.Cup.Check() in /src/lib/Cup.cs:line 8
   at Acme.CupTests.Holds(Int32 size) in /src/tests/CupTests.cs:line 17
  Standard Output Messages:
 pouring

  Failed Acme.CupTests.Boom [< 1 ms]
  Error Message:
   System.InvalidOperationException : dry
  Stack Trace:
     at Acme.CupTests.Boom() in /src/tests/CupTests.cs:line 21

Failed!  - Failed:     2, Passed:     1, Skipped:     1, Total:     4, Duration: 20 ms - Acme.dll (net8.0)
"""


def parsed_of(text: str) -> Parsed:
    return dotnet_text.read(Source("output", data=text.encode()))


def test_a_failure_has_its_place_values_and_output() -> None:
    failure = failures_of(parsed_of(PRINTED), PathMapper.as_named(None, "/src"))[0]
    assert (failure.suite, failure.name, failure.kind) == ("Acme.CupTests", "Holds(size: 3)", "failure")
    assert (failure.file, failure.line) == ("tests/CupTests.cs", 17)
    assert (failure.expected, failure.actual, failure.output) == ("4", "3", "pouring")
    assert failure.message == "Assert.Equal() Failure: Values differ\nExpected: 4\nActual:   3"
    assert failure.frames == ["lib/Cup.cs:8", "tests/CupTests.cs:17"]


def test_an_exception_is_an_error() -> None:
    error = parsed_of(PRINTED).failures[1]
    assert (error.name, error.kind, error.message) == (
        "Boom",
        "error",
        "System.InvalidOperationException : dry",
    )


def test_projects_are_added() -> None:
    passed = "Passed!  - Failed:     0, Passed:     3, Skipped:     0, Total:     3, Duration: 2 ms - B.dll\n"
    assert numbers(parsed_of(PRINTED + passed)) == (7, 4, 2, 0, 1)


def test_the_longer_summary_is_read_too() -> None:
    parsed = parsed_of("Test Run Failed.\nTotal tests: 4\n     Passed: 2\n     Failed: 1\n    Skipped: 1\n")
    assert numbers(parsed) == (4, 2, 1, 0, 1)


def test_an_aborted_run_is_a_crash_and_no_tests_are_none() -> None:
    text = "The active test run was aborted. Reason: Test host process crashed"
    assert [(f.kind, f.scope) for f in parsed_of(f"{text}\n").failures] == [("crash", "run")]
    assert numbers(parsed_of("No test is available in /src/a.dll. Make sure that ...\n")) == (0, 0, 0, 0, 0)

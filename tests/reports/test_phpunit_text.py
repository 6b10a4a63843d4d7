"""PHPUnit's plain output and testdox, as PHPUnit 9 to 12 print them."""

from __future__ import annotations

from pathlib import Path

import pytest

from devbay.reports import phpunit_text
from devbay.reports.paths import PathMapper
from devbay.reports.records import Parsed
from devbay.reports.source import Source
from tests.reports.samples import failures_of, numbers

PLAIN = """\
PHPUnit 9.6.7 by Sebastian Bergmann and contributors.

.FES.R                                                              6 / 6 (100%)

Time: 00:00.036, Memory: 6.00 MB

There was 1 error:

1) Acme\\CupTest::testPrev
RuntimeException: outer

/src/lib/Cup.php:7
/src/tests/CupTest.php:17

Caused by
LogicException: inner

/src/lib/Other.php:3

--

There was 1 failure:

1) Acme\\CupTest::testSize with data set "big" (4, 3)
size

of cup
Failed asserting that 3 is identical to 4.

/src/tests/CupTest.php:5

--

There was 1 risky test:

1) Acme\\CupTest::testNothing
This test did not perform any assertions

ERRORS!
Tests: 6, Assertions: 3, Errors: 1, Failures: 1, Skipped: 1, Risky: 1.
"""
TESTDOX = """\
PHPUnit 10.5.1 by Sebastian Bergmann and contributors.

Cup (Acme\\Cup)
 ✔ Holds tea
 ✘ Has a size
   │
   │ Failed asserting that 3 is identical to 4.
   │
   │ /src/tests/CupTest.php:5
   │
 ↩ Breaks

Time: 00:00.015, Memory: 6.00 MB

FAILURES!
Tests: 3, Assertions: 2, Failures: 1, Skipped: 1.
"""


def parsed_of(text: str) -> Parsed:
    return phpunit_text.read(Source("output", data=text.encode()))


def test_a_failure_has_its_message_line_and_values() -> None:
    failure = failures_of(parsed_of(PLAIN), PathMapper.as_named(None, "/src"))[1]
    assert (failure.suite, failure.kind) == ("Acme\\CupTest", "failure")
    assert failure.name == 'testSize with data set "big" (4, 3)'
    assert failure.message == "size\n\nof cup\nFailed asserting that 3 is identical to 4."
    assert (failure.file, failure.line) == ("tests/CupTest.php", 5)
    assert (failure.expected, failure.actual) == ("4", "3")


def test_an_error_is_in_the_test_and_its_cause_is_not_its_message() -> None:
    error = failures_of(parsed_of(PLAIN), PathMapper.as_named(None, "/src"))[0]
    assert (error.kind, error.message, error.line) == ("error", "RuntimeException: outer", 17)
    assert error.frames == ["lib/Cup.php:7", "tests/CupTest.php:17"]


def test_without_a_stack_the_file_is_the_one_that_is_named_like_the_class(tmp_path: Path) -> None:
    text = (
        "There was 1 failure:\n\n1) Acme\\CupTest::testMock\nNot called.\n\n"
        "Tests: 1, Assertions: 1, Failures: 1.\n"
    )
    (tmp_path / "tests/unit").mkdir(parents=True)
    (tmp_path / "tests/unit/CupTest.php").touch()
    assert [f.file for f in failures_of(parsed_of(text))] == [None]
    assert [f.file for f in failures_of(parsed_of(text), PathMapper(tmp_path))] == ["tests/unit/CupTest.php"]
    (tmp_path / "CupTest.php").touch()
    assert [f.file for f in failures_of(parsed_of(text), PathMapper(tmp_path))] == [None]


def test_risky_tests_fail_nothing() -> None:
    assert numbers(parsed_of(PLAIN)) == (6, 3, 1, 1, 1)


def test_testdox_has_records_too() -> None:
    (failure,) = failures_of(parsed_of(TESTDOX), PathMapper.as_named(None, "/src"))
    assert (failure.suite, failure.name, failure.line) == ("Acme\\Cup", "Has a size", 5)
    assert failure.message == "Failed asserting that 3 is identical to 4."
    assert numbers(parsed_of(TESTDOX)) == (3, 1, 1, 0, 1)


def test_warnings_are_outcomes_before_version_10_only() -> None:
    text = (
        '\n\nThere was 1 warning:\n\n1) Warning\nNo tests found in class "A".\n\n'
        "Tests: 2, Assertions: 1, Warnings: 1.\n"
    )
    old = parsed_of("PHPUnit 9.6.7 by X." + text)
    new = parsed_of("PHPUnit 11.0.1 by X." + text)
    assert [(f.name, f.kind) for f in old.failures] == [("Warning", "error")]
    assert (numbers(old), numbers(new), new.failures) == ((2, 1, 0, 1, 0), (2, 2, 0, 0, 0), ())


@pytest.mark.parametrize(
    "text",
    [
        'PHP Parse error:  syntax error, unexpected token ";" in /src/tests/ATest.php on line 8\n',
        "PHP Fatal error:  Uncaught ParseError: syntax error, unexpected token"
        ' ";" in /src/tests/ATest.php:8\n#0 x',
        "PHPUnit 10.5.1 by X.\n\nAn error occurred inside PHPUnit.\n\n"
        'Message:  syntax error, unexpected token ";"\nLocation: /src/tests/ATest.php:8\n\n#0 /x.php(3)',
    ],
)
def test_a_file_that_does_not_load_is_an_error_of_the_run(text: str) -> None:
    parsed = parsed_of(text)
    (error,) = failures_of(parsed, PathMapper.as_named(None, "/src"))
    assert (error.scope, error.kind, error.file, error.line) == ("run", "error", "tests/ATest.php", 8)
    assert 'syntax error, unexpected token ";"' in error.message
    assert "/src" not in error.message
    assert parsed.counts is None


def test_a_fatal_error_after_tests_is_a_crash() -> None:
    fatal = "PHP Fatal error:  Allowed memory size in /src/a.php on line 3\n"
    parsed = parsed_of(f"PHPUnit 9.6.7 by X.\n\n..\n{fatal}")
    assert [(f.kind, f.scope) for f in parsed.failures] == [("crash", "run")]
    assert not parsed.complete


def test_nothing_executed_is_a_count_of_zero() -> None:
    parsed = parsed_of("PHPUnit 9.6.7 by X.\n\nNo tests executed!\n")
    assert (numbers(parsed), parsed.complete) == ((0, 0, 0, 0, 0), True)

"""ExUnit's plain output."""

from __future__ import annotations

from devbay.reports import bats_text, exunit_text
from devbay.reports.records import Parsed
from devbay.reports.registry import recognised
from devbay.reports.source import Source
from tests.reports.samples import failures_of, numbers

PRINTED = """\
  0) SetupTest: failure on setup_all callback, all tests have been invalidated
     ** (RuntimeError) dry
     stacktrace:
       test/setup_test.exs:19: SetupTest.__ex_unit_setup_all_0/1

*
  1) test size eq (CupTest)
     test/cup_test.exs:9
     Assertion with == failed
     code:  assert %{a: 1} == %{a: 2}
     left:  %{a: 1}
     right: %{a: 2}
     stacktrace:
       (elixir 1.14.0) lib/enum.ex:10: Enum.x/1
       test/cup_test.exs:10: (test)

  2) test boom (CupTest)
     test/cup_test.exs:13
     ** (ArgumentError) no
     cup
     code: boom()
     stacktrace:
       (cups 0.1.0) lib/cup.ex:3: Cup.boom/0
       test/cup_test.exs:14: (test)

.
Finished in 0.08 seconds (0.07s on load, 0.00s async, 0.01s sync)
6 tests, 2 failures, 1 invalid, 1 skipped

Randomized with seed 874272
"""


def parsed_of(text: str) -> Parsed:
    return exunit_text.read(Source("output", data=text.encode()))


def test_a_failure_has_its_line_and_values() -> None:
    failure = failures_of(parsed_of(PRINTED))[1]
    assert (failure.suite, failure.name, failure.kind) == ("CupTest", "test size eq", "failure")
    assert (failure.file, failure.line) == ("test/cup_test.exs", 10)
    assert (failure.actual, failure.expected) == ("%{a: 1}", "%{a: 2}")
    assert failure.message.startswith("Assertion with == failed")


def test_an_exception_is_an_error_with_the_users_frames() -> None:
    error = failures_of(parsed_of(PRINTED))[2]
    assert (error.kind, error.message, error.line) == ("error", "ArgumentError: no\ncup", 14)
    assert error.frames == ["lib/cup.ex:3", "test/cup_test.exs:14"]


def test_a_module_whose_set_up_failed_is_a_suite() -> None:
    hook = failures_of(parsed_of(PRINTED))[0]
    assert (hook.name, hook.scope, hook.phase, hook.line) == ("SetupTest", "suite", "setup", 19)


def test_invalid_tests_are_errors() -> None:
    assert numbers(parsed_of(PRINTED)) == (6, 2, 2, 1, 1)


def test_a_file_that_does_not_compile_is_a_collection_error() -> None:
    parsed = parsed_of(
        "\n== Compilation error in file test/bad_test.exs ==\n"
        "** (TokenMissingError) test/bad_test.exs:4:1: missing terminator: )\n"
        "    (elixir 1.14.0) lib/x.ex:1: X.y/2\n"
    )
    (error,) = failures_of(parsed)
    assert (error.scope, error.kind, error.file, error.line) == ("suite", "error", "test/bad_test.exs", 4)
    assert parsed.counts is None


def test_output_without_its_count_is_not_complete() -> None:
    assert not parsed_of(PRINTED.partition("Finished")[0]).complete


def test_a_count_like_that_of_bats_is_exunits() -> None:
    text = b"..\nFinished in 0.08 seconds (0.07s async, 0.01s sync)\n2 tests, 0 failures\n"
    assert bats_text.sniff(text)
    assert recognised(text) is exunit_text

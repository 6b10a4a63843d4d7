"""Vitest's plain output, as Vitest 4 wrote it of a small suite."""

from devbay.reports import vitest_text
from devbay.reports.records import Parsed
from devbay.reports.source import Source
from tests.reports.samples import failures_of, numbers

OUT = """
 RUN  v4.1.0 /src/app

 ❯ test/a.test.js (4 tests | 2 failed | 1 skipped) 15ms

 Test Files  2 failed (2)
      Tests  2 failed | 1 passed | 1 skipped (4)
   Start at  20:53:27
   Duration  224ms
"""
ERR = """FAIL looks like one

⎯⎯⎯⎯⎯⎯ Failed Suites 1 ⎯⎯⎯⎯⎯⎯⎯

 FAIL  test/b.test.js [ test/b.test.js ]
Error: Cannot find module './gone.js' imported from /src/app/test/b.test.js
 ❯ test/b.test.js:2:1
      1| import { test } from 'vitest';
      2| import { gone } from './gone.js';
       | ^

⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯[1/3]⎯

⎯⎯⎯⎯⎯⎯⎯ Failed Tests 2 ⎯⎯⎯⎯⎯⎯⎯

 FAIL  test/a.test.js > outer > inner > compares
AssertionError: expected 40 to be 41 // Object.is equality

- Expected
+ Received

- 41
+ 40

 ❯ test/a.test.js:5:22
      4|   test('compares', () => {
      5|     expect(price(20)).toBe(41);
       |                      ^

⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯[2/3]⎯

 FAIL  |unit| test/a.test.js > hook
Error: Hook timed out in 100ms.
 ❯ test/a.test.js:10:3

⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯[3/3]⎯

"""


def read(text: str) -> Parsed:
    return vitest_text.read(Source("output", data=text.encode()))


def test_suites_tests_and_hooks_have_their_places() -> None:
    assert [
        (f.scope, f.suite, f.name, f.file, f.line, f.kind, f.phase) for f in failures_of(read(OUT + ERR))
    ] == [
        ("suite", None, "test/b.test.js", "test/b.test.js", 2, "error", None),
        ("test", "outer > inner", "compares", "test/a.test.js", 5, "failure", None),
        ("test", None, "hook", "test/a.test.js", 10, "timeout", "setup"),
    ]


def test_counts_are_the_summarys_and_a_file_that_did_not_load_is_an_error() -> None:
    assert numbers(read(OUT + ERR)) == (5, 1, 2, 1, 1)


def test_expected_and_actual_are_told() -> None:
    failure = failures_of(read(OUT + ERR))[1]
    assert (failure.expected, failure.actual) == ("41", "40")


def test_one_error_below_several_heads_is_a_record_for_each_test() -> None:
    block = " FAIL  a.test.js > one\n FAIL  a.test.js > two\nError: same\n ❯ a.test.js:3:1\n⎯⎯⎯[1/2]⎯\n"
    assert [(f.name, f.line) for f in failures_of(read(block + OUT))] == [("one", 3), ("two", 3)]


def test_an_unhandled_error_is_of_the_run() -> None:
    error = (
        "⎯⎯⎯⎯ Unhandled Errors ⎯⎯⎯⎯\n\n"
        "Vitest caught 1 unhandled error during the test run.\n"
        "This might cause false positive tests.\n\n⎯⎯⎯⎯ Uncaught Exception ⎯⎯⎯⎯\n"
        "Error: loose\n ❯ Timeout._onTimeout a.test.js:4:9\n⎯⎯⎯⎯⎯⎯\n"
    )
    (failure,) = failures_of(read(error + OUT))
    assert (failure.scope, failure.message, failure.line) == ("run", "Error: loose", 4)


def test_annotations_for_github_are_read_where_nothing_else_is_printed() -> None:
    note = (
        "\n"
        "::error file=/src/app/src/geo.ts,title=test/geo.test.ts > trip > far,"
        "line=4,column=27::TypeError: no x%0A"
        " ❯ distance src/geo.ts:4:27%0A ❯ test/geo.test.ts:17:14%0A%0A\n"
    )
    (failure,) = failures_of(read(note))
    assert (failure.suite, failure.name, failure.file, failure.line) == (
        "trip",
        "far",
        "test/geo.test.ts",
        17,
    )
    assert failure.message == "TypeError: no x"


def test_output_without_a_summary_is_a_crash() -> None:
    parsed = read(" RUN  v4.1.0 /src/app\n")
    assert parsed.stopped == "crash" and [f.scope for f in parsed.failures] == ["run"]


def test_no_test_files_count_zero() -> None:
    assert numbers(read(" RUN  v4\n\nNo test files found, exiting with code 1\n")) == (0, 0, 0, 0, 0)

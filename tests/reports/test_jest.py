"""Jest's JSON and plain output, as Jest 30 wrote them of a small suite; Vitest's JSON has the same shape."""

import json

from devbay.reports import jest_json, jest_text
from devbay.reports.records import Parsed
from devbay.reports.source import Source
from tests.reports.samples import failures_of, numbers

PLAIN = """FAIL unit jest/a.test.js
  ● Console

    console.error
      log line
      FAIL looks like one

      at helper (jest/a.test.js:30:11)

  ● outer › inner › needs db

    no db

       8 |   describe('inner', () => {
    >  9 |     beforeEach(() => { throw new Error('no db'); });
         |                              ^

      at Object.<anonymous> (jest/a.test.js:9:30)

  ● outer › custom error

    PriceError: negative: -1

      2 | exports.price = (n) => {
    > 3 |   throw new PriceError('negative: ' + n);
        |         ^

      at price (lib/calc.js:3:9)
      at Object.<anonymous> (jest/a.test.js:13:5)

  ● outer › async timeout

    thrown: "Exceeded timeout of 50 ms for a test.
    Add a timeout value to this test to increase the timeout."

      at it (jest/a.test.js:16:3)

  ● Test suite failed to run

    TypeError: cleanup broke

      at Object.<anonymous> (jest/a.test.js:33:24)

PASS jest/b.test.js

Test Suites: 1 failed, 1 passed, 2 total
Tests:       3 failed, 1 skipped, 1 todo, 2 passed, 7 total
Snapshots:   0 total
Time:        0.9 s
Ran all test suites.
"""
CRASH = """  ●  process.exit called with "4"

      1 | exports.quit = (code) => {
    > 2 |   process.exit(code);
        |           ^

      at exit (src/quit.js:2:11)
      at Object.quit (test/quit.test.js:8:3)
"""


def plain(text: str) -> Parsed:
    return jest_text.read(Source("output", data=text.encode()))


def structured(files: list[dict[str, object]], **more: object) -> Parsed:
    report = {"numFailedTests": 0, "numTotalTests": 1, **more, "testResults": files}
    return jest_json.read(Source("report.json", data=json.dumps(report).encode()))


def test_each_failure_has_its_suite_place_and_kind() -> None:
    assert [(f.suite, f.name, f.file, f.line, f.kind) for f in failures_of(plain(PLAIN))] == [
        ("outer › inner", "needs db", "jest/a.test.js", 9, "failure"),
        ("outer", "custom error", "jest/a.test.js", 13, "error"),
        ("outer", "async timeout", "jest/a.test.js", 16, "timeout"),
        (None, "jest/a.test.js", "jest/a.test.js", 33, "error"),
    ]


def test_a_message_ends_before_the_excerpt_of_code() -> None:
    messages = [f.message for f in failures_of(plain(PLAIN))]
    assert messages[0] == "no db"
    assert messages[1] == "PriceError: negative: -1"


def test_the_deepest_frame_comes_first_in_frames() -> None:
    assert failures_of(plain(PLAIN))[1].frames == ["lib/calc.js:3", "jest/a.test.js:13"]


def test_counts_are_the_summarys_and_a_file_that_did_not_load_is_an_error() -> None:
    assert numbers(plain(PLAIN)) == (8, 2, 3, 1, 2)


def test_a_summary_of_all_failures_repeats_none() -> None:
    block = PLAIN[: PLAIN.index("PASS")]
    doubled = PLAIN.replace("\nTest Suites:", "\nSummary of all failing tests\n" + block + "\nTest Suites:")
    assert len(plain(doubled).failures) == 4


def test_process_exit_is_a_crash_of_the_run_at_the_line_that_called() -> None:
    parsed = plain(CRASH)
    (failure,) = failures_of(parsed)
    assert (failure.kind, failure.scope, failure.file, failure.line) == (
        "crash",
        "run",
        "test/quit.test.js",
        8,
    )
    assert parsed.stopped == "crash" and parsed.counts is None


def test_output_without_a_summary_is_a_crash() -> None:
    parsed = plain(PLAIN[: PLAIN.index("Test Suites:")])
    assert parsed.stopped == "crash" and not parsed.complete


def test_no_tests_found_counts_zero() -> None:
    assert numbers(plain("No tests found, exiting with code 1\n")) == (0, 0, 0, 0, 0)


def test_colours_do_not_hide_jest() -> None:
    assert jest_text.sniff(b"\x1b[1mTests:       \x1b[22m\x1b[1m\x1b[31m3 failed\x1b[39m\x1b[22m, 3 total")


def test_verbose_results_become_tests_with_their_describes() -> None:
    parsed = plain(
        "PASS a.test.js\n  outer\n    ✓ one (2 ms)\n    inner\n      ○ skipped two\n"
        "  ✎ todo three\n" + "Tests: 1 passed, 3 total\n"
    )
    assert [(t.name, t.suite, t.outcome) for t in parsed.tests] == [
        ("one", "outer", "passed"), ("two", "outer › inner", "skipped"), ("three", None, "skipped")
    ]  # fmt: skip


def test_json_lists_failed_assertions_with_file_and_line() -> None:
    stack = (
        "Error: expect(received).toBe(expected)\n\nExpected: 41\nReceived: 40\n"
        "    at Object.toBe (/src/app/a.test.js:4:23)"
    )
    test = {"ancestorTitles": ["size"], "title": "price", "status": "failed", "failureMessages": [stack]}
    (failure,) = failures_of(
        structured(
            [{"name": "/src/app/a.test.js", "status": "failed", "message": "", "assertionResults": [test]}]
        )
    )
    assert (failure.suite, failure.name, failure.kind) == ("size", "price", "failure")
    assert (failure.expected, failure.actual) == ("41", "40")


def test_json_of_a_file_that_did_not_load_is_a_suite_error_not_zero_failures() -> None:
    message = (
        "  ● Test suite failed to run\n\n    Cannot find module './x'\n\n"
        "      at Object.require (b.test.js:1:15)\n"
    )
    parsed = structured(
        [{"name": "b.test.js", "status": "failed", "message": message, "assertionResults": []}]
    )
    (failure,) = failures_of(parsed)
    assert (failure.scope, failure.kind, failure.line, failure.message) == (
        "suite",
        "error",
        1,
        "Cannot find module './x'",
    )
    assert numbers(parsed) == (1, 0, 0, 1, 0)


def test_json_keeps_a_hook_that_failed_after_failed_tests() -> None:
    test = {"ancestorTitles": [], "title": "t", "status": "failed", "failureMessages": ["Error: x"]}
    message = "  ● t\n\n    x\n\n  ● Test suite failed to run\n\n    TypeError: cleanup broke\n"
    parsed = structured(
        [{"name": "a.test.js", "status": "failed", "message": message, "assertionResults": [test]}]
    )
    assert [(f.scope, f.message) for f in parsed.failures] == [
        ("test", "Error: x"),
        ("suite", "TypeError: cleanup broke"),
    ]


def test_json_that_counts_failures_but_lists_none_hides_them() -> None:
    assert structured([], numFailedTests=3).hidden == 3


def test_json_that_is_cut_off_is_not_complete() -> None:
    parsed = jest_json.read(Source("r", data=b'{"numTotalTests": 2, "testResults": [{"name": "a'))
    assert not parsed.complete and parsed.problem == "it ends in the middle"


def test_pending_skipped_and_todo_are_skipped() -> None:
    tests = [{"title": s, "status": s} for s in ("pending", "skipped", "todo", "disabled", "passed")]
    assert numbers(structured([{"name": "a", "status": "passed", "assertionResults": tests}])) == (
        5,
        1,
        0,
        0,
        4,
    )

"""Mocha's JSON and plain output, as Mocha 11 wrote them of a small suite."""

import json

from devbay.reports import mocha_json, mocha_text
from devbay.reports.records import Parsed
from devbay.reports.source import Source
from tests.reports.samples import failures_of, numbers

PLAIN = """
  1) root level fails
  outer
    inner
      2) custom
      3) slow
      - pending one
      ✔ ok
    4) "before each" hook: open for "last"


  1 passing (38ms)
  1 pending
  4 failing

  1) root level fails:

      AssertionError: expected 4 to equal 5
      + expected - actual

      -4
      +5

      at Context.<anonymous> (mocha/a.spec.js:3:38)

  2) outer
       inner
         custom:
     PriceError: negative: -3
      at exports.price (lib/calc.js:3:20)
      at Context.<anonymous> (mocha/a.spec.js:7:24)

  3) outer
       inner
         slow:
     Error: Timeout of 30ms exceeded. Ensure "done()" is called. (/src/app/mocha/a.spec.js)
      at listOnTimeout (node:internal/timers:581:17)

  4) outer
       "before each" hook: open for "last":
     Error: shut
      at Context.<anonymous> (mocha/a.spec.js:15:40)
"""


def plain(text: str) -> Parsed:
    return mocha_text.read(Source("output", data=text.encode()))


def test_each_failure_has_its_titles_place_and_kind() -> None:
    assert [(f.suite, f.name, f.line, f.kind, f.scope) for f in failures_of(plain(PLAIN))] == [
        (None, "root level fails", 3, "failure", "test"),
        ("outer inner", "custom", 7, "error", "test"),
        ("outer inner", "slow", None, "timeout", "test"),
        ("outer", '"before each" hook: open for "last"', 15, "error", "suite"),
    ]


def test_a_failed_hook_has_its_phase() -> None:
    assert [f.phase for f in plain(PLAIN).failures] == [None, None, None, "setup"]


def test_the_file_of_a_time_limit_is_the_one_the_message_ends_with() -> None:
    assert plain(PLAIN).failures[2].own == ("/src/app/mocha/a.spec.js",)


def test_counts_are_mochas_own() -> None:
    assert numbers(plain(PLAIN)) == (6, 1, 4, 0, 1)


def test_output_without_totals_is_a_crash_that_names_what_failed_before() -> None:
    parsed = plain(PLAIN[: PLAIN.index("  1 passing")])
    assert parsed.stopped == "crash"
    assert [(f.name, f.kind) for f in parsed.failures][-1] == ("(run)", "crash")
    assert "custom" in [f.name for f in parsed.failures]
    assert numbers(parsed) == (6, 1, 4, 0, 1)


def test_an_exception_while_loading_is_of_the_run_at_the_tests_line() -> None:
    parsed = plain(
        "\n Exception during run: TypeError: no port\n    at Object.<anonymous> (/x/lib/conf.js:3:34)\n"
        "    at Module._compile (node:internal/modules/cjs/loader:1521:14)\n"
        "    at Object.<anonymous> (/x/test/a.spec.js:1:14)\n"
    )
    (found,) = parsed.failures
    assert (found.scope, found.kind, found.message) == ("run", "error", "TypeError: no port")
    assert parsed.counts is None


def test_no_test_files_count_zero() -> None:
    parsed = plain('Error: No test files found: "test"\n')
    assert numbers(parsed) == (0, 0, 0, 0, 0) and parsed.complete


def test_json_lists_failures_and_hooks() -> None:
    error = {"message": "no gas", "stack": "Error: no gas\n    at Context.<anonymous> (test/m.spec.js:34:11)"}
    hook = {
        "title": '"after all" hook for "x"',
        "fullTitle": 'kitchen "after all" hook for "x"',
        "file": "/x/test/m.spec.js",
        "err": error,
    }
    report = {
        "stats": {"suites": 1, "tests": 1},
        "tests": [],
        "pending": [{"title": "p", "fullTitle": "p"}],
        "failures": [hook],
        "passes": [{"title": "y", "fullTitle": "kitchen y", "duration": 3}],
    }
    parsed = mocha_json.read(Source("r", data=json.dumps(report).encode()))
    (found,) = parsed.failures
    assert (found.suite, found.scope, found.phase, found.message) == (
        "kitchen",
        "suite",
        "teardown",
        "Error: no gas",
    )
    assert numbers(parsed) == (3, 1, 1, 0, 1)
    assert [(t.name, t.suite, t.duration_ms) for t in parsed.tests if t.outcome == "passed"] == [
        ("y", "kitchen", 3)
    ]

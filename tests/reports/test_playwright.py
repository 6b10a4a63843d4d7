"""Playwright's JSON and plain output, as Playwright 1.57 wrote them of a small suite."""

import json

from devbay.reports import playwright_json, playwright_text
from devbay.reports.records import Parsed
from devbay.reports.source import Source
from tests.reports.samples import failures_of, numbers

PLAIN = """
Running 6 tests using 1 worker

[1/6] [unit a] › pw/a.spec.ts:3:3 › outer › fails
  1) [unit a] › pw/a.spec.ts:3:3 › outer › fails › step one ────────────────────────────

    Error: expect(received).toBe(expected) // Object.is equality

    Expected: 2
    Received: 1

      2 | test.describe('outer', () => {
    > 3 |   test('fails', async () => { expect(1).toBe(2); });
        |                                         ^
        at /src/app/pw/a.spec.ts:3:41

    Error: second soft one

        at /src/app/pw/a.spec.ts:4:20

    Retry #1 ───────────────────────────────────────────────────────

    Error: expect(received).toBe(expected) // Object.is equality
        at /src/app/pw/a.spec.ts:3:41

[2/6] (retries) [unit a] › pw/a.spec.ts:5:3 › outer › wobbles
  2) [unit a] › pw/a.spec.ts:5:3 › outer › wobbles ───────────────────────────────────

    Error: once
        at /src/app/pw/a.spec.ts:5:41

  3) [unit a] › pw/a.spec.ts:9:3 › outer › waits ─────────────────────────────────────

    Test timeout of 100ms exceeded.

  2 failed
    [unit a] › pw/a.spec.ts:3:3 › outer › fails ──────────────────────────────────────
    [unit a] › pw/a.spec.ts:9:3 › outer › waits ──────────────────────────────────────
  1 flaky
    [unit a] › pw/a.spec.ts:5:3 › outer › wobbles ────────────────────────────────────
  1 skipped
  1 did not run
  1 passed (3.0s)
"""


def plain(text: str) -> Parsed:
    return playwright_text.read(Source("output", data=text.encode()))


def test_each_error_of_the_first_try_is_a_record() -> None:
    found = plain(PLAIN).failures
    assert [(f.suite, f.name, f.kind, f.message.split("\n")[0]) for f in found] == [
        ("outer", "fails", "failure", "Error: expect(received).toBe(expected) // Object.is equality"),
        ("outer", "fails", "error", "Error: second soft one"),
        ("outer", "waits", "timeout", "Test timeout of 100ms exceeded."),
    ]
    assert [f.frames[0].line for f in found if f.frames] == [3, 4]


def test_a_test_that_passed_when_tried_again_is_no_failure() -> None:
    assert "wobbles" not in [f.name for f in plain(PLAIN).failures]
    assert numbers(plain(PLAIN)) == (6, 2, 2, 0, 2)


def test_a_time_limit_without_a_stack_is_at_its_test() -> None:
    failure = failures_of(plain(PLAIN))[-1]
    assert (failure.file, failure.line) == ("pw/a.spec.ts", 9)


def test_files_that_do_not_load_are_suite_errors() -> None:
    parsed = plain(
        "Error: Cannot find module './helper'\nRequire stack:\n- /x/e2e/r.spec.js\n\n"
        "   at r.spec.js:2\n\n> 2 | require('./helper')\n    |  ^\n"
        "    at Object.<anonymous> (/x/e2e/r.spec.js:2:20)\n"
    )
    (found,) = parsed.failures
    assert (found.scope, found.own, found.message.split("\n")[0]) == (
        "suite",
        ("/x/e2e/r.spec.js",),
        "Error: Cannot find module './helper'",
    )
    assert numbers(parsed) == (1, 0, 0, 1, 0)


def test_no_tests_found_counts_zero_and_is_of_the_run() -> None:
    parsed = plain("Error: No tests found\n")
    assert numbers(parsed) == (0, 0, 0, 0, 0)
    assert [(f.scope, f.message) for f in parsed.failures] == [("run", "Error: No tests found")]


def test_output_without_totals_is_a_crash() -> None:
    parsed = plain(PLAIN[: PLAIN.index("  2 failed")])
    assert parsed.stopped == "crash" and not parsed.complete


def test_json_gives_each_error_its_place_below_the_projects_folder() -> None:
    error = {
        "message": "Error: pond\n\n    at Object.pond (/x/e2e/h.spec.js:17:11)",
        "location": {"file": "/x/e2e/h.spec.js", "line": 17},
    }
    result = {"status": "failed", "errors": [error], "stdout": [{"text": "fed\n"}], "duration": 9}
    spec = {"title": "swims", "file": "h.spec.js", "line": 21, "tests": [
        {"status": "unexpected", "projectName": "web", "results": [result]},
        {"status": "flaky", "results": [result, {"status": "passed"}]}, {"status": "skipped", "results": []},
    ]}  # fmt: skip
    suites = [{"title": "h.spec.js", "specs": [], "suites": [{"title": "night", "specs": [spec]}]}]
    report = {
        "config": {"rootDir": "/x/e2e"},
        "suites": suites,
        "errors": [{"message": "Error: No config", "stack": "Error: No config"}],
    }
    parsed = playwright_json.read(Source("r", data=json.dumps(report).encode()))
    test, run = parsed.failures
    assert (test.suite, test.name, test.own, test.own_line, test.output) == (
        "[web] › night",
        "swims",
        ("/x/e2e/h.spec.js",),
        21,
        "fed",
    )
    assert test.frames[0].line == 17
    assert (run.scope, run.message) == ("run", "Error: No config")
    assert numbers(parsed) == (3, 1, 1, 0, 1)


def test_json_of_a_test_that_should_have_failed_says_so() -> None:
    spec = {
        "title": "t",
        "file": "a.spec.ts",
        "line": 3,
        "tests": [{"status": "unexpected", "results": [{"status": "passed", "errors": []}]}],
    }
    report = {"config": {"rootDir": "/x"}, "suites": [{"title": "a.spec.ts", "specs": [spec]}], "errors": []}
    (found,) = playwright_json.read(Source("r", data=json.dumps(report).encode())).failures
    assert (found.message, found.own_line) == ("Expected to fail, but passed.", 3)

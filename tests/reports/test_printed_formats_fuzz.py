"""Whatever bytes come, the readers of printed output give a result, within bounds of time and memory."""

from __future__ import annotations

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from devbay.reports import (
    bats_text,
    ctrf,
    dotnet_text,
    exunit_text,
    maven_text,
    minitest_text,
    phpunit_text,
    prove_text,
    rspec_json,
    rspec_text,
    teamcity,
    testunit_text,
    trx,
    unittest_text,
)
from devbay.reports.records import MAX_FAILURES, Parsed
from devbay.reports.registry import Format
from devbay.reports.source import Source

FORMATS: list[Format] = [
    unittest_text, rspec_json, rspec_text, minitest_text, testunit_text, teamcity, phpunit_text, prove_text,
    bats_text, maven_text, trx, ctrf, exunit_text, dotnet_text,
]  # fmt: skip
BY_NAME = pytest.mark.parametrize("format", FORMATS, ids=lambda each: each.name)
LINES = [
    "  1) test a (A.B)", "     a_test.exs:3", "     ** (E) no", "     stacktrace:", "       a.exs:3: (test)",
    "== Compilation error in file a.exs ==", "Finished in 0.1 seconds", "6 tests, 3 failures, 1 invalid",
    "  Failed A.B.C [1 ms]", "  Error Message:", "  Stack Trace:", "Total tests: 3", "Test Run Failed.",
    "Failed!  - Failed: 1, Passed: 2, Skipped: 0, Total: 3", "The active test run was aborted.",
    '<TestRun xmlns="TeamTest"><Results>', '<UnitTestResult testName="a" outcome="Failed"><Message>x',
    '{"results":{"tool":{},"tests":[{"name":"a","status":"failed","suite":[3]}', "]}}", "<InnerResults>",
    "======================================================================",
    "----------------------------------------------------------------------",
    "ERROR: test_a (m.T.test_a) [x] (i=1)", "FAIL: test_a (m.T)", "Ran 3 tests in 0.1s",
    "test_a (m.T) ... ", "ok", "FAILED (failures=1)", "Timeout (0:00:02)!", "Stdout:",
    '  File "a.py", line 3, in f', "Failures:", "  1) Cup holds", "     1.1) Failure/Error: expect(1)",
    "     # ./a_spec.rb:3:in `x'", "Failed examples:", "rspec ./a_spec.rb:1 # Cup holds",
    "2 examples, 1 failure, 1 pending", "  holds (FAILED - 1)", "Finished in 1 s",
    "An error occurred while loading ./a_spec.rb.", "  1) Error:", "A#b [a.rb:1]:", "A#b = 0.1 s = F",
    "F.E", "9 runs, 8 assertions, 5 failures, 2 errors, 1 skips", "bin/rails test a.rb:3",
    "Failure: test_a(T): no", "Loaded suite a", "Started",
    "3 tests, 1 assertions, 1 failures, 1 errors, 0 pendings, 0 omissions", "PHPUnit 9.6.7 by Someone.",
    "There was 1 error:", "1) A\\B::c", "/src/a.php:3", "--", "Caused by", " ✘ Two", "   │ no",
    "Tests: 3, Assertions: 1, Errors: 1.", "PHP Fatal error:  Uncaught Error: x in /a.php:3",
    "OK (1 test, 1 assertion)", "##teamcity[testSuiteStarted name='s']",
    "##teamcity[testSuiteFinished name='s']", "##teamcity[testStarted name='t']",
    "##teamcity[testFailed name='t' message='a|nb' details='/a.php:3']",
    "##teamcity[testFinished name='t' duration='1']", "t/a.t .. ", "not ok 1 - x # TODO y", "ok 1",
    "    # Looks like you failed 1 test of 2.", "#   Failed test 'x'", "#   at t/a.t line 3.",
    "t/a.t  (Wstat: 256 (exited 1) Tests: 1 Failed: 0)", "  Parse errors: Bad plan.",
    "Files=1, Tests=3,  1 wallclock secs", "Result: FAIL",
    "# Looks like your test exited with 2 just after 1.", "a.bats", " ✗ counts",
    "   (in test file a.bats, line 3)", "3 tests, 1 failure", "   `false' failed",
    "[ERROR] a.B.c -- Time elapsed: 0.1 s <<< FAILURE!", "[ERROR] /a/B.java:[1,2] bad",
    "[INFO] BUILD SUCCESS", "[ERROR] Tests run: 3, Failures: 1, Errors: 0, Skipped: 0",
    "[ERROR] Crashed tests:", "\tat a.B.c(B.java:3)",
    '{"version":"3","examples":[{"status":"failed","exception":3}', '],"summary":{}}', "",
]  # fmt: skip
WORDS = [
    "a", " ", "(", ")", "[", "'", "|", ".", "-", "=", "#", "1 ", ", ", "File ", ".F", "0:", "\\", "x.y:1 ",
    "a.py:", "at ", "in ", "✘", "✗ ", "\t", "\u001b[1G", "\r", "=> 1: ", "A::", "skipped ",
    '{"version":"3","examples":[',
]  # fmt: skip


def read(format: Format, data: bytes) -> Parsed:
    format.sniff(data)
    return format.read(Source("output", data=data))


@BY_NAME
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.binary(max_size=400))
def test_any_bytes_give_a_result(format: Format, data: bytes) -> None:
    assert isinstance(read(format, data), Parsed)


@BY_NAME
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(lines=st.lists(st.one_of(st.sampled_from(LINES), st.text(max_size=20)), max_size=30))
def test_any_order_of_the_runners_own_lines_gives_a_result(format: Format, lines: list[str]) -> None:
    parsed = read(format, "\n".join(lines).encode())
    counts = parsed.counts
    assert counts is None or counts.total == counts.passed + counts.failed + counts.errors + counts.skipped
    assert counts is None or min(counts.passed, counts.failed, counts.errors, counts.skipped) >= 0
    assert all(found.name is not None for found in parsed.failures)


@BY_NAME
def test_no_line_takes_more_than_its_length(format: Format) -> None:
    for word in WORDS:
        data = (word * (20_000 // len(word))).encode()
        start = time.process_time()
        read(format, data)
        assert time.process_time() - start < 1, (format.name, word)


@BY_NAME
def test_output_without_an_end_stays_within_bounds(format: Format) -> None:
    """Each of the runners' lines again and again: nothing grows with the square of the output."""
    for line in LINES:
        start = time.process_time()
        parsed = read(format, (line + "\n").encode() * 4_000)
        assert time.process_time() - start < 1.5, (format.name, line)
        assert len(parsed.failures) <= MAX_FAILURES + 100

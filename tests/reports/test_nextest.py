"""cargo nextest's plain output, before and after 0.9.86 (which indents what tests printed)."""

from __future__ import annotations

from devbay.reports import nextest
from devbay.reports.records import Parsed
from devbay.reports.registry import recognised
from devbay.reports.source import Source
from tests.reports.samples import failures_of, numbers

PRINTED = """\

running 1 test
test tests::wrong ... FAILED

failures:

failures:
    tests::wrong

test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 4 filtered out; finished in 0.00s
"""
PANICKED = """\

thread 'tests::wrong' (7) panicked at src/lib.rs:30:9:
assertion `left == right` failed
  left: 4
 right: 5
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
"""
OLD = f"""\
    Finished test [unoptimized + debuginfo] target(s) in 0.02s
    Starting 5 tests across 2 binaries
        PASS [   0.005s] barn tests::fine
        FAIL [   0.250s] barn tests::wrong

--- STDOUT:              barn tests::wrong ---
{PRINTED}
--- STDERR:              barn tests::wrong ---
{PANICKED}
     SIGABRT [   0.006s] barn::feeding yak
 TERMINATING [>  1.000s] barn::feeding slow
     TIMEOUT [   1.006s] barn::feeding slow
  TRY 1 FAIL [   0.006s] barn::feeding moody
  TRY 2 PASS [   0.006s] barn::feeding moody
------------
     Summary [   1.010s] 5 tests run: 2 passed (1 flaky), 2 failed, 1 timed out, 3 skipped
        FAIL [   0.250s] barn tests::wrong
     SIGABRT [   0.006s] barn::feeding yak
     TIMEOUT [   1.006s] barn::feeding slow
error: test run failed
"""


def indented(text: str) -> str:
    return "\n".join(f"    {line}" if line else "" for line in text.split("\n"))


NEW = f"""\
────────────
 Nextest run ID c74fbfcf-3247-490d-b65f-455f26fb306a with nextest profile: default
    Starting 2 tests across 1 binary
        PASS [   0.039s] (1/2) barn tests::fine
        FAIL [   0.250s] (2/2) barn tests::wrong
  stdout ───
{indented(PRINTED)}
  stderr ───
{indented(PANICKED)}

  Cancelling due to test failure:{" "}
────────────
     Summary [   0.300s] 2 tests run: 1 passed, 1 failed, 0 skipped
        FAIL [   0.250s] (2/2) barn tests::wrong
error: test run failed
"""


def run(text: str) -> Parsed:
    assert recognised(text.encode()) is nextest
    return nextest.read(Source("stderr", data=text.encode()))


def test_both_layouts_give_the_same_record() -> None:
    for text in (OLD, NEW):
        first = failures_of(run(text))[0]
        assert (first.suite, first.name, first.kind) == ("barn", "tests::wrong", "failure")
        assert (first.file, first.line, first.expected, first.actual) == ("src/lib.rs", 30, "5", "4")


def test_the_summary_repeats_and_libtest_inside_does_not_count() -> None:
    assert numbers(run(OLD)) == (8, 2, 2, 1, 3)
    assert numbers(run(NEW)) == (2, 1, 1, 0, 0)


def test_signals_are_crashes_and_limits_are_timeouts_of_their_tests() -> None:
    found = failures_of(run(OLD))
    assert [(each.name, each.kind) for each in found[1:]] == [("yak", "crash"), ("slow", "timeout")]


def test_a_test_that_passed_on_another_try_did_not_fail() -> None:
    assert "moody" not in [each.name for each in run(OLD).failures]


def test_output_without_summary_is_not_complete() -> None:
    parsed = run(NEW[: NEW.index("     Summary")])
    assert not parsed.complete
    assert numbers(parsed) == (2, 1, 1, 0, 0)


def test_what_an_earlier_try_printed_is_not_the_last_ones() -> None:
    first = OLD.replace(
        "        FAIL [   0.250s] barn tests::wrong", "  TRY 1 FAIL [   0.250s] barn tests::wrong", 1
    )
    second = """\
  TRY 2 FAIL [   0.250s] barn tests::wrong
--- STDERR:              barn tests::wrong ---
thread 'tests::wrong' (7) panicked at src/lib.rs:31:9:
other words
------------
"""
    text = first.replace("     SIGABRT", second + "     SIGABRT", 1)
    text = text.replace("        FAIL [   0.250s]", "  TRY 2 FAIL [   0.250s]")
    found = failures_of(run(text))[0]
    assert (found.line, found.message) == (31, "other words")

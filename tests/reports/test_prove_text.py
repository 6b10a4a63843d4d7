"""prove's output, with Test::More's words on the other stream, between the TAP, or beside a JUnit report."""

from __future__ import annotations

from devbay.reports import prove_text
from devbay.reports.records import Parsed
from devbay.reports.source import Source, joined
from tests.reports.samples import failures_of, numbers

PLAIN = """\
t/kite.t .. \n\
Dubious, test returned 3 (wstat 768, 0x300)
Failed 3/5 subtests \n\
	(less 1 skipped subtest: 1 okay)
t/dies.t .. \n\
Dubious, test returned 255 (wstat 65280, 0xff00)
Failed 2/3 subtests \n\
t/plan.t .. \n\
Failed 2/4 subtests \n\

Test Summary Report
-------------------
t/kite.t (Wstat: 768 (exited 3) Tests: 5 Failed: 3)
  Failed tests:  2-4
  Non-zero exit status: 3
t/dies.t (Wstat: 65280 (exited 255) Tests: 1 Failed: 0)
  Non-zero exit status: 255
  Parse errors: Bad plan.  You planned 3 tests but ran 1.
t/plan.t (Wstat: 65280 (exited 255) Tests: 2 Failed: 0)
  Parse errors: Bad plan.  You planned 4 tests but ran 2.
Files=3, Tests=8,  1 wallclock secs ( 0.02 usr  0.00 sys +  0.11 cusr  0.04 csys =  0.17 CPU)
Result: FAIL
"""
SAID = """
#   Failed test 'a windy day'
#   at t/kite.t line 10.
#          got: '15'
#     expected: '16'

    #   Failed test 'tail length'
    #   at t/kite.t line 19.
    # Looks like you failed 1 test of 2.

#   Failed test 'tails'
#   at t/kite.t line 20.

#   Failed (TODO) test 'sticks'
#   at t/kite.t line 29.

#   Failed test at t/kite.t line 33.
# Looks like you failed 3 tests of 5.
Can't call method "name" on an undefined value at lib/Kite.pm line 13.
# Looks like your test exited with 255 just after 1.
# Looks like you planned 4 tests but ran 2.
"""
TAP = """\
t/kite.t .. \n\
ok 1 - half the line
not ok 2 - a windy day
not ok 3 - by hand
ok 4 # skip no wind
not ok 5 - sticks # TODO glue is wet
1..5
Failed 2/5 subtests \n\

Test Summary Report
-------------------
t/kite.t (Wstat: 512 (exited 2) Tests: 5 Failed: 2)
Files=1, Tests=5,  0 wallclock secs ( 0.02 usr )
Result: FAIL
"""


def parsed_of(*streams: str) -> Parsed:
    return prove_text.read(joined([Source("stdout", data=text.encode()) for text in streams]))


def test_words_of_the_other_stream_become_records_with_a_place() -> None:
    windy, tail, nameless, *_ = failures_of(parsed_of(PLAIN, SAID))
    assert (windy.name, windy.file, windy.line) == ("a windy day", "t/kite.t", 10)
    assert (windy.expected, windy.actual) == ("'16'", "'15'")
    assert (tail.name, tail.suite, tail.line) == ("tail length", "tails", 19)
    assert (nameless.file, nameless.line) == ("t/kite.t", 33)


def test_a_subtests_parent_and_what_is_to_do_are_no_records() -> None:
    names = [f.name for f in parsed_of(PLAIN, SAID).failures]
    assert "tails" not in names
    assert "sticks" not in names


def test_a_file_that_died_says_why() -> None:
    died, planned = failures_of(parsed_of(PLAIN, SAID))[3:]
    assert (died.name, died.scope, died.kind) == ("t/dies.t", "suite", "error")
    assert died.message.startswith("Can't call method")
    assert (died.file, died.line) == ("lib/Kite.pm", 13)
    assert (planned.name, planned.message) == ("t/plan.t", "Looks like you planned 4 tests but ran 2.")


def test_counts_come_from_the_summary() -> None:
    assert numbers(parsed_of(PLAIN, SAID)) == (10, 4, 3, 2, 1)


def test_with_the_tap_tests_are_counted_one_by_one() -> None:
    parsed = parsed_of(TAP, "#   Failed test 'a windy day'\n#   at t/kite.t line 10.\n")
    assert numbers(parsed) == (5, 1, 2, 0, 2)
    assert [(f.name, f.line) for f in failures_of(parsed)] == [("a windy day", 10), ("by hand", None)]


def test_a_file_that_does_not_compile_is_an_error_of_the_file() -> None:
    parsed = parsed_of(
        "t/bad.t .. \nDubious, test returned 255 (wstat 65280, 0xff00)\nNo subtests run \n\n"
        "Test Summary Report\n-------------------\n"
        "t/bad.t (Wstat: 65280 (exited 255) Tests: 0 Failed: 0)\n"
        "  Parse errors: No plan found in TAP output\n"
        "Files=1, Tests=0,  0 wallclock secs ( 0.01 usr )\nResult: FAIL\n",
        'syntax error at t/bad.t line 5, near "my "\nExecution of t/bad.t aborted due to errors.\n',
    )
    (error,) = failures_of(parsed)
    assert (error.scope, error.kind, error.file, error.line) == ("suite", "error", "t/bad.t", 5)
    assert error.message.startswith("syntax error")


def test_a_test_of_which_only_the_summary_tells_is_a_record_by_its_number() -> None:
    parsed = parsed_of(
        "Test Summary Report\n-------------------\nt/raw.t (Wstat: 0 Tests: 9 Failed: 3)\n"
        "  Failed tests:  2-3, 7\nFiles=1, Tests=9,  0 wallclock secs\nResult: FAIL\n"
    )
    assert [(f.name, f.suite) for f in parsed.failures] == [
        ("test 2", "t/raw.t"),
        ("test 3", "t/raw.t"),
        ("test 7", "t/raw.t"),
    ]


def test_what_a_file_said_before_it_died_is_no_comment_of_a_test() -> None:
    summary = (
        "Test Summary Report\n-------------------\nt/a.t (Wstat: 65280 (exited 255) Tests: 1 Failed: 1)\n"
        "  Parse errors: Bad plan.  You planned 4 tests but ran 1.\n"
        "Files=1, Tests=1,  0 wallclock secs\nResult: FAIL\n"
    )
    said = (
        "        #   Failed test 'in'\n        #   at t/a.t line 4.\n"
        "        # Looks like you failed 1 test of 1.\n"
        "    #   Failed test 'inner'\n    #   at t/a.t line 4.\n    # Looks like you failed 1 test of 2.\n"
        "#   Failed test 'outer'\n#   at t/a.t line 4.\nstop\n"
        "# Looks like your test exited with 255 just after 1.\n"
    )
    inner, died = parsed_of(summary, said).failures
    assert (inner.name, inner.suite) == ("in", "inner")
    assert died.message == "stop"


def test_a_file_ended_by_a_signal_crashed() -> None:
    parsed = parsed_of(
        "Test Summary Report\n-------------------\nt/a.t (Wstat: 11 (Signal: SEGV) Tests: 2 Failed: 0)\n"
        "Files=1, Tests=2,  0 wallclock secs\nResult: FAIL\n"
    )
    assert [(f.name, f.kind, f.scope) for f in parsed.failures] == [("t/a.t", "crash", "suite")]


def test_no_tests_is_a_count_of_zero_and_no_result_is_not_complete() -> None:
    none = parsed_of("Files=0, Tests=0,  0 wallclock secs ( 0.00 usr )\nResult: NOTESTS\n")
    assert (numbers(none), none.complete, none.failures) == ((0, 0, 0, 0, 0), True, ())
    assert not parsed_of("t/a.t .. ok\nt/b.t .. \n").complete


def test_words_beside_a_junit_report_give_it_places() -> None:
    report = (
        '<testsuites><testsuite name="kite_t" tests="2" failures="1" errors="0">'
        '<testcase name="1 - ok"/><testcase name="2 - a windy day">'
        '<failure message="not ok 2 - a windy day"/></testcase></testsuite></testsuites>\n'
    )
    assert prove_text.sniff((report + SAID).encode())
    assert not prove_text.sniff(report.encode())
    (failure,) = failures_of(parsed_of(report, SAID))
    assert (failure.name, failure.file, failure.line) == ("2 - a windy day", "t/kite.t", 10)

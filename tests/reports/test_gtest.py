"""GoogleTest's plain output and JSON, and CTest with GoogleTest inside."""

from __future__ import annotations

import json

from devbay.reports import ctest_text, gtest_json, gtest_text
from devbay.reports.paths import PathMapper
from devbay.reports.records import Parsed
from devbay.reports.source import Source
from tests.reports.samples import failures_of, numbers

SRC = PathMapper.as_named(None, "/src")

FULL = """\
Running main() from gtest_main.cc
[==========] Running 5 tests from 3 test suites.
[----------] Global test environment set-up.
[----------] 3 tests from Load
[ RUN      ] Load.Two
toll gate open
/src/bridge/test/b_test.cc:11: Failure
Expected equality of these values:
  load({3, 4})
    Which is: 7
  8
/src/bridge/test/b_test.cc:12: Failure
Expected: (load({1})) > (5), actual: 1 vs 5
[  FAILED  ] Load.Two (3 ms)
[ RUN      ] Load.Throws
unknown file: Failure
C++ exception with description "no bridge" thrown in the test body.
[  FAILED  ] Load.Throws (0 ms)
[ RUN      ] Load.Skipped
/src/bridge/test/b_test.cc:22: Skipped
no river here
[  SKIPPED ] Load.Skipped (0 ms)
[----------] 3 tests from Load (3 ms total)

[----------] 1 test from Ferry
/src/bridge/test/b_test.cc:40: Failure
Failed
ferry did not arrive
[ RUN      ] Ferry.Boards
[       OK ] Ferry.Boards (0 ms)
[----------] 1 test from Ferry (0 ms total)

[----------] 1 test from Small/Table
[ RUN      ] Small/Table.IsEven/1
/src/bridge/test/b_test.cc:27: Failure
Value of: even
  Actual: false
Expected: true
[  FAILED  ] Small/Table.IsEven/1, where GetParam() = 3 (0 ms)
[----------] 1 test from Small/Table (0 ms total)

[----------] Global test environment tear-down
[==========] 5 tests from 3 test suites ran. (4 ms total)
[  PASSED  ] 1 test.
[  SKIPPED ] 1 test, listed below:
[  SKIPPED ] Load.Skipped
[  FAILED  ] 3 tests, listed below:
[  FAILED  ] Load.Two
[  FAILED  ] Load.Throws
[  FAILED  ] Small/Table.IsEven/1, where GetParam() = 3

 3 FAILED TESTS
  YOU HAVE 2 DISABLED TESTS

"""


def text(output: str) -> Parsed:
    assert gtest_text.sniff(output.encode())
    return gtest_text.read(Source("stdout", data=output.encode()))


def ctest(output: str) -> Parsed:
    assert ctest_text.sniff(output.encode())
    return ctest_text.read(Source("stdout", data=output.encode()))


def test_each_failed_assertion_is_a_record_at_its_own_line() -> None:
    found = failures_of(text(FULL), SRC)
    assert [(each.name, each.line, each.kind) for each in found if each.scope == "test"] == [
        ("Two", 11, "failure"),
        ("Two", 12, "failure"),
        ("Throws", None, "error"),
        ("IsEven/1", 27, "failure"),
    ]


def test_disabled_and_skipped_tests_are_skipped() -> None:
    assert numbers(text(FULL)) == (7, 1, 2, 1, 3)


def test_a_failure_between_tests_is_the_suites_set_up() -> None:
    [found] = [each for each in text(FULL).failures if each.scope == "suite"]
    assert (found.name, found.phase, found.message) == ("Ferry", "setup", "ferry did not arrive")


def test_a_process_that_dies_in_a_test_is_a_crash_there() -> None:
    output = FULL[: FULL.index("unknown file")] + "terminate called after throwing 'x'\n  what():  no\n"
    parsed = text(output)
    last = parsed.failures[-1]
    assert (last.name, last.kind, last.scope, parsed.stopped) == ("Throws", "crash", "run", "crash")
    assert last.message == "terminate called after throwing 'x'\nwhat():  no"


def test_brief_output_has_no_starts_but_the_same_records() -> None:
    brief = "\n".join(
        line
        for line in FULL.split("\n")
        if not line.startswith(("[ RUN", "[-----", "[       OK", "[  SKIPPED ] Load", "[==========] Running"))
    )
    found = text(brief).failures
    assert [each.name for each in found if each.scope == "test"][:3] == ["Two", "Two", "Throws"]


def test_a_filter_that_fits_nothing_runs_no_tests() -> None:
    begin = "[==========] Running 0 tests from 0 test suites.\n"
    end = "[==========] 0 tests from 0 test suites ran. (0 ms total)\n[  PASSED  ] 0 tests.\n"
    assert numbers(text(begin + end)) == (0, 0, 0, 0, 0)


def test_an_own_print_before_a_result_ends_the_test_all_the_same() -> None:
    output = FULL.replace("[  FAILED  ] Load.Two (3 ms)", "no newline[  FAILED  ] Load.Two (3 ms)")
    assert numbers(text(output)) == numbers(text(FULL))


def test_json_has_places_in_its_texts_and_a_skip_by_result() -> None:
    cases = [
        {"name": "Two", "file": "/src/b_test.cc", "line": 9, "status": "RUN", "result": "COMPLETED",
         "time": "0.25s", "failures": [{"failure": "/src/b_test.cc:11\nExpected: 1"}]},
        {"name": "Off", "status": "NOTRUN", "result": "SUPPRESSED"},
        {"name": "Gone", "status": "RUN", "result": "SKIPPED"},
        {"name": "Throws", "failures": [{"failure": "unknown file\nC++ exception thrown in the test body."}]},
    ]  # fmt: skip
    report = {"tests": 4, "failures": 2, "disabled": 1, "testsuites": [{"name": "Load", "testsuite": cases}]}
    data = json.dumps(report).encode()
    assert gtest_json.sniff(data)
    parsed = gtest_json.read(Source("r.json", data=data))
    assert numbers(parsed) == (4, 0, 1, 1, 2)
    assert parsed.failures[0].message == "Expected: 1"
    assert parsed.failures[0].frames[0].line == 11
    assert parsed.tests[0].duration_ms == 250


def test_json_that_is_cut_off_keeps_what_was_complete() -> None:
    data = b'{"tests": 2, "failures": 0, "disabled": 0, "testsuites": [{"testsuite": [{"name": "x"}]}, {"'
    parsed = gtest_json.read(Source("r.json", data=data))
    assert not parsed.complete
    assert numbers(parsed) == (1, 1, 0, 0, 0)


CTEST = """\
Test project /src/bridge/build
      Start  1: Load.Empty
 1/6 Test  #1: Load.Empty .......................   Passed    0.01 sec
      Start  2: Load.Two
 2/6 Test  #2: Load.Two .........................***Failed    0.02 sec
[==========] Running 1 test from 1 test suite.
[----------] 1 test from Load
[ RUN      ] Load.Two
/src/bridge/test/b_test.cc:11: Failure
Expected: 7
[  FAILED  ] Load.Two (0 ms)
[==========] 1 test from 1 test suite ran. (0 ms total)
[  FAILED  ] 1 test, listed below:
[  FAILED  ] Load.Two

      Start  3: slow
 3/6 Test  #3: slow .............................***Timeout   1.50 sec
waiting
      Start  4: dies
 4/6 Test  #4: dies .............................***Exception: SegFault  0.10 sec
      Start  5: off
 5/6 Test  #5: off ..............................***Not Run (Disabled)   0.00 sec
      Start  6: gone
Could not find executable /src/bridge/build/gone
 6/6 Test  #6: gone .............................***Not Run   0.00 sec

20% tests passed, 4 tests failed out of 5

Total Test time (real) =   1.63 sec

The following tests did not run:
\t  5 - off (Disabled)

The following tests FAILED:
\t  2 - Load.Two (Failed)
\t  3 - slow (Timeout)
\t  4 - dies (SEGFAULT)
\t  6 - gone (Not Run)
Errors while running CTest
"""


def test_ctest_reads_what_a_failed_test_printed_in_its_own_format() -> None:
    found = failures_of(ctest(CTEST), SRC)
    assert [(each.name, each.kind) for each in found] == [
        ("Load.Two", "failure"),
        ("slow", "timeout"),
        ("dies", "crash"),
        ("gone", "error"),
    ]
    assert (found[0].line, found[0].message) == (11, "Expected: 7")
    assert "/src/bridge/build/gone" in (found[3].message or "")


def test_ctest_counts_its_own_tests() -> None:
    assert numbers(ctest(CTEST)) == (6, 1, 3, 1, 1)


def test_ctest_verbose_output_carries_the_tests_number() -> None:
    output = """\
test 2
    Start 2: sums

2: Test command: /src/build/sums
2: sums.cpp:7: error: 1 is not 2
1/1 Test #2: sums .............................***Failed    0.02 sec

0% tests passed, 1 tests failed out of 1
"""
    [found] = failures_of(ctest(output), SRC)
    assert (found.name, found.message, found.line) == ("sums", "sums.cpp:7: error: 1 is not 2", 7)


def test_a_ctest_binary_with_several_failed_tests_keeps_them_apart() -> None:
    output = CTEST.replace(
        "[  FAILED  ] Load.Two (0 ms)\n",
        "[  FAILED  ] Load.Two (0 ms)\n[ RUN      ] Load.Three\nx.cc:3: Failure\nno\n"
        "[  FAILED  ] Load.Three (0 ms)\n",
    )
    assert [(each.suite, each.name) for each in ctest(output).failures[:2]] == [
        ("Load.Two", "Load.Two"),
        ("Load.Two", "Load.Three"),
    ]


def test_no_tests_found_is_counted_as_none() -> None:
    assert numbers(ctest("Test project /b\nNo tests were found!!!\n")) == (0, 0, 0, 0, 0)


def test_ctest_that_is_cut_off_names_the_test_that_ran() -> None:
    parsed = ctest(CTEST[: CTEST.index("      Start  4")] + "      Start  4: dies\n")
    assert not parsed.complete
    assert parsed.failures[-1].name == "dies"

"""`go test` as Go 1.19 to 1.24 print it: plain, `-v`, JSON, and gotestsum's summary."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from devbay.reports import go_json, go_text
from devbay.reports.paths import PathMapper
from devbay.reports.records import Parsed
from devbay.reports.source import Source
from devbay.reports.verdict import Ending, Reading, verdict
from tests.reports.samples import failures_of, numbers

PLAIN = """\
--- FAIL: TestGroup (0.00s)
    a_test.go:3: hello
    --- FAIL: TestGroup/one_two (0.00s)
        a_test.go:5: got 1, want 2
--- FAIL: FuzzA (0.00s)
    --- FAIL: FuzzA/seed#0 (0.00s)
        a_test.go:11: bad
--- FAIL: ExampleA (0.00s)
got:
x
want:
y
FAIL
FAIL\texample.org/pot\t0.004s
ok  \texample.org/pot/fine\t(cached)
?   \texample.org/pot/doc\t[no test files]
FAIL
"""

VERBOSE = """\
=== RUN   TestGroup
    a_test.go:3: hello
=== RUN   TestGroup/one_two
    a_test.go:5: got 1, want 2
=== RUN   TestGroup/ok
--- FAIL: TestGroup (0.00s)
    --- FAIL: TestGroup/one_two (0.00s)
    --- PASS: TestGroup/ok (0.00s)
=== RUN   TestSkip
    a_test.go:4: later
--- SKIP: TestSkip (0.00s)
=== RUN   TestPar
=== PAUSE TestPar
=== RUN   TestPar2
=== PAUSE TestPar2
=== CONT  TestPar
=== CONT  TestPar2
    a_test.go:6: second
=== NAME  TestPar
    a_test.go:7: first
--- FAIL: TestPar2 (0.00s)
--- FAIL: TestPar (0.00s)
FAIL
FAIL\texample.org/pot\t0.006s
"""

PANIC = """\
--- FAIL: TestBoom (0.00s)
panic: assignment to entry in nil map [recovered]
\tpanic: assignment to entry in nil map

goroutine 7 [running]:
testing.tRunner.func1.2({0x508ec0, 0x551ca0})
\t/usr/lib/go-1.19/src/testing/testing.go:1396 +0x24e
panic({0x508ec0, 0x551ca0})
\t/usr/lib/go-1.19/src/runtime/panic.go:884 +0x212
example.org/pot/sub.fill(...)
\t/home/ada/pot/sub/b.go:9
example.org/pot/sub.TestBoom(0xc000007860?)
\t/home/ada/pot/sub/b_test.go:4 +0x2e
testing.tRunner(0xc000007ba0, 0x52f2f0)
\t/usr/lib/go-1.19/src/testing/testing.go:1446 +0x10b
created by testing.(*T).Run
\t/usr/lib/go-1.19/src/testing/testing.go:1493 +0x35f
FAIL\texample.org/pot/sub\t0.006s
FAIL
"""

BUILD = """\
FAIL\texample.org/pot/c [setup failed]
FAIL\texample.org/pot/b [build failed]
FAIL
# example.org/pot/c
c/c_test.go:7:3: expected '}', found 'EOF'
# example.org/pot/b [example.org/pot/b.test]
b/b_test.go:6:2: declared and not used: x
b/b_test.go:7:2: undefined: y; did you mean:
\tz
"""


def plain(text: str) -> Parsed:
    assert go_text.sniff(text.encode())
    return go_text.read(Source("stdout", data=text.encode()))


def events(*rows: tuple[str, str, str]) -> Parsed:
    """rows: (action, test, output)."""
    lines = []
    for action, test, output in rows:
        event = {"Action": action, "Package": "example.org/pot", "Test": test, "Output": output}
        lines.append(json.dumps({key: value for key, value in event.items() if value}))
    text = "\n".join(lines)
    assert go_json.sniff(text.encode())
    return go_json.read(Source("stdout", data=text.encode()))


def test_a_failed_subtest_counts_once_and_its_parent_not() -> None:
    found = failures_of(plain(VERBOSE))
    assert [each.name for each in found] == ["TestGroup/one_two", "TestPar", "TestPar2"]
    assert numbers(plain(VERBOSE)) == (5, 1, 3, 0, 1)


def test_what_parallel_tests_log_goes_to_the_test_that_is_named_before_it() -> None:
    said = {each.name: each.message for each in failures_of(plain(VERBOSE))}
    assert said["TestPar"] == "first"
    assert said["TestPar2"] == "second"


def test_without_v_only_failures_are_counted() -> None:
    parsed = plain(PLAIN)
    assert [each.name for each in parsed.failures] == ["TestGroup/one_two", "FuzzA/seed#0", "ExampleA"]
    assert numbers(parsed) == (3, 0, 3, 0, 0)


def test_an_example_says_what_it_got_and_wanted() -> None:
    assert plain(PLAIN).failures[-1].message == "got:\nx\nwant:\ny"


def test_got_and_want_become_actual_and_expected() -> None:
    first = plain(PLAIN).failures[0]
    assert (first.message, first.actual, first.expected) == ("got 1, want 2", "1", "2")


def test_passing_packages_without_v_leave_the_counts_open() -> None:
    assert plain("ok  \texample.org/pot\t0.1s\n").counts is None


def test_packages_without_tests_are_no_tests_at_all() -> None:
    text = "?   \texample.org/pot\t[no test files]\nok  \texample.org/pot/sub\t0.1s [no tests to run]\n"
    assert numbers(plain(text)) == (0, 0, 0, 0, 0)


def test_a_panic_is_an_error_at_the_tests_own_frame(tmp_path: Path) -> None:
    for file in ("sub/b.go", "sub/b_test.go"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text("package sub\n")
    mapper = PathMapper.as_named(tmp_path, "/home/ada/pot")
    [found] = failures_of(plain(PANIC), mapper)
    assert (found.name, found.kind, found.scope) == ("TestBoom", "error", "test")
    assert found.message == "panic: assignment to entry in nil map"
    assert (found.file, found.line) == ("sub/b_test.go", 4)
    assert found.frames == ["sub/b.go:9", "sub/b_test.go:4"]


def test_a_panic_in_a_goroutine_is_a_crash_of_the_run() -> None:
    text = """\
=== RUN   TestG
panic: in goroutine

goroutine 7 [running]:
example.org/pot/tm.TestG.func1()
\t/home/ada/pot/tm/t_test.go:3 +0x27
created by example.org/pot/tm.TestG
\t/home/ada/pot/tm/t_test.go:3 +0x25
FAIL\texample.org/pot/tm\t0.007s
FAIL
"""
    [found] = plain(text).failures
    assert (found.name, found.kind, found.scope) == ("TestG", "crash", "run")


def test_a_test_that_ends_the_process_is_a_crash() -> None:
    parsed = events(
        ("run", "TestExit", ""),
        ("output", "TestExit", "=== RUN   TestExit\n"),
        ("output", "", "exit status 3\n"),
        ("output", "", "FAIL\texample.org/pot\t0.01s\n"),
        ("fail", "", ""),
    )
    [found] = parsed.failures
    assert (found.name, found.kind, found.scope, found.message) == (
        "TestExit",
        "crash",
        "run",
        "exit status 3",
    )


def test_a_time_limit_names_the_test_that_ran() -> None:
    text = """\
panic: test timed out after 1s
\trunning tests:
\t\tTestStuck (1s)

goroutine 5 [running]:
testing.(*M).startAlarm.func1()
\t/usr/lib/go-1.23/src/testing/testing.go:2373 +0x385

goroutine 19 [chan receive]:
example.org/slow.TestStuck(0xc000098820?)
\t/home/ada/slow/slow_test.go:12 +0x3b

goroutine 20 [sleep]:
created by example.org/slow.TestStuck in goroutine 19
\t/home/ada/slow/slow_test.go:11 +0x1a
FAIL\texample.org/slow\t1.005s
FAIL
"""
    parsed = plain(text)
    [found] = parsed.failures
    assert (found.name, found.kind, parsed.stopped) == ("TestStuck", "timeout", "timeout")
    assert [frame.line for frame in found.frames] == [12]


def test_build_and_vet_errors_are_one_record_each() -> None:
    found = failures_of(plain(BUILD))
    assert [(each.scope, each.kind, each.file, each.line) for each in found] == [
        ("suite", "error", "c/c_test.go", 7),
        ("suite", "error", "b/b_test.go", 6),
        ("suite", "error", "b/b_test.go", 7),
    ]
    assert found[2].message == "undefined: y; did you mean:\nz"


def test_a_heading_that_a_test_prints_is_no_build_error() -> None:
    text = VERBOSE.replace("    a_test.go:3: hello", "# heading\nb/x.go:3:1: not an error")
    assert all(each.scope == "test" for each in plain(text).failures)


def test_a_print_without_line_break_before_a_result_is_the_tests_own() -> None:
    text = "=== RUN   TestLoud\nno newline--- FAIL: TestLoud (0.01s)\nFAIL\nFAIL\texample.org/k\t0.02s\n"
    assert numbers(plain(text)) == (1, 0, 1, 0, 0)


def test_a_data_race_is_said_and_located() -> None:
    text = """\
==================
WARNING: DATA RACE
Write at 0x00c0000b4010 by goroutine 8:
  example.org/pot.TestRace.func1()
      /home/ada/pot/r_test.go:9 +0x44
==================
--- FAIL: TestRace (0.00s)
    testing.go:1465: race detected during execution of test
FAIL
FAIL\texample.org/pot\t0.01s
"""
    [found] = plain(text).failures
    assert "race detected" in found.message
    assert [frame.line for frame in found.frames] == [9]


def test_testify_says_its_error_without_the_trace() -> None:
    text = """\
--- FAIL: TestSum (0.00s)
    s_test.go:12: 
        \tError Trace:\t/home/ada/pot/s_test.go:12
        \tError:      \tNot equal: 
        \t            \texpected: 4
        \t            \tactual  : 5
        \tTest:       \tTestSum
        \tMessages:   \tsum of two
FAIL
FAIL\texample.org/pot\t0.01s
"""  # noqa: W291
    [found] = plain(text).failures
    assert found.message == "Not equal:\nexpected: 4\nactual  : 5\nsum of two"
    assert (found.expected, found.actual) == ("4", "5")


def test_events_between_lines_of_others_are_read() -> None:
    log = '{"Action": 7}\nnote: coverage is off\n{"Time":"x","Action":"output","Pack'
    lines = [
        json.dumps({"Action": "run", "Package": "p", "Test": "TestA"}),
        log,
        json.dumps({"Action": "output", "Package": "p", "Test": "TestA", "Output": "    a_test.go:1: half"}),
        json.dumps({"Action": "output", "Package": "p", "Test": "TestA", "Output": " and half\n"}),
        json.dumps({"Action": "fail", "Package": "p", "Test": "TestA", "Elapsed": 0.5}),
        json.dumps({"Action": "fail", "Package": "p"}),
    ]
    parsed = go_json.read(Source("stdout", data="\n".join(lines).encode()))
    assert parsed.failures[0].message == "half and half"
    assert parsed.tests[0].duration_ms == 500


def test_events_that_end_in_a_test_are_not_complete() -> None:
    parsed = events(("run", "TestA", ""), ("pass", "TestA", ""), ("run", "TestB", ""))
    assert not parsed.complete
    assert numbers(parsed) == (1, 1, 0, 0, 0)


def test_gotestsums_summary_is_read_instead_of_what_it_repeats() -> None:
    text = (
        PLAIN
        + """
=== Skipped
=== SKIP: . TestSkip (0.00s)
    a_test.go:4: later

=== Failed
=== FAIL: . TestGroup/one_two (0.00s)
    a_test.go:5: got 1, want 2

DONE 4 tests, 1 skipped, 1 failure in 0.264s
"""
    )
    parsed = plain(text)
    assert [each.name for each in parsed.failures] == ["TestGroup/one_two"]
    assert numbers(parsed) == (4, 2, 1, 0, 1)


def test_a_bare_file_name_is_found_by_its_package(tmp_path: Path) -> None:
    (tmp_path / "svc" / "slot").mkdir(parents=True)
    (tmp_path / "svc" / "go.mod").write_text("module example.org/till/v2 // x\n")
    for file in ("svc/a_test.go", "svc/slot/a_test.go"):
        (tmp_path / file).write_text("package x\n")
    mapper = PathMapper(tmp_path)
    assert mapper.in_package("example.org/till/v2/slot", "a_test.go") == "svc/slot/a_test.go"
    assert mapper.in_package("example.org/till/v2", "a_test.go") == "svc/a_test.go"
    assert mapper.in_package("example.org/till/v2/gone", "a_test.go") is None


def test_a_run_that_only_failed_to_build_is_a_collection_error() -> None:
    parsed = plain(BUILD)
    reading = Reading(
        report=None,  # type: ignore[arg-type]
        counts=parsed.counts,
        failures=tuple(failures_of(parsed)),
    )
    assert verdict(Ending(1), declared=False, reading=reading).reason == "collection_error"


def test_tests_beyond_what_is_kept_are_counted_still(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("devbay.reports.go_tests.MAX_OPEN", 2)
    assert numbers(plain(VERBOSE)) == (5, 1, 3, 0, 1)


def test_located_lines_below_a_heading_are_no_errors_where_everything_was_built() -> None:
    text = "# notes\na/a.go:3:1: see here\n\n" + PLAIN
    assert all(each.scope == "test" for each in plain(text).failures)

"""`cargo test` as Rust 1.70 to 1.95 print it: plain, quiet, JSON, uncaptured, and builds that failed."""

from __future__ import annotations

import json
from pathlib import Path

from devbay.reports import libtest
from devbay.reports.paths import PathMapper
from devbay.reports.records import Parsed
from devbay.reports.source import Source, joined
from tests.reports.samples import failures_of, numbers

STDOUT = """\

running 4 tests
test pod::tests::opens ... FAILED
test tests::custom ... FAILED
test tests::fine ... ok
test tests::wants - should panic ... FAILED

failures:

---- pod::tests::opens stdout ----
Error: "stuck"

---- tests::custom stdout ----
hello

thread 'tests::custom' (22958) panicked at crates/pea/src/lib.rs:16:9:
assertion `left == right` failed: two
  left: 4
 right: 5
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace

---- tests::wants stdout ----

thread 'tests::wants' (22959) panicked at crates/pea/src/lib.rs:17:60:
xyz
note: panic did not contain expected string
      panic message: "xyz"
 expected substring: "abc"

failures:
    pod::tests::opens
    tests::custom
    tests::wants

test result: FAILED. 1 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s


running 2 tests
test outer ... FAILED
test slow ... ignored, needs a net

failures:

---- outer stdout ----

thread 'outer' (3) panicked at crates/pea/src/feed.rs:5:32:
called `Option::unwrap()` on a `None` value
stack backtrace:
   0: __rustc::rust_begin_unwind
             at /rustc/5980761/library/std/src/panicking.rs:689:5
   5: pea::feed::ration
             at ./crates/pea/src/feed.rs:5:32
   6: it::outer
             at ./crates/pea/tests/it.rs:10:16


failures:
    outer

test result: FAILED. 0 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s

"""
STDERR = """\
   Compiling pea v0.1.0 (/home/ada/garden/crates/pea)
    Finished `test` profile [unoptimized + debuginfo] target(s) in 0.15s
     Running unittests src/lib.rs (target/debug/deps/pea-8c3782784741a8db)
error: test failed, to rerun pass `-p pea --lib`
     Running tests/it.rs (target/debug/deps/it-605e71fa165e843d)
error: test failed, to rerun pass `-p pea --test it`
error: 2 targets failed:
    `-p pea --lib`
    `-p pea --test it`
"""
BROKEN = """\
   Compiling silo v0.1.0 (/home/ada/silo)
warning: unused variable: `n`
 --> src/lib.rs:9:9
error[E0308]: mismatched types
 --> src/lib.rs:2:25
  |
2 |     let label: String = n;
  |                ------   ^ expected `String`, found `u32`

error: could not compile `silo` (lib) due to 1 previous error
warning: build failed, waiting for other jobs to finish...
error[E0308]: mismatched types
 --> src/lib.rs:2:25

error: could not compile `silo` (lib test) due to 1 previous error
"""


def cargo(stdout: str = "", stderr: str = "") -> Parsed:
    source = joined([Source("stdout", data=stdout.encode()), Source("stderr", data=stderr.encode())])
    assert libtest.sniff(source.sample())
    return libtest.read(source)


def garden(tmp_path: Path) -> PathMapper:
    """A workspace with two members, so that `src/lib.rs` alone says nothing."""
    for file in ("pea/src/lib.rs", "pea/src/pod.rs", "pea/src/feed.rs", "pea/tests/it.rs", "bean/src/lib.rs"):
        path = tmp_path / "crates" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    return PathMapper(tmp_path)


def test_all_binaries_are_one_run() -> None:
    assert numbers(cargo(STDOUT, STDERR)) == (6, 1, 4, 0, 1)


def test_a_member_of_a_workspace_is_found_by_its_panics(tmp_path: Path) -> None:
    found = {each.name: each for each in failures_of(cargo(STDOUT, STDERR), garden(tmp_path))}
    assert (found["tests::custom"].file, found["tests::custom"].line) == ("crates/pea/src/lib.rs", 16)
    assert found["pod::tests::opens"].file == "crates/pea/src/pod.rs"
    assert found["pod::tests::opens"].line is None


def test_a_failed_unwrap_is_an_error_and_a_failed_assertion_a_failure(tmp_path: Path) -> None:
    found = {each.name: each for each in failures_of(cargo(STDOUT, STDERR), garden(tmp_path))}
    outer = found["outer"]
    assert (outer.kind, outer.file, outer.line) == ("error", "crates/pea/tests/it.rs", 10)
    assert outer.frames == ["crates/pea/src/feed.rs:5", "crates/pea/tests/it.rs:10"]
    custom = found["tests::custom"]
    assert (custom.kind, custom.expected, custom.actual) == ("failure", "5", "4")
    assert custom.message == "assertion `left == right` failed: two\n  left: 4\n right: 5"


def test_an_expected_panic_with_other_words_says_both() -> None:
    found = next(each for each in cargo(STDOUT, STDERR).failures if each.name == "tests::wants")
    assert found.kind == "failure"
    assert '"xyz"' in found.message
    assert '"abc"' in found.message


def test_the_place_before_rust_1_73_stood_after_the_message() -> None:
    text = """\
running 1 test
test t::a ... FAILED

failures:

---- t::a stdout ----
thread 't::a' panicked at 'assertion failed: `(left == right)`
  left: `1`,
 right: `2`: more', src/lib.rs:30:9
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace

failures:
    t::a

test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
"""
    [found] = failures_of(cargo(text))
    assert (found.file, found.line) == ("src/lib.rs", 30)
    assert found.message.startswith("assertion failed: `(left == right)`\n  left: `1`")


def test_a_doc_test_is_where_its_name_says() -> None:
    text = """\
running 1 test
test src/lib.rs - add (line 9) ... FAILED

failures:

---- src/lib.rs - add (line 9) stdout ----
error[E0425]: cannot find function `nope` in this scope
 --> src/lib.rs:10:1
Couldn't compile the test.

failures:
    src/lib.rs - add (line 9)

test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.09s
"""
    [found] = failures_of(cargo(text))
    assert (found.file, found.line, found.kind) == ("src/lib.rs", 9, "error")
    assert found.message == "cannot find function `nope` in this scope"


def test_a_compile_error_is_one_record_though_a_library_is_built_twice() -> None:
    parsed = cargo(stderr=BROKEN)
    [found] = failures_of(parsed)
    assert (found.scope, found.kind, found.file, found.line) == ("suite", "error", "src/lib.rs", 2)
    assert (found.name, found.message) == ("silo", "mismatched types")
    assert parsed.counts is None


def test_a_compile_error_in_json_is_the_same() -> None:
    message = {
        "reason": "compiler-message",
        "target": {"name": "silo"},
        "message": {
            "level": "error",
            "message": "mismatched types",
            "spans": [{"is_primary": True, "file_name": "src/lib.rs", "line_start": 2}],
        },
    }
    last = "error: could not compile `silo` (lib test) due to 1 previous error\n"
    [found] = failures_of(cargo(json.dumps(message) + "\n", last))
    assert (found.scope, found.file, found.line) == ("suite", "src/lib.rs", 2)


def test_a_check_without_build_is_not_cargo_tests() -> None:
    text = BROKEN.replace("Compiling", "Checking").replace(" (lib test)", " (lib)")
    assert not libtest.sniff(text.encode())


def test_a_binary_that_dies_is_a_crash_in_the_test_that_ran() -> None:
    stdout = "\nrunning 2 tests\ntest tests::a ... ok\ntest tests::b ... "
    stderr = """\
     Running unittests src/lib.rs (target/debug/deps/bean-5)
error: test failed, to rerun pass `--lib`

Caused by:
  process didn't exit successfully: `/t/debug/deps/bean-5` (signal: 6, SIGABRT: process abort signal)
"""
    parsed = cargo(stdout, stderr)
    [found] = parsed.failures
    assert (found.name, found.kind, found.scope, parsed.stopped) == ("tests::b", "crash", "run", "crash")
    assert "SIGABRT" in found.message
    assert numbers(parsed) == (1, 1, 0, 0, 0)


def test_a_binary_that_dies_is_read_from_one_merged_stream_too() -> None:
    text = """\
     Running unittests src/lib.rs (target/debug/deps/bean-5)

running 2 tests
test tests::a ... ok
test tests::b ... error: test failed, to rerun pass `-p bean --lib`

Caused by:
  process didn't exit successfully: `/t/debug/deps/bean-5` (signal: 6, SIGABRT: process abort signal)
     Running unittests src/lib.rs (target/debug/deps/pea-5)

running 1 test
test tests::c ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
"""
    parsed = cargo(text)
    assert [(each.name, each.kind) for each in parsed.failures] == [("tests::b", "crash")]
    assert numbers(parsed) == (2, 2, 0, 0, 0)


def test_output_that_ends_in_a_binary_is_not_complete() -> None:
    parsed = cargo("\nrunning 2 tests\ntest tests::a ... ok\n")
    assert not parsed.complete
    assert parsed.failures == ()


def test_what_was_not_captured_is_given_to_its_test() -> None:
    stdout = """\

running 2 tests
hello
test tests::custom ... FAILED
test tests::fine ... ok

failures:

failures:
    tests::custom

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

"""
    stderr = """\
     Running unittests src/lib.rs (target/debug/deps/pea-8)

thread 'tests::custom' (5) panicked at src/lib.rs:16:9:
twice is 2
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
error: test failed, to rerun pass `--lib`
"""
    [found] = failures_of(cargo(stdout, stderr))
    assert (found.name, found.line, found.message) == ("tests::custom", 16, "twice is 2")


def test_json_events_say_what_the_text_says() -> None:
    rows = [
        {"type": "suite", "event": "started", "test_count": 3},
        {"type": "test", "event": "started", "name": "tests::a"},
        {"type": "test", "name": "tests::a", "event": "ok", "exec_time": 0.25},
        {"type": "test", "name": "tests::b", "event": "failed",
         "stdout": "\nthread 'tests::b' (8) panicked at src/lib.rs:45:9:\nassertion failed: no\n"},
        {"type": "test", "name": "tests::c", "event": "failed",
         "message": "test did not panic as expected at src/lib.rs:39:8"},
        {"type": "test", "name": "tests::d", "event": "ignored"},
        {"type": "suite", "event": "failed", "passed": 1, "failed": 2, "ignored": 1, "measured": 0},
    ]  # fmt: skip
    text = "\n".join(json.dumps(row) for row in rows).replace('{"type"', '{ "type"')
    parsed = cargo(text)
    assert numbers(parsed) == (4, 1, 2, 0, 1)
    found = failures_of(parsed)
    assert [(each.line, each.message) for each in found] == [
        (45, "assertion failed: no"),
        (39, "test did not panic as expected"),
    ]
    assert parsed.tests[0].duration_ms == 250


def test_no_tests_at_all_are_counted_as_none() -> None:
    text = "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out;\n"
    assert numbers(cargo(text)) == (0, 0, 0, 0, 0)

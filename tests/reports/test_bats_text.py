"""bats's pretty output, with the cursor movements of a terminal."""

from __future__ import annotations

from devbay.reports import bats_text
from devbay.reports.records import Parsed
from devbay.reports.source import Source
from tests.reports.samples import failures_of, numbers

PRETTY = (
    "\x1b[34;1mpack.bats\n"
    "\x1b[0m\x1b[1G   weighs\x1b[K\x1b[77G1/5\x1b[2G\x1b[1G ✓ weighs\x1b[K\n"
    "\x1b[0m\x1b[1G   counts\x1b[K\x1b[77G2/5\x1b[2G\x1b[31;1m\x1b[1G ✗ counts\x1b[K\n"
    "\x1b[0m\x1b[31;22m   (from function `check' in file test/pack.bats, line 24,\n"
    "\x1b[0m\x1b[31;22m    in test file test/pack.bats, line 13)\n"
    "\x1b[0m\x1b[31;22m     `check 7' failed with status 3\n"
    "\x1b[0m\x1b[31;22m   7 expected\n"
    "\x1b[0m\x1b[1G   later\x1b[K\x1b[77G3/5\x1b[2G\x1b[1G - later (skipped: no scales)\x1b[K\n"
    "\x1b[0m\x1b[34;1msetup.bats\n"
    "\x1b[0m\x1b[31;1m\x1b[1G ✗ setup_file failed\x1b[K\n"
    "\x1b[0m\x1b[31;22m   (from function `setup_file' in test file test/setup.bats, line 3)\n"
    "\x1b[0m\x1b[31;22m     `false' failed\n"
    "\x1b[0m\x1b[31;1m\n5 tests, 2 failures, 1 skipped\n\x1b[0m\n"
)


def parsed_of(text: str) -> Parsed:
    return bats_text.read(Source("output", data=text.encode()))


def test_a_failure_has_the_deepest_line_of_its_file_and_the_command() -> None:
    failure = failures_of(parsed_of(PRETTY))[0]
    assert (failure.suite, failure.name, failure.kind) == ("pack.bats", "counts", "failure")
    assert failure.message == "`check 7' failed with status 3\n7 expected"
    assert failure.frames == ["test/pack.bats:24", "test/pack.bats:13"]


def test_a_hook_around_a_file_is_a_set_up_failure_of_the_suite() -> None:
    hook = failures_of(parsed_of(PRETTY))[1]
    assert (hook.scope, hook.phase, hook.kind) == ("suite", "setup", "error")


def test_times_are_no_part_of_a_name_even_if_there_is_none() -> None:
    parsed = parsed_of(
        "a.bats\n ✓ weighs [10]\n ✗ setup_file failed []\n   syntax error\n2 tests, 1 failure\n"
    )
    assert [(test.name, test.duration_ms) for test in parsed.tests] == [("weighs", 10)]
    assert [(f.name, f.scope) for f in parsed.failures] == [("setup_file failed", "suite")]


def test_outcomes_are_counted() -> None:
    assert numbers(parsed_of(PRETTY)) == (4, 1, 1, 1, 1)


def test_a_timeout_is_told_from_a_failure() -> None:
    parsed = parsed_of(
        "a.bats\n ✗ waits (timeout: 1s)\n   (in test file a.bats, line 3)\n1 test, 1 failure\n"
    )
    assert [f.kind for f in parsed.failures] == ["timeout"]


def test_a_run_without_its_last_line_is_not_complete() -> None:
    parsed = parsed_of(PRETTY.partition("5 tests")[0])
    assert not parsed.complete
    assert [(f.kind, f.scope) for f in parsed.failures][-1] == ("crash", "run")


def test_marks_of_other_runners_are_not_bats() -> None:
    assert not bats_text.sniff("  ✓ renders\n  ✗ fails\n\n 2 passing\n".encode())
    assert bats_text.sniff(PRETTY.encode())

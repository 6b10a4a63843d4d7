"""unittest's plain output, as Python 3.8 to 3.14 print it."""

from __future__ import annotations

from devbay.reports import unittest_text
from devbay.reports.paths import PathMapper
from devbay.reports.records import Parsed
from devbay.reports.source import Source
from tests.reports.samples import failures_of, numbers

DOUBLE, RULE = "=" * 70, "-" * 70
FAILED = f"""\
F.sxuE
{DOUBLE}
ERROR: test_lid (kitchen.tests.test_pot.PotTest.test_lid)
{RULE}
Traceback (most recent call last):
  File "/src/kitchen/tests/test_pot.py", line 31, in test_lid
    self.pot.open()
    ~~~~~~~~~~~~~^^
  File "/src/kitchen/pot.py", line 8, in open
    return self.lids[0]
IndexError: list index out of range

{DOUBLE}
FAIL: test_boils (kitchen.tests.test_pot.PotTest.test_boils)
Water boils at 100 degrees.
{RULE}
Traceback (most recent call last):
  File "/src/kitchen/tests/test_pot.py", line 12, in test_boils
    self.assertEqual(self.pot.heat(), 100)
AssertionError: 99 != 100

Stdout:
heating

{DOUBLE}
UNEXPECTED SUCCESS: test_mended (kitchen.tests.test_pot.PotTest.test_mended)
{RULE}
Ran 6 tests in 0.010s

FAILED (failures=1, errors=1, skipped=1, expected failures=1, unexpected successes=1)
"""


def parsed_of(text: str) -> Parsed:
    return unittest_text.read(Source("output", data=text.encode()))


def block(head: str, frames: str, last: str) -> str:
    trace = f"Traceback (most recent call last):\n{frames}{last}\n\n"
    return f"{DOUBLE}\n{head}\n{RULE}\n{trace}{RULE}\nRan 1 test in 0.1s\n\nFAILED (errors=1)\n"


def test_an_error_has_the_tests_own_line_and_the_deepest_frame() -> None:
    error = failures_of(parsed_of(FAILED), PathMapper.as_named(None, "/src"))[0]
    assert (error.name, error.suite, error.kind) == ("test_lid", "kitchen.tests.test_pot.PotTest", "error")
    assert (error.file, error.line) == ("kitchen/tests/test_pot.py", 31)
    assert error.frames == ["kitchen/pot.py:8", "kitchen/tests/test_pot.py:31"]
    assert error.message == "IndexError: list index out of range"


def test_a_failure_has_its_values_and_what_it_printed() -> None:
    failure = failures_of(parsed_of(FAILED), PathMapper.as_named(None, "/src"))[1]
    assert (failure.kind, failure.line, failure.message) == ("failure", 12, "AssertionError: 99 != 100")
    assert (failure.expected, failure.actual, failure.output) == ("100", "99", "heating")


def test_an_unexpected_success_fails_and_an_expected_failure_is_skipped() -> None:
    parsed = parsed_of(FAILED)
    assert numbers(parsed) == (6, 1, 2, 1, 2)
    assert failures_of(parsed)[2].name == "test_mended"


def test_subtests_count_once_but_are_records_apart() -> None:
    trace = (
        'Traceback (most recent call last):\n  File "t.py", line 3, in test_x\n    x\nAssertionError: no\n'
    )
    subs = "".join(f"{DOUBLE}\nFAIL: test_x (t.T.test_x) (i={i})\n{RULE}\n{trace}\n" for i in (1, 2))
    parsed = parsed_of(f"{subs}{RULE}\nRan 2 tests in 0.1s\n\nFAILED (failures=2)\n")
    assert [f.name for f in parsed.failures] == ["test_x (i=1)", "test_x (i=2)"]
    assert numbers(parsed) == (2, 1, 1, 0, 0)


def test_a_module_that_does_not_load_is_a_collection_error() -> None:
    frames = '  File "/src/tests/test_oven.py", line 1, in <module>\n    import oven\n'
    head = "ERROR: tests.test_oven (unittest.loader._FailedTest.tests.test_oven)"
    (found,) = parsed_of(block(head, frames, "ModuleNotFoundError: No module named 'oven'")).failures
    assert (found.name, found.scope, found.kind) == ("tests.test_oven", "suite", "error")
    assert found.own == ("tests.test_oven",)


def test_set_up_is_told_from_the_test() -> None:
    in_class = block(
        "ERROR: setUpClass (t.T)", '  File "t.py", line 3, in setUpClass\n    x\n', "OSError: no"
    )
    in_test = block(
        "ERROR: test_a (t.T.test_a)", '  File "t.py", line 3, in setUp\n    x\n', "OSError: no gas"
    )
    assert [(f.scope, f.phase) for f in parsed_of(in_class).failures] == [("suite", "setup")]
    assert [(f.scope, f.phase) for f in parsed_of(in_test).failures] == [("test", "setup")]


def test_python_before_3_11_names_the_class_alone() -> None:
    (found,) = parsed_of(
        block("ERROR: test_a (pkg.mod.T)", '  File "a.py", line 1\n', "OSError: no")
    ).failures
    assert found.message == "OSError: no"
    assert (found.name, found.suite) == ("test_a", "pkg.mod.T")


def test_a_run_that_ends_in_a_test_names_it() -> None:
    parsed = parsed_of("test_a (m.T.test_a) ... ok\ntest_b (m.T.test_b) ... ")
    assert not parsed.complete
    assert [(f.name, f.kind, f.scope) for f in parsed.failures] == [("test_b", "crash", "run")]
    assert numbers(parsed) == (1, 1, 0, 0, 0)


def test_faulthandlers_time_limit_is_a_timeout_where_the_test_waits() -> None:
    text = (
        "test_b (m.T.test_b) ... Timeout (0:00:02)!\nThread 0x1 (most recent call first):\n"
        '  File "/usr/lib/python3.11/queue.py", line 171 in get\n  File "/src/m.py", line 10 in test_b\n'
    )
    parsed = parsed_of(text)
    assert parsed.stopped == "timeout"
    assert [(f.name, f.kind, f.scope, f.message) for f in parsed.failures] == [
        ("test_b", "timeout", "run", "Timeout (0:00:02)!")
    ]


def test_outcomes_on_later_lines_belong_to_the_test_before() -> None:
    parsed = parsed_of(
        f"test_a (m.T.test_a)\nWhat it does. ... ok\ntest_b (m.T.test_b) ... printed\nERROR\n"
        f"{RULE}\nRan 2 tests in 0.1s\n\nOK\n"
    )
    assert [(test.name, test.outcome) for test in parsed.tests] == [("test_a", "passed"), ("test_b", "error")]


def test_nothing_ran_is_a_count_of_zero() -> None:
    assert numbers(parsed_of(f"\n{RULE}\nRan 0 tests in 0.000s\n\nOK\n")) == (0, 0, 0, 0, 0)


def test_bun_is_not_taken_for_unittest() -> None:
    assert not unittest_text.sniff(b"Ran 11 tests across 2 files. [20.00ms]\n")
    assert unittest_text.sniff(FAILED.encode())

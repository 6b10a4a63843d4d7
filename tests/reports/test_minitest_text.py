"""The plain output of Minitest, Rails and test-unit."""

from __future__ import annotations

from devbay.reports import minitest_text, testunit_text
from devbay.reports.records import Parsed
from devbay.reports.source import Source
from tests.reports.samples import failures_of, numbers

MINITEST = """\
Run options: --seed 7

# Running:

FES.

Finished in 0.007681s, 1171.6649 runs/s, 1041.4799 assertions/s.

  1) Failure:
LampTest#test_glows [test/lamp_test.rb:11]:
too dim.
Expected: 4
  Actual: 3

  2) Error:
LampTest#test_breaks:
NoMethodError: undefined method `glow' for nil:NilClass

    @bulb.glow
         ^^^^^
    lib/lamp.rb:7:in `on'
    test/lamp_test.rb:15:in `test_breaks'

4 runs, 3 assertions, 1 failures, 1 errors, 1 skips
"""
TEST_UNIT = """\
Loaded suite test/a_test
Started
E
===============================================================================
Error: test_boom(CupTest):
  NoMethodError: undefined method `size_of' for nil:NilClass
lib/cup.rb:9:in `deep'
test/a_test.rb:8:in `test_boom'
      6:   end
  =>  8:   def test_boom; deep; end
===============================================================================
F
===============================================================================
Failure: test_eq(CupTest)
test/a_test.rb:5:in `test_eq'
     4:   def test_eq
  => 5:     assert_equal(4, 3, "cup size")
cup size
<4> expected but was
<3>
===============================================================================
F
===============================================================================
Failure: test: has a name(CupTest::inner): <3> was expected to be nil.
test/a_test.rb:12:in `block (2 levels) in <class:CupTest>'
===============================================================================
P
===============================================================================
Pending: test_later(CupTest): soon
test/a_test.rb:10:in `test_later'
===============================================================================
.
Finished in 0.009588692 seconds.
-------------------------------------------------------------------------------
5 tests, 4 assertions, 2 failures, 1 errors, 1 pendings, 0 omissions, 0 notifications
"""


def parsed_of(text: str) -> Parsed:
    return minitest_text.read(Source("output", data=text.encode()))


def unit_of(text: str) -> Parsed:
    return testunit_text.read(Source("output", data=text.encode()))


def test_a_failure_is_where_the_assertion_is() -> None:
    failure = failures_of(parsed_of(MINITEST))[0]
    assert (failure.suite, failure.name, failure.kind) == ("LampTest", "test_glows", "failure")
    assert (failure.file, failure.line) == ("test/lamp_test.rb", 11)
    assert failure.message == "too dim.\nExpected: 4\n  Actual: 3"
    assert (failure.expected, failure.actual) == ("4", "3")


def test_an_error_is_in_the_test_with_the_deepest_frame_beside_it() -> None:
    error = failures_of(parsed_of(MINITEST))[1]
    assert (error.kind, error.file, error.line) == ("error", "test/lamp_test.rb", 15)
    assert error.frames == ["lib/lamp.rb:7", "test/lamp_test.rb:15"]
    assert error.message.startswith("NoMethodError: undefined method `glow'")
    assert "lib/lamp.rb" not in error.message


def test_counts_are_minitests_own() -> None:
    assert numbers(parsed_of(MINITEST)) == (4, 1, 1, 1, 1)


def test_rails_prints_failures_between_the_progress() -> None:
    parsed = parsed_of(
        "Run options: --seed 7\n\n# Running:\n\n.F\n\nFailure:\n"
        "CartTest#test_sum [test/models/cart_test.rb:9]:\nExpected: 2\n  Actual: 1\n\n\n"
        "bin/rails test test/models/cart_test.rb:7\n\n.\n\n"
        "3 runs, 3 assertions, 1 failures, 0 errors, 0 skips\n"
    )
    (failure,) = failures_of(parsed)
    assert (failure.file, failure.line) == ("test/models/cart_test.rb", 9)
    assert failure.message == "Expected: 2\n  Actual: 1"


def test_an_error_in_setup_is_of_that_phase() -> None:
    for method in ("setup'", "CupTest#setup'"):
        text = (
            f"  1) Error:\nA#test_x:\nIOError: dry\n    test/a_test.rb:3:in `{method}\n\n1 runs, 0 assertions"
        )
        assert [f.phase for f in parsed_of(text).failures] == ["setup", None]


def test_verbose_progress_is_kept_for_the_history() -> None:
    parsed = parsed_of(
        "Run options: -v --seed 1\nA#test_x = 0.02 s = .\nA#test_y = printed\n0.01 s = F\nA#test_z = "
    )
    assert [(t.name, t.outcome, t.duration_ms) for t in parsed.tests] == [
        ("test_x", "passed", 20),
        ("test_y", "failed", 10),
    ]
    assert [(f.name, f.kind, f.scope) for f in parsed.failures] == [("test_z", "crash", "run")]


def test_test_units_source_excerpt_is_not_the_message() -> None:
    error, failure, inner = failures_of(unit_of(TEST_UNIT))
    assert failure.message == "cup size\n<4> expected but was\n<3>"
    assert (failure.file, failure.line) == ("test/a_test.rb", 5)
    assert error.message == "NoMethodError: undefined method `size_of' for nil:NilClass"
    assert (error.line, error.frames) == (8, ["lib/cup.rb:9", "test/a_test.rb:8"])
    assert (inner.suite, inner.name) == ("CupTest::inner", "test: has a name")
    assert inner.message == "<3> was expected to be nil."


def test_test_units_pendings_are_skipped() -> None:
    assert numbers(unit_of(TEST_UNIT)) == (5, 1, 2, 1, 1)


def test_the_two_are_told_apart() -> None:
    assert testunit_text.sniff(TEST_UNIT.encode())
    assert not testunit_text.sniff(MINITEST.encode())
    assert minitest_text.sniff(MINITEST.encode())

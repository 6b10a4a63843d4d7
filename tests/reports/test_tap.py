"""TAP as its producers write it: node:test, tape, node-tap, Vitest, Mocha, bats, Test::More."""

import pytest

from devbay.reports import tap
from devbay.reports.records import Parsed
from devbay.reports.source import Source
from devbay.reports.tap_yaml import fields
from tests.reports.samples import failures_of, numbers

NODE = """TAP version 13
# Subtest: outer
    # Subtest: custom
    not ok 1 - custom
      ---
      duration_ms: 1.5
      location: '/src/app/node/a.test.mjs:8:5'
      failureType: 'testCodeFailure'
      error: 'negative: -1'
      code: 'ERR_TEST_FAILURE'
      name: 'PriceError'
      stack: |-
        price (/src/app/lib/calc.js:3:20)
        TestContext.<anonymous> (file:///src/app/node/a.test.mjs:9:12)
        Test.run (node:internal/test_runner/test:796:25)
      ...
    # Subtest: fine
    ok 2 - fine
      ---
      duration_ms: 0.2
      ...
    1..2
not ok 1 - outer
  ---
  type: 'suite'
  failureType: 'subtestsFailed'
  error: '1 subtest failed'
  ...
# Subtest: later
ok 2 - later # SKIP not now
1..2
# tests 3
# pass 1
# fail 1
"""
TAPE = """TAP version 13
# prices
ok 1 one
not ok 2 two
  ---
    operator: equal
    expected: 5
    actual:   4
    at: Test.<anonymous> (/src/app/tap/tape.js:2:90)
  ...
# todo
not ok 3 tt # TODO
1..3
"""


def read(text: str) -> Parsed:
    return tap.read(Source("output", data=text.encode()))


def test_subtests_count_once_and_their_parents_not_at_all() -> None:
    parsed = read(NODE)
    assert numbers(parsed) == (3, 1, 1, 0, 1)
    assert [(t.name, t.suite, t.outcome) for t in parsed.tests] == [
        ("custom", "outer", "failed"), ("fine", "outer", "passed"), ("later", None, "skipped")
    ]  # fmt: skip


def test_a_test_has_the_duration_that_its_block_tells() -> None:
    assert [(t.name, t.duration_ms) for t in read(NODE).tests] == [
        ("custom", 2),
        ("fine", 0),
        ("later", None),
    ]


def test_a_parent_that_only_sums_up_is_no_record() -> None:
    (failure,) = failures_of(read(NODE))
    assert (failure.suite, failure.name, failure.kind) == ("outer", "custom", "error")
    assert failure.message == "PriceError: negative: -1"


def test_frames_come_from_the_stack_and_the_place_from_location() -> None:
    (found,) = read(NODE).failures
    assert [(f.path, f.line) for f in found.frames][:2] == [
        ("/src/app/lib/calc.js", 3),
        ("file:///src/app/node/a.test.mjs", 9),
    ]
    assert (found.own, found.own_line) == (("/src/app/node/a.test.mjs",), 8)


@pytest.mark.parametrize("passed, phase", [("not ok", "setup"), ("ok", "teardown")])
def test_a_hook_of_a_suite_is_setup_unless_its_tests_passed(passed: str, phase: str) -> None:
    yaml = "  ---\n  type: 'suite'\n  failureType: 'hookFailed'\n  error: 'broke'\n  ...\n"
    text = f"# Subtest: s\n    # Subtest: t\n    {passed} 1 - t\n    1..1\nnot ok 1 - s\n{yaml}1..1\n"
    found = read(text).failures[-1]
    assert (found.name, found.scope, found.kind, found.phase) == ("s", "suite", "error", phase)


def test_assertions_are_named_after_the_comment_of_their_test() -> None:
    (failure,) = failures_of(read(TAPE))
    assert (failure.name, failure.message, failure.file) == ("prices: two", "two", None)
    assert (failure.expected, failure.actual) == ("5", "4")


def test_a_failed_todo_is_skipped() -> None:
    assert numbers(read(TAPE)) == (3, 1, 1, 0, 1)


def test_subtests_in_braces_end_with_their_brace() -> None:
    parsed = read(
        "TAP version 13\n1..1\nnot ok 1 - test/geo.test.ts # time=12.01ms {\n    1..2\n"
        "    not ok 1 - trip # time=0.9ms {\n        1..1\n"
        "        not ok 1 - far # time=0.80ms\n"
        "            ---\n"
        '            error:\n                name: "TypeError"\n                message: "no x"\n'
        '            at: "/src/app/test/geo.test.ts:4:27"\n            ...\n    }\n'
        "    ok 2 - near # SKIP\n}\n"
    )
    (found,) = parsed.failures
    assert (found.suite, found.name, found.own, found.message) == (
        "trip",
        "far",
        ("test/geo.test.ts",),
        "TypeError: no x",
    )
    assert numbers(parsed) == (2, 0, 1, 0, 1)
    assert parsed.tests[0].duration_ms == 1


def test_text_below_a_point_is_its_message_and_stack() -> None:
    parsed = read(
        "not ok 1 menu costs 8\n  expected 7 to equal 8\n"
        "  AssertionError: expected 7 to equal 8\n"
        "      at Context.<anonymous> (test/menu.spec.js:7:30)\n1..1\n"
    )
    (failure,) = failures_of(parsed)
    assert (failure.message, failure.line) == ("AssertionError: expected 7 to equal 8", 7)


def test_bats_comments_give_place_phase_and_message() -> None:
    text = (
        "1..1\nnot ok 1 setup is broken\n"
        "# (from function `setup' in test file test/t.bats, line 2)\n"
        "#   `cd /no' failed\n# cd: /no: gone\n"
    )
    (failure,) = failures_of(read(text))
    assert (failure.file, failure.line, failure.phase) == ("test/t.bats", 2, "setup")
    assert failure.message == "`cd /no' failed\ncd: /no: gone"


def test_diagnostics_on_standard_error_are_given_to_their_tests_by_name() -> None:
    text = (
        "not ok 1 - a\nnot ok 2 - b\n1..2\n#   Failed test 'a'\n#   at t/x.t line 3.\n"
        "#   Failed test 'b'\n#   at t/x.t line 7.\n#          got: '1'\n"
    )
    assert [(f.name, f.file, f.line) for f in failures_of(read(text))] == [
        ("a", "t/x.t", 3),
        ("b", "t/x.t", 7),
    ]


def test_an_uncaught_error_of_node_is_a_crash_of_the_run() -> None:
    died = (
        "/src/app/dice.js:3\nexports.best = 1;\n   ^\n\nTypeError: no rounds\n"
        "    at best (/src/app/dice.js:3:41)\n"
        "    at Test.<anonymous> (/src/app/test/e.js:10:11)\n\nNode.js v20.20.2\n"
    )
    parsed = read("TAP version 13\n# t\nok 1 fine\n" + died)
    (found,) = parsed.failures
    assert (found.scope, found.message, found.frames[0].line) == ("run", "TypeError: no rounds", 3)
    assert parsed.stopped == "crash"


def test_a_file_that_node_cannot_run_tells_what_it_printed() -> None:
    text = (
        "TAP version 13\n# file:///x/b.test.js:4\n# SyntaxError: Unexpected token\n"
        "#     at compile (node:internal/a:1:2)\n# Subtest: /x/b.test.js\n"
        "not ok 1 - /x/b.test.js\n  ---\n  error: 'test failed'\n  ...\n1..1\n"
    )
    (found,) = read(text).failures
    assert (found.scope, found.kind, found.message) == ("suite", "error", "SyntaxError: Unexpected token")
    assert found.frames[0].line == 4


@pytest.mark.parametrize(
    "text, message",
    [
        ("TAP version 13\nok 1 a\nBail out! disk gone\n", "disk gone"),
        ("ok 1 a\nok 2 b\n", "the plan is missing, 2 ran"),
        ("1..3\nok 1 a\n", "3 tests were planned, 1 ran"),
    ],
)
def test_a_stream_that_ends_early_is_a_crash(text: str, message: str) -> None:
    parsed = read(text)
    assert [(f.kind, f.scope, f.message) for f in parsed.failures] == [("crash", "run", message)]
    assert parsed.stopped == "crash"


def test_several_streams_add_up() -> None:
    assert numbers(read("TAP version 13\nok 1 a\n1..1\nTAP version 13\nnot ok 1 b\n1..1\n")) == (
        2,
        1,
        1,
        0,
        0,
    )
    assert read("1..1\nok 1 a\n1..2\nok 1 b\nok 2 c\n").complete


def test_what_only_looks_like_a_directive_is_none() -> None:
    (found,) = read("1..1\nnot ok 1 - formats # the disk\n").failures
    assert found.name == "formats # the disk"


def test_an_empty_plan_counts_zero_and_is_complete() -> None:
    parsed = read("1..0\n")
    assert numbers(parsed) == (0, 0, 0, 0, 0) and parsed.complete


@pytest.mark.parametrize("text", ["ok  \tgithub.com/x/y\t0.1s", "ok | 3 passed", "not ok", "it is ok 1"])
def test_what_other_runners_print_is_not_taken_for_tap(text: str) -> None:
    assert not tap.sniff(text.encode())


def test_yaml_is_read_though_it_is_none() -> None:
    lines = (
        "  message: \"a\nb \\\"c\\\"\"\n  raw: `it's {}`\n  one: 'it''s'\n  nothing: ~\n"
        "  fold: >-\n    x\n    y\n  text: |2-\n      in\n    dent\n  deep:\n    er: 1\n"
        "  last: 2"
    )
    assert fields(lines.split("\n")) == {
        "message": 'a\nb "c"', "raw": "it's {}", "one": "it's", "nothing": "", "fold": "x y",
        "text": "  in\ndent", "deep.er": "1", "last": "2",
    }  # fmt: skip


def test_a_parent_that_failed_though_only_a_todo_in_it_did_is_a_record() -> None:
    parsed = read("# Subtest: s\n    not ok 1 - t # TODO\n    1..1\nnot ok 1 - s\n1..1\n")
    assert [f.name for f in parsed.failures] == ["s"]


def test_what_was_cancelled_with_its_suite_is_no_record() -> None:
    yaml = (
        "failureType: 'cancelledByParent'\n  error: 'test did not finish before its parent and was cancelled'"
    )
    parsed = read(f"not ok 1 - t\n  ---\n  {yaml}\n  ...\n1..1\n")
    assert parsed.failures == () and numbers(parsed)[2] == 1


def test_diagnostics_after_the_stream_are_not_those_of_its_last_failure() -> None:
    diagnostics = "#   Failed test 'a'\n#   at t/x.t line 3.\n#   Failed test 'b'\n#   at t/x.t line 7.\n"
    for text in (f"1..2\nnot ok 1 - a\nnot ok 2 - b\n{diagnostics}", f"not ok 1 - b\n1..1\n{diagnostics}"):
        assert failures_of(read(text))[-1].line == 7
    assert read(f"not ok 1 - b\n1..1\n{diagnostics}").failures[0].message == "Failed test 'b'"


def test_comments_after_the_plan_are_no_message() -> None:
    (found,) = read("not ok 1 - b\n1..1\n# the server said bye\n").failures
    assert found.message == "b"

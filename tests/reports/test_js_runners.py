"""node:test's spec reporter, AVA, Bun and Deno, as they wrote of small suites."""

from devbay.reports import ava_text, bun_text, deno_text, node_text
from devbay.reports.source import Source
from tests.reports.samples import failures_of, numbers

NODE = """▶ outer
  ▶ inner
    ✖ custom (1.2ms)
      Error [PriceError]: negative: -1
          at price (/x/lib/calc.js:3:9)

    ✔ fine (0.1ms)
  ✖ inner (2.0ms)
✖ outer (3.1ms)
▶ lamp
  ✔ shines (0.2ms)
✖ lamp (0.5ms)

✖ known (0.3ms) # TODO
ℹ tests 4
ℹ suites 3
ℹ pass 2
ℹ fail 1
ℹ cancelled 0
ℹ skipped 0
ℹ todo 1
ℹ duration_ms 97.1

✖ failing tests:

test at node/a.test.mjs:8:5
✖ custom (1.2ms)
  Error [PriceError]: negative: -1
      at price (/x/lib/calc.js:3:9)
      at TestContext.<anonymous> (file:///x/node/a.test.mjs:8:26)

test at node/a.test.mjs:20:1
✖ lamp (0.5ms)
  Error: lamp still on
      at SuiteContext.<anonymous> (file:///x/node/a.test.mjs:22:11)
      at TestHook.run (node:internal/test_runner/test:796:25)

test at node/a.test.mjs:26:1
✖ known (0.3ms) # TODO
  AssertionError [ERR_ASSERTION]: known
"""
AVA = """
  - [skip] tea › cold
  ✘ [fail]: tea › black
    ℹ kettle on
  ✔ tea › green
  ✘ [fail]: tea › far Rejected promise returned by test
  ─

  tea › black
  test/tea.js:10

    9:   t.log('kettle on');
   10:   t.is(brew('black'), 'black tea: 5 min');
   11:

  Difference (- actual, + expected):

  - 'black tea: 4 min'
  + 'black tea: 5 min'

  › file://test/tea.js:10:5



  tea › far

  Rejected promise returned by test. Reason:

  RangeError: far
      at file:///x/test/tea.js:14:8

  ─

  2 tests failed
"""
BUN = """bun test v1.4.5 (a7733435c)

bun/a.test.ts:
 9 | test('top', () => {
10 |   expect(price(2)).toBe(5);
                        ^
error: expect(received).toBe(expected)

Expected: 5
Received: 4

      at <anonymous> (/x/bun/a.test.ts:10:20)
(fail) outer > top [0.31ms]
(pass) fine [0.05ms]
(skip) outer > winter
(fail) slow [100.23ms]
  ^ this test timed out after 100ms.

bun/b.test.ts:

# Unhandled error between tests
-------------------------------
error: Cannot find module './missing' from '/x/bun/b.test.ts'
-------------------------------

 1 pass
 1 skip
 2 fail
 1 error
Ran 4 tests across 2 files. [175.00ms]
"""
DENO = """running 3 tests from ./deno/a_test.ts
equal ... FAILED (4ms)
steps ...
  two ... ok (1ms)
steps ... ok (2ms)
later ... ignored (0ms)
./deno/b_test.ts (uncaught error)

 ERRORS 

equal => ./deno/a_test.ts:2:6
error: Error: Values are not equal: 1 2
  throw new Error('x');
        ^
    at eq (file:///x/deno/a_test.ts:1:62)
    at file:///x/deno/a_test.ts:2:28

./deno/b_test.ts (uncaught error)
error: (in promise) Error: module level
    at file:///x/deno/b_test.ts:1:7

 FAILURES 

equal => ./deno/a_test.ts:2:6

FAILED | 1 passed (1 step) | 2 failed | 1 ignored (12ms)
"""  # noqa: W291


def source(text: str) -> Source:
    return Source("output", data=text.encode())


def test_node_lists_failures_with_suites_hooks_and_no_todo() -> None:
    found = node_text.read(source(NODE)).failures
    assert [(f.suite, f.name, f.scope, f.phase, f.kind) for f in found] == [
        ("outer › inner", "custom", "test", None, "error"), (None, "lamp", "suite", "teardown", "error")
    ]  # fmt: skip
    assert found[0].message == "PriceError: negative: -1"
    assert (found[0].own, found[0].own_line) == (("node/a.test.mjs",), 8)


def test_node_counts_are_its_totals_and_suites_are_no_tests() -> None:
    parsed = node_text.read(source(NODE))
    assert numbers(parsed) == (4, 2, 1, 0, 1)
    assert [t.name for t in parsed.tests] == ["custom", "fine", "shines", "known"]


def test_node_without_totals_is_a_crash() -> None:
    parsed = node_text.read(source(NODE[: NODE.index("ℹ tests")]))
    assert parsed.stopped == "crash" and parsed.failures[-1].scope == "run"


def test_node_drops_what_was_cancelled_with_its_parent() -> None:
    text = (
        "ℹ tests 1\n\n✖ failing tests:\n\ntest at a.mjs:3:1\n✖ x (0ms)\n"
        "  'test did not finish before its parent and was cancelled'\n"
    )
    assert node_text.read(source(text)).failures == ()


def test_ava_gives_each_failure_its_block() -> None:
    parsed = ava_text.read(source(AVA))
    assert [(f.suite, f.name, f.kind, f.frames[0].line) for f in parsed.failures] == [
        ("tea", "black", "failure", 10), ("tea", "far", "error", 14)
    ]  # fmt: skip
    assert (
        failures_of(parsed)[0].message
        == "Difference (- actual, + expected):\n\n- 'black tea: 4 min'\n+ 'black tea: 5 min'"
    )
    assert numbers(parsed) == (4, 1, 2, 0, 1)


def test_ava_tells_of_a_process_that_exited_once() -> None:
    text = (
        "  ✘ Exiting due to process.exit() when running test/a.js\n\n"
        "  Error: Unexpected process.exit()\n      at file:///x/test/a.js:5:11\n\n"
        "  ✘ test/a.js exited with a non-zero exit code: 3\n\n  ─\n\n  1 test failed\n"
    )
    parsed = ava_text.read(source(text))
    assert [(f.name, f.kind, f.scope) for f in parsed.failures] == [("test/a.js", "crash", "suite")]
    assert parsed.stopped == "crash"


def test_bun_puts_the_error_before_the_result() -> None:
    parsed = bun_text.read(source(BUN))
    assert [(f.suite, f.name, f.kind, f.scope) for f in parsed.failures] == [
        ("outer", "top", "failure", "test"),
        (None, "slow", "timeout", "test"),
        (None, "bun/b.test.ts", "error", "suite"),
    ]
    assert parsed.failures[0].frames[0].line == 10
    assert (parsed.failures[0].expected, parsed.failures[0].actual) == ("5", "4")
    assert numbers(parsed) == (5, 1, 2, 1, 1)


def test_bun_without_a_summary_is_a_crash() -> None:
    assert bun_text.read(source(BUN[: BUN.index(" 1 pass")])).stopped == "crash"


def test_deno_reads_tests_modules_and_totals() -> None:
    parsed = deno_text.read(source(DENO))
    assert [(f.name, f.scope, f.message) for f in parsed.failures] == [
        ("equal", "test", "Error: Values are not equal: 1 2"),
        ("./deno/b_test.ts", "suite", "Error: module level"),
    ]
    assert (parsed.failures[0].own, parsed.failures[0].own_line) == (("./deno/a_test.ts",), 2)
    assert numbers(parsed) == (4, 1, 2, 0, 1)


def test_deno_that_does_not_compile_knows_no_counts() -> None:
    text = (
        "Check a_test.ts\nTS2307 [ERROR]: Cannot find module 'file:///x/gone.ts'.\n"
        "    at file:///x/a_test.ts:1:23\n\nerror: Type checking failed.\n"
    )
    parsed = deno_text.read(source(text))
    (found,) = parsed.failures
    assert (found.scope, found.kind, found.own) == ("suite", "error", ("file:///x/a_test.ts",))
    assert parsed.counts is None and parsed.complete


def test_a_hook_of_a_node_suite_is_setup_where_its_tests_did_not_pass() -> None:
    text = (
        "▶ shelf\n  ✖ books (0.1ms)\n    'x'\n✖ shelf (0.3ms)\nℹ tests 1\n✖ failing tests:\n\n"
        "test at a.mjs:3:1\n✖ shelf (0.3ms)\n  Error: fell\n      at TestHook.run (node:internal/a:1:2)\n"
    )
    (found,) = node_text.read(source(text)).failures
    assert (found.scope, found.phase) == ("suite", "setup")


def test_a_hook_of_a_bun_suite_is_named_after_it() -> None:
    text = (
        "error: shut\n      at <anonymous> (/x/a.test.ts:3:9)\n"
        "(fail) storm > (unnamed) [0.05ms]\n 1 fail\nRan 1 test across 1 file.\n"
    )
    (found,) = bun_text.read(source(text)).failures
    assert (found.name, found.scope, found.kind, found.phase) == ("storm", "suite", "error", "setup")

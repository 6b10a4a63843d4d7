"""cmocka 1.1 and Check 0.15 as their programs print."""

from __future__ import annotations

from devbay.reports import check_text, cmocka_text
from devbay.reports.source import Source
from tests.reports.samples import failures_of, numbers

CMOCKA = """\
[==========] Running 4 test(s).
[ RUN      ] fine
[       OK ] fine
[ RUN      ] bad
[  ERROR   ] --- 0x1 != 0x2
[   LINE   ] --- cm.c:6: error: Failure!
[  FAILED  ] bad
[ RUN      ] skipped
[  SKIPPED ] skipped
[ RUN      ] never
Could not run test: Test setup failed
[  ERROR   ] never
[==========] 4 test(s) run.
[  PASSED  ] 1 test(s).
[  SKIPPED ] 1 test(s), listed below:
[  SKIPPED ] skipped
[  FAILED  ] 1 test(s), listed below:
[  FAILED  ] bad
"""
CHECK = """\
Running suite(s): Money
33%: Checks: 3, Failures: 1, Errors: 1
ck.c:4:F:Core:bad:0: Assertion '1 == 2' failed: 1 == 1, 2 == 2
ck.c:5:E:Core:boom:0: (after this point) Received signal 6 (Aborted)
"""


def test_cmocka_has_place_and_message_on_lines_of_their_own() -> None:
    parsed = cmocka_text.read(Source("stdout", data=CMOCKA.encode()))
    assert cmocka_text.sniff(CMOCKA.encode())
    assert numbers(parsed) == (4, 1, 1, 1, 1)
    bad, never = failures_of(parsed)
    assert (bad.name, bad.kind, bad.file, bad.line, bad.message) == (
        "bad",
        "failure",
        "cm.c",
        6,
        "0x1 != 0x2",
    )
    assert (never.name, never.kind, never.phase) == ("never", "error", "setup")


def test_cmocka_that_ends_in_a_test_crashed_there() -> None:
    text = CMOCKA[: CMOCKA.index("[  ERROR   ] --- 0x1")]
    parsed = cmocka_text.read(Source("stdout", data=text.encode()))
    assert [(each.name, each.kind) for each in parsed.failures] == [("bad", "crash")]


def test_check_tells_failures_from_signals() -> None:
    parsed = check_text.read(Source("stdout", data=CHECK.encode()))
    assert check_text.sniff(CHECK.encode())
    assert numbers(parsed) == (3, 1, 1, 1, 0)
    assert [(each.suite, each.name, each.kind, each.line) for each in failures_of(parsed)] == [
        ("Core", "bad", "failure", 4),
        ("Core", "boom", "crash", 5),
    ]

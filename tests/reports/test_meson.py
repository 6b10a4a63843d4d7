"""`meson test` as Meson 1.0 prints it."""

from __future__ import annotations

from devbay.reports import meson_text
from devbay.reports.records import Parsed
from devbay.reports.source import Source
from tests.reports.samples import failures_of, numbers

RULE = "―" * 78
OUTPUT = f"""\
ninja: Entering directory `/src/pots/build'
1/6 pots / fine     OK              0.01s
2/6 pots:unit / bad FAIL            0.02s   exit status 3
>>> MALLOC_PERTURB_=48 /src/pots/build/bad
{"―" * 37} ✀  {"―" * 37}
stderr:
bad.c:2: 1 is not 2
{RULE}

3/6 pots / skip     SKIP            0.02s   exit status 77
4/6 pots / boom     FAIL            0.04s   killed by signal 6 SIGABRT
5/6 pots / xf       EXPECTEDFAIL    0.01s   exit status 1
▶ 6/6 b             FAIL
6/6 pots / slow     TIMEOUT         1.03s   killed by signal 15 SIGTERM


Summary of Failures:

2/6 pots:unit / bad FAIL            0.02s   exit status 3
4/6 pots / boom     FAIL            0.04s   killed by signal 6 SIGABRT
6/6 pots / slow     TIMEOUT         1.03s   killed by signal 15 SIGTERM

Ok:                 1
Expected Fail:      1
Fail:               2
Unexpected Pass:    0
Skipped:            1
Timeout:            1

Full log written to /src/pots/build/meson-logs/testlog.txt
"""


def meson(text: str) -> Parsed:
    return meson_text.read(Source("stdout", data=text.encode()))


def test_each_failed_program_is_a_record_of_its_kind() -> None:
    found = failures_of(meson(OUTPUT))
    assert [(each.suite, each.name, each.kind) for each in found] == [
        ("pots:unit", "bad", "failure"),
        ("pots", "boom", "crash"),
        ("pots", "slow", "timeout"),
    ]


def test_what_a_program_printed_gives_message_and_place() -> None:
    first = failures_of(meson(OUTPUT))[0]
    assert (first.message, first.file, first.line) == ("bad.c:2: 1 is not 2", "bad.c", 2)


def test_expected_failures_count_as_skipped() -> None:
    assert meson_text.sniff(OUTPUT.encode())
    assert numbers(meson(OUTPUT)) == (6, 1, 2, 1, 2)


def test_a_run_without_summary_is_not_complete() -> None:
    assert not meson(OUTPUT[: OUTPUT.index("4/6")]).complete

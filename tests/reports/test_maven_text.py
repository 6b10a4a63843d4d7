"""Maven's plain output with Surefire 2 and 3."""

from __future__ import annotations

import pytest

from devbay.reports import maven_text
from devbay.reports.records import Parsed
from devbay.reports.source import Source
from tests.reports.samples import failures_of, numbers

STACK = """\
org.opentest4j.AssertionFailedError: pears ==> expected: <5> but was: <2>
\tat org.junit.jupiter.api.AssertEquals.failNotEqual(AssertEquals.java:197)
\tat org.acme.PearTest.counts(PearTest.java:24)
\tat java.base/java.lang.reflect.Method.invoke(Method.java:569)
"""
ENDING = "[INFO] BUILD FAILURE\n[INFO] Total time:  2.061 s\n"
TOTALS = "[ERROR] Tests run: 4, Failures: 1, Errors: 1, Skipped: 1\n"


def run(*blocks: str, totals: str = TOTALS, ending: str = ENDING) -> Parsed:
    text = "[INFO] Scanning for projects...\n[INFO]  T E S T S\n" + "\n".join(blocks) + "\n" + totals + ending
    return maven_text.read(Source("output", data=text.encode()))


@pytest.mark.parametrize(
    "head",
    [
        "[ERROR] org.acme.PearTest.counts -- Time elapsed: 0.015 s <<< FAILURE!",
        "[ERROR] org.acme.PearTest.counts  Time elapsed: 0.015 s  <<< FAILURE!",
        "[ERROR] counts(org.acme.PearTest)  Time elapsed: 0.015 sec  <<< FAILURE!",
    ],
)
def test_a_failure_has_its_class_line_and_values(head: str) -> None:
    (failure,) = failures_of(run(f"{head}\n{STACK}"))
    assert (failure.suite, failure.name, failure.kind) == ("org.acme.PearTest", "counts", "failure")
    assert (failure.file, failure.line) == ("org/acme/PearTest.java", 24)
    assert failure.message == "pears ==> expected: <5> but was: <2>"
    assert (failure.expected, failure.actual) == ("<5>", "<2>")


def test_a_parametrised_test_keeps_its_parameters() -> None:
    (failure,) = run(f"[ERROR] a.B$C.t(String, int)[2] -- Time elapsed: 0.1 s <<< FAILURE!\n{STACK}").failures
    assert (failure.suite, failure.name) == ("a.B$C", "t(String, int)[2]")


def test_a_class_that_failed_as_a_whole_is_a_set_up_failure() -> None:
    (failure,) = run(
        "[ERROR] Tests run: 1, Failures: 0, Errors: 1, Skipped: 0, Time elapsed: 0.006 s <<< FAILURE!"
        " -- in a.Hook\n"
        "[ERROR] a.Hook -- Time elapsed: 0.006 s <<< ERROR!\n"
        "java.lang.IllegalStateException: shed\n\tat a.Hook.unlock(Hook.java:10)\n"
    ).failures
    assert (failure.name, failure.scope, failure.phase, failure.kind) == ("a.Hook", "suite", "setup", "error")


def test_the_totals_of_all_modules_are_added() -> None:
    assert numbers(run(totals=TOTALS + "[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 0\n")) == (
        7, 4, 1, 1, 1,
    )  # fmt: skip


def test_what_passed_when_it_was_run_again_did_not_fail() -> None:
    totals = "[WARNING] Tests run: 4, Failures: 0, Errors: 0, Skipped: 0, Flakes: 1\n"
    head = "[ERROR] a.B.c -- Time elapsed: 0.1 s <<< FAILURE!"
    assert run(f"{head}\n{STACK}", totals=totals).failures == ()


def test_a_compile_error_is_a_record_once_and_counts_nothing() -> None:
    told = "[ERROR] /src/main/java/a/B.java:[5,12] cannot find symbol\n  symbol:   class Pear\n"
    text = (
        f"[INFO] Scanning for projects...\n[ERROR] COMPILATION ERROR : \n{told}[INFO] 1 error\n{ENDING}"
        f"[ERROR] Failed to execute goal x:compile (default) on project p: Compilation failure\n{told}"
    )
    parsed = maven_text.read(Source("output", data=text.encode()))
    (error,) = parsed.failures
    assert (error.scope, error.kind, error.own_line) == ("suite", "error", 5)
    assert error.message == "cannot find symbol\nsymbol:   class Pear"
    assert parsed.counts is None


def test_a_fork_that_died_is_a_crash_in_its_class() -> None:
    died = "The forked VM terminated without properly saying goodbye. VM crash or System.exit called?"
    parsed = run(
        totals="[INFO] Tests run: 0, Failures: 0, Errors: 0, Skipped: 0\n",
        ending=f"{ENDING}[ERROR] {died}\n[ERROR] Crashed tests:\n[ERROR] a.ATest\n[ERROR] {died}\n",
    )
    assert [(f.name, f.kind, f.scope, f.message) for f in parsed.failures] == [
        ("a.ATest", "crash", "run", died)
    ]
    assert (parsed.counts, parsed.stopped) == (None, "crash")


def test_a_fork_that_took_too_long_is_a_timeout() -> None:
    parsed = run(ending=f"{ENDING}[ERROR] There was a timeout in the fork\n")
    assert (parsed.stopped, parsed.failures[-1].kind) == ("timeout", "timeout")


def test_no_tests_is_a_count_of_zero() -> None:
    text = "[INFO] Scanning for projects...\n[INFO] No tests to run.\n[INFO] BUILD SUCCESS\n"
    assert numbers(maven_text.read(Source("output", data=text.encode()))) == (0, 0, 0, 0, 0)


def test_a_build_that_failed_for_another_reason_says_it() -> None:
    parsed = run(
        totals="",
        ending=f"{ENDING}[ERROR] Failed to execute goal g:enforcer:3 (e) on project p: Java 21 needed"
        " -> [Help 1]\n",
    )
    assert [(f.scope, f.kind, f.message) for f in parsed.failures] == [("run", "error", "Java 21 needed")]


def test_output_that_ends_in_the_middle_is_a_crash() -> None:
    parsed = run(ending="", totals="")
    assert not parsed.complete
    assert [(f.kind, f.scope) for f in parsed.failures] == [("crash", "run")]

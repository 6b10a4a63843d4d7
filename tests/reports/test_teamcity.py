"""TeamCity's service messages among other output."""

from __future__ import annotations

from devbay.reports import teamcity
from devbay.reports.paths import PathMapper
from devbay.reports.records import Parsed
from devbay.reports.source import Source
from tests.reports.samples import failures_of, numbers


def parsed_of(*messages: str) -> Parsed:
    text = "\n".join(f"##teamcity[{message}]" for message in messages)
    return teamcity.read(Source("output", data=text.encode()))


def hint(name: str) -> str:
    return f"name='{name}' locationHint='php_qn:///src/tests/CupTest.php::\\CupTest::{name}' flowId='1'"


def test_a_failure_has_its_place_and_its_values() -> None:
    parsed = parsed_of(
        "testSuiteStarted name='CupTest' flowId='1'",
        f"testStarted {hint('testA')}",
        "testFailed name='testA' message='no cup|nat all' details=' /src/tests/CupTest.php:19|n '"
        " type='comparisonFailure' actual='|'1|n2|'' expected='|'1|n3|'' flowId='1'",
        "testFinished name='testA' duration='7' flowId='1'",
        "testSuiteFinished name='CupTest' flowId='1'",
    )
    (failure,) = failures_of(parsed, PathMapper.as_named(None, "/src"))
    assert (failure.suite, failure.name, failure.kind) == ("CupTest", "testA", "failure")
    assert (failure.file, failure.line, failure.message) == ("tests/CupTest.php", 19, "no cup\nat all")
    assert (failure.expected, failure.actual) == ("'1\n3'", "'1\n2'")
    assert [(test.name, test.outcome, test.duration_ms) for test in parsed.tests] == [("testA", "failed", 7)]


def test_an_exception_is_an_error_and_ignored_tests_are_skipped() -> None:
    parsed = parsed_of(
        f"testStarted {hint('a')}",
        "testFailed name='a' message='IOException : dry' details='' flowId='1'",
        "testFinished name='a' duration='0' flowId='1'",
        f"testStarted {hint('b')}",
        "testIgnored name='b' message='later' flowId='1'",
        "testFinished name='b' duration='0' flowId='1'",
    )
    assert numbers(parsed) == (2, 0, 0, 1, 1)


def test_several_failed_checks_of_a_test_count_once() -> None:
    told = f"/src/a.cpp:8|n{'.' * 79}|n|n/src/a.cpp:%d|nexpression failed|n  CHECK( a )|n"
    failed = [f"testFailed name='rows' message='{told % line}'" for line in (10, 11)]
    parsed = parsed_of("testStarted name='rows'", *failed, "testFinished name='rows' duration='0'")
    found = failures_of(parsed, PathMapper.as_named(None, "/src"))
    assert [f.line for f in found] == [10, 11]
    assert {f.message for f in found} == {"expression failed\n  CHECK( a )"}
    assert numbers(parsed) == (1, 0, 1, 0, 0)


def test_a_test_that_never_finished_is_where_the_run_ended() -> None:
    parsed = parsed_of("testStarted name='a'", "testFinished name='a' duration='1'", "testStarted name='b'")
    assert not parsed.complete
    assert [(f.name, f.kind, f.scope) for f in parsed.failures] == [("b", "crash", "run")]


def test_interleaved_flows_are_kept_apart() -> None:
    parsed = parsed_of(
        "testStarted name='a' flowId='1'",
        "testStarted name='a' flowId='2'",
        "testFailed name='a' message='no' details='' flowId='2'",
        "testFinished name='a' duration='1' flowId='1'",
        "testFinished name='a' duration='1' flowId='2'",
    )
    assert numbers(parsed) == (2, 1, 1, 0, 0)


def test_escapes_are_undone() -> None:
    parsed = parsed_of("testFailed name='|[x|]' message='a||b |'c|' |0x00fc' details=''")
    assert [(f.name, f.message) for f in parsed.failures] == [("[x]", "a|b 'c' ü")]

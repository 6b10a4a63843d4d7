"""JUnit XML out of a result, written with `junitparser` (decision 40)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import junitparser

from devbay.answers import Failure, RunResult
from devbay.reports.records import TestCase

_ILLEGAL = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_junit(result: RunResult, tests: Sequence[TestCase]) -> bytes:
    """A report of every test and every failure; problems that belong to no test are cases of kind `error`."""
    suites: dict[str, Any] = {}
    left = list(result.failures)
    for test in tests:
        case = _case(test)
        mine = [each for each in left if each.scope == "test" and _same(each, test)]
        if test.outcome == "skipped":
            case.result = [junitparser.Skipped()]
        elif test.outcome in ("failed", "error"):
            left = [each for each in left if each not in mine]
            case.result = [_problem(each) for each in mine] or [junitparser.Failure("failed")]
            _located(case, mine)
        _suite(suites, test.suite or "", result).add_testcase(case)
    for failure in left:
        case = junitparser.TestCase(_legal(failure.name), _legal(failure.suite or ""))
        case.result = [_problem(failure)]
        _located(case, [failure])
        _suite(suites, failure.suite or failure.file or "", result).add_testcase(case)
    if not suites and result.status != "passed":
        case = junitparser.TestCase(_legal(result.task or "run"))
        case.result = [junitparser.Error(_legal(result.detail or result.status), _legal(result.reason or ""))]
        _suite(suites, result.task or "", result).add_testcase(case)
    report = junitparser.JUnitXml(result.task)
    for suite in suites.values():
        report.add_testsuite(suite)
    report.update_statistics()  # type: ignore[no-untyped-call]
    return bytes(report.tostring())  # type: ignore[no-untyped-call]


def _suite(suites: dict[str, Any], name: str, result: RunResult) -> Any:
    if name not in suites:
        suites[name] = junitparser.TestSuite(_legal(name or result.task or "tests"))
    return suites[name]


def _case(test: TestCase) -> Any:
    time = test.duration_ms / 1000 if test.duration_ms is not None else None
    case = junitparser.TestCase(_legal(test.name), _legal(test.suite or ""), time)
    if test.file:
        case._elem.set("file", _legal(test.file))
    return case


def _located(case: Any, failures: Sequence[Failure]) -> None:
    for failure in failures[:1]:
        if failure.file:
            case._elem.set("file", _legal(failure.file))
        if failure.line:
            case._elem.set("line", str(failure.line))


def _same(failure: Failure, test: TestCase) -> bool:
    return failure.name == test.name and (failure.suite or test.suite) == (test.suite or failure.suite)


def _problem(failure: Failure) -> Any:
    kind = junitparser.Failure if failure.kind == "failure" else junitparser.Error
    problem = kind(_legal(failure.message), failure.kind)
    lines = [failure.message, *failure.frames, *([failure.output] if failure.output else [])]
    problem.text = _legal("\n".join(line for line in lines if line))
    return problem


def _legal(text: str) -> str:
    """`text` without the characters that XML 1.0 (section 2.2) does not allow."""
    return _ILLEGAL.sub("\ufffd", text)

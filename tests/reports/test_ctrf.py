"""CTRF reports."""

from __future__ import annotations

import json

from devbay.reports import ctrf
from devbay.reports.records import Parsed
from devbay.reports.source import Source
from tests.reports.samples import failures_of, numbers


def parsed_of(*tests: dict[str, object], cut: int | None = None) -> Parsed:
    report = {
        "reportFormat": "CTRF",
        "results": {"tool": {"name": "jest"}, "summary": {"tests": 1}, "tests": list(tests)},
    }
    data = json.dumps(report).encode()
    assert ctrf.sniff(data)
    return ctrf.read(Source("ctrf.json", data=data[:cut]))


def test_a_failure_has_its_place_and_message() -> None:
    failed = {
        "name": "size", "status": "failed", "duration": 12.4, "suite": ["src/cup.test.js", "cup"],
        "message": "expect(received).toBe(expected)\n\nExpected: 4\nReceived: 3",
        "trace": "Error: expect\n    at Object.<anonymous> (src/cup.test.js:4:35)",
        "filePath": "src/cup.test.js",
    }  # fmt: skip
    parsed = parsed_of(failed)
    (failure,) = failures_of(parsed)
    assert (failure.name, failure.suite, failure.kind) == ("size", "src/cup.test.js > cup", "failure")
    assert (failure.file, failure.line) == ("src/cup.test.js", 4)
    assert (failure.expected, failure.actual) == ("4", "3")
    assert [(test.file, test.duration_ms) for test in parsed.tests] == [("src/cup.test.js", 12)]


def test_every_status_has_its_count() -> None:
    statuses = ("passed", "failed", "skipped", "pending", "other")
    assert numbers(parsed_of(*({"name": "t", "status": each} for each in statuses))) == (5, 1, 1, 0, 3)


def test_an_exception_is_an_error_and_a_time_limit_a_timeout() -> None:
    messages = ("TypeError: no cup", "AssertionError: 1 != 2", "Test timed out in 5000ms.")
    parsed = parsed_of(*({"name": "t", "status": "failed", "message": each} for each in messages))
    assert [f.kind for f in parsed.failures] == ["error", "failure", "timeout"]


def test_the_line_of_the_test_stands_in_for_a_missing_stack() -> None:
    (failure,) = failures_of(parsed_of({"name": "t", "status": "failed", "filePath": "a_test.py", "line": 7}))
    assert (failure.file, failure.line) == ("a_test.py", 7)


def test_a_report_that_is_cut_off_is_not_complete() -> None:
    assert not parsed_of(
        {"name": "t", "status": "passed"}, {"name": "u", "status": "passed"}, cut=-30
    ).complete

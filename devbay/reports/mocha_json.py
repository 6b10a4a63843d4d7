"""Mocha's JSON (`--reporter json`). Source: `lib/reporters/json.js` of Mocha 10 and 11."""

from __future__ import annotations

import re

from devbay.reports import javascript
from devbay.reports.json_members import Members, mapping, number, text
from devbay.reports.records import MAX_FAILURES, MAX_TESTS, Found, Outcome, Parsed, TestCase, count
from devbay.reports.source import Source

name = "mocha-json"
commands: frozenset[str] = frozenset()

_OPENING = re.compile(r'\{\s*"stats"\s*:\s*\{')
_SNIFF = re.compile(rb'\{\s*"stats"\s*:\s*\{\s*"suites"\s*:')


def sniff(head: bytes) -> bool:
    return _SNIFF.search(head) is not None


def read(source: Source) -> Parsed:
    """The report. A hook that failed is counted as a failure: its tests did not run."""
    failures: list[Found] = []
    tests: list[TestCase] = []
    numbers = {"passes": 0, "failures": 0, "pending": 0}
    members = Members(source, _OPENING)
    for key, value in members:
        if key not in numbers:
            continue
        numbers[key] += 1
        test = mapping(value)
        if len(tests) < MAX_TESTS:
            tests.append(_case(test, key))
        if key == "failures" and len(failures) < MAX_FAILURES:
            failures.append(_failure(test))
    complete = members.seen and members.complete and members.problem is None
    return Parsed(
        counts=count(numbers["passes"], numbers["failures"], 0, numbers["pending"]),
        failures=tuple(failures),
        complete=complete,
        problem=None if complete else members.problem or "it ends in the middle",
        tests=tuple(tests),
    )


def _failure(test: dict[str, object]) -> Found:
    error = mapping(test.get("err"))
    message, stack = text(error.get("message")), text(error.get("stack"))
    title, suite = _named(test)
    told = stack if message.strip() and message.strip() in stack else f"{message}\n{stack}"
    path = text(test.get("file"))
    return javascript.problem(
        title,
        told,
        suite=suite,
        scope="suite" if javascript.hook_phase(title) else "test",
        own=(path,) if path else (),
    )


def _case(test: dict[str, object], key: str) -> TestCase:
    outcomes: dict[str, Outcome] = {"passes": "passed", "failures": "failed", "pending": "skipped"}
    title, suite = _named(test)
    return TestCase(
        title, suite or None, text(test.get("file")) or None, number(test.get("duration")), outcomes[key]
    )


def _named(test: dict[str, object]) -> tuple[str, str]:
    """(title, what stands before it in the full title)."""
    title, full = text(test.get("title")), text(test.get("fullTitle"))
    return title, full.removesuffix(title).strip() if full.endswith(title) else ""

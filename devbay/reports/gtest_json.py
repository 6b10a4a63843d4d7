"""GoogleTest's JSON report (`--gtest_output=json`)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from devbay.reports.gtest_blocks import described, split
from devbay.reports.json_members import Members
from devbay.reports.plain import plain
from devbay.reports.records import MAX_FAILURES, MAX_TESTS, Found, Outcome, Parsed, TestCase, count
from devbay.reports.source import Source

name = "gtest-json"
commands: frozenset[str] = frozenset()

_OPENING = re.compile(r'\{\s*"tests"\s*:\s*\d+\s*,\s*"failures"\s*:\s*\d+\s*,\s*"disabled"\s*:')
_SNIFF = re.compile(_OPENING.pattern.encode())


def sniff(head: bytes) -> bool:
    """Whether an object starts with GoogleTest's totals."""
    return _SNIFF.search(head) is not None


def read(source: Source) -> Parsed:
    """The suites, one at a time."""
    members = Members(source, _OPENING)
    outcomes: dict[Outcome, int] = {"passed": 0, "failed": 0, "error": 0, "skipped": 0}
    failures: list[Found] = []
    tests: list[TestCase] = []
    for key, suite in members:
        if key != "testsuites" or not isinstance(suite, dict):
            continue
        cases = suite.get("testsuite")
        for case in cases if isinstance(cases, list) else []:
            if isinstance(case, dict):
                outcome, found = _case(case, str(suite.get("name", "")))
                outcomes[outcome] += 1
                failures += found[: MAX_FAILURES - len(failures)]
                if len(tests) < MAX_TESTS:
                    tests.append(_test(case, str(suite.get("name", "")), outcome))
    counts = count(outcomes["passed"], outcomes["failed"], outcomes["error"], outcomes["skipped"])
    return Parsed(counts, tuple(failures), members.complete, members.problem, tuple(tests))


def _case(case: Mapping[str, object], suite: str) -> tuple[Outcome, list[Found]]:
    """A test; one that bears the suite's name, or none, is the suite's own set-up."""
    name = plain(str(case.get("name", "")))
    file = case.get("file")
    own = (file,) if isinstance(file, str) and file else ()
    whole = name in ("", suite)
    given = case.get("failures")
    found = []
    for failure in given if isinstance(given, list) else []:
        text = failure.get("failure") if isinstance(failure, dict) else None
        place, lines = split(plain(str(text or "")))
        found.append(
            described(
                name or suite,
                suite,
                place,
                lines,
                own=own,
                scope="suite" if whole else "test",
                phase="setup" if whole else None,
            )
        )
    if found:
        return "error" if all(each.kind == "error" for each in found) else "failed", found
    skipped = case.get("status") == "NOTRUN" or case.get("result") in ("SKIPPED", "SUPPRESSED")
    return "skipped" if skipped else "passed", []


def _test(case: Mapping[str, object], suite: str, outcome: Outcome) -> TestCase:
    file = case.get("file")
    seconds = re.fullmatch(r"(\d{1,9}(?:\.\d+)?)s", str(case.get("time", "")))
    ms = round(float(seconds[1]) * 1000) if seconds else None
    return TestCase(
        plain(str(case.get("name", ""))), suite, file if isinstance(file, str) else None, ms, outcome
    )

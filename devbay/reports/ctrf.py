"""CTRF (Common Test Report Format): JSON of one shape from any runner. Source: ctrf.io, schema 0.0."""

from __future__ import annotations

import re

from devbay.reports.compare import compared
from devbay.reports.json_members import Members, mapping, number, sequence, text
from devbay.reports.locate import frames_in
from devbay.reports.plain import plain, tail
from devbay.reports.records import MAX_FAILURES, MAX_TESTS, Found, Outcome, Parsed, TestCase, count
from devbay.reports.source import Source

name = "ctrf"
commands: frozenset[str] = frozenset()

KEPT_OUTPUT = 4_000

_OPENING = re.compile(r'"results"\s*:\s*\{\s*"(?:tool|summary|tests)"\s*:')
_SNIFF = re.compile(rb'"results"\s*:\s*\{\s*"tool"\s*:\s*\{|"reportFormat"\s*:\s*"CTRF"')
_STATUS: dict[str, Outcome] = {
    "passed": "passed",
    "failed": "failed",
    "skipped": "skipped",
    "pending": "skipped",
}
_THROWN = re.compile(r"[\w.]*(?:Error|Exception)\b ?:")
_ASSERTED = re.compile(r"[\w.]*Assert\w*|expect\(|Error: expect\(", re.IGNORECASE)
_TIMEOUT = re.compile(
    r"\b(?:Test |Hook )?timed? ?out\b.{0,40}\d|exceeded timeout of|Test timeout of", re.IGNORECASE
)


def sniff(head: bytes) -> bool:
    return _SNIFF.search(head) is not None


def read(source: Source) -> Parsed:
    """The report. A test whose status is `other` did not pass: it is counted as skipped."""
    failures: list[Found] = []
    tests: list[TestCase] = []
    outcomes: dict[Outcome, int] = {"passed": 0, "failed": 0, "error": 0, "skipped": 0}
    members = Members(source, _OPENING)
    for key, value in members:
        if key != "tests":
            continue
        test = mapping(value)
        outcome = _STATUS.get(text(test.get("status")), "skipped")
        title, suite = text(test.get("name")), _suite(test)
        if outcome == "failed":
            found = _failure(test, title, suite)
            outcome = "error" if found.kind == "error" else "failed"
            if len(failures) < MAX_FAILURES:
                failures.append(found)
        outcomes[outcome] += 1
        if len(tests) < MAX_TESTS:
            path = text(test.get("filePath")) or None
            tests.append(TestCase(title, suite, path, number(test.get("duration")), outcome))
    complete = members.seen and members.complete and members.problem is None
    return Parsed(
        counts=count(outcomes["passed"], outcomes["failed"], outcomes["error"], outcomes["skipped"]),
        failures=tuple(failures),
        complete=complete,
        problem=None if complete else members.problem or "it ends in the middle",
        tests=tuple(tests),
    )


def _suite(test: dict[str, object]) -> str | None:
    """Text, or since schema 0.0.4 a list from the outermost suite on."""
    suite = test.get("suite")
    return text(suite) or " > ".join(filter(None, (text(each) for each in sequence(suite)))) or None


def _failure(test: dict[str, object], title: str, suite: str | None) -> Found:
    message = plain(text(test.get("message"))).strip()
    trace = plain(text(test.get("trace")))
    path = text(test.get("filePath"))
    expected, actual = compared(message, trace)
    output = "\n".join(text(line) for key in ("stdout", "stderr") for line in sequence(test.get(key)))
    said = message or trace.strip().split("\n")[0]
    error = _THROWN.match(said) is not None and not _ASSERTED.match(said.removeprefix("Error: "))
    return Found(
        title,
        suite=suite,
        kind="timeout" if _TIMEOUT.search(said[:500]) else "error" if error else "failure",
        message=said,
        expected=expected,
        actual=actual,
        frames=frames_in(trace) or frames_in(message),
        own=(path,) if path else (),
        own_line=number(test.get("line")),
        output=tail(output.strip(), KEPT_OUTPUT) or None,
    )

"""The plain output of Check, the C framework. Source: Check 0.15 (`check_print.c`)."""

from __future__ import annotations

import re

from devbay.answers import Counts
from devbay.reports.plain import plain, shorten
from devbay.reports.records import MAX_FAILURES, Found, Frame, Kind, Parsed, add_counts, count
from devbay.reports.source import Source

name = "check"
commands: frozenset[str] = frozenset()

_TOTALS = re.compile(r"^\d+%: Checks: (?P<total>\d+), Failures: (?P<failures>\d+), Errors: (?P<errors>\d+)$")
_RESULT = re.compile(
    r"^(?P<path>\S[^:\n]*):(?P<line>\d+):(?P<mark>[FEP]):(?P<case>[^:]*):(?P<test>[^:]+):"
    r"(?P<loop>-?\d+): (?P<text>.*)$"
)
_SNIFF = re.compile(rb"^\d+%: Checks: \d+, Failures: \d+, Errors: \d+", re.MULTILINE)


def sniff(head: bytes) -> bool:
    """Whether a line is Check's totals."""
    return _SNIFF.search(head) is not None


def read(source: Source) -> Parsed:
    """The failed tests of all suites that were run, and their totals."""
    counts: Counts | None = None
    failures: list[Found] = []
    for raw in source.lines():
        line = plain(raw).rsplit("\r", 1)[-1]
        if totals := _TOTALS.match(line):
            failed, errors = int(totals["failures"]), int(totals["errors"])
            passed = max(0, int(totals["total"]) - failed - errors)
            counts = add_counts([counts, count(passed, failed, errors)])
        elif (result := _RESULT.match(line)) and result["mark"] != "P" and len(failures) < MAX_FAILURES:
            failures.append(_found(result))
    complete = counts is not None
    return Parsed(counts, tuple(failures), complete, None if complete else "Check's totals are missing")


def _found(result: re.Match[str]) -> Found:
    text = result["text"]
    kind: Kind = "failure" if result["mark"] == "F" else "error"
    if "Test timeout expired" in text:
        kind = "timeout"
    elif "Received signal" in text or "Early exit" in text:
        kind = "crash"
    return Found(
        result["test"],
        result["case"] or None,
        kind,
        message=shorten(text, 8_000),
        frames=(Frame(result["path"], int(result["line"])),),
        own=(result["path"],),
    )

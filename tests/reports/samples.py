"""Reports as runners write them, shortened; shared by the tests of this folder."""

from __future__ import annotations

from devbay.answers import Failure
from devbay.reports import junit
from devbay.reports.locate import place
from devbay.reports.paths import PathMapper
from devbay.reports.records import Parsed
from devbay.reports.source import Source


def junit_of(text: str | bytes) -> Parsed:
    return junit.read(Source("report.xml", data=text.encode() if isinstance(text, str) else text))


def failures_of(parsed: Parsed, mapper: PathMapper | None = None) -> list[Failure]:
    return [place(found, mapper or PathMapper(None)) for found in parsed.failures]


def numbers(parsed: Parsed) -> tuple[int, int, int, int, int]:
    counts = parsed.counts
    assert counts is not None
    return counts.total, counts.passed, counts.failed, counts.errors, counts.skipped

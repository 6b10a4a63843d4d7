"""Playwright's JSON (`--reporter=json`). Source: `types/testReporter.d.ts` of Playwright 1.40 to 1.57."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

from devbay.reports import javascript
from devbay.reports.json_members import Members, mapping, number, sequence, text
from devbay.reports.paths import looks_like_path
from devbay.reports.records import (
    MAX_FAILURES,
    MAX_TESTS,
    Found,
    Frame,
    Kind,
    Outcome,
    Parsed,
    TestCase,
    count,
)
from devbay.reports.source import Source

name = "playwright-json"
commands: frozenset[str] = frozenset()

MAX_NESTED = 100
_OPENING = re.compile(r'\{\s*"config"\s*:\s*\{')
_START = re.compile(rb'\{\s*"config"\s*:\s*\{')
_SNIFF = re.compile(rb'"(?:rootDir|fullyParallel|forbidOnly)"\s*:')
_OUTCOMES: dict[str, Outcome] = {
    "expected": "passed",
    "flaky": "passed",
    "unexpected": "failed",
    "skipped": "skipped",
}


def sniff(head: bytes) -> bool:
    start = _START.search(head)
    return start is not None and _SNIFF.search(head, start.end()) is not None


def read(source: Source) -> Parsed:
    """The report. Errors outside tests (files that do not load) are records of scope `suite` or `run`."""
    reader = _Reader()
    members = Members(source, _OPENING)
    for key, value in members:
        if key == "config":
            reader.folder = text(mapping(value).get("rootDir"))
        elif key == "suites":
            reader.suite(mapping(value), ())
        elif key == "errors":
            reader.outside(mapping(value))
    complete = members.seen and members.complete and members.problem is None
    outcomes = reader.outcomes
    return Parsed(
        counts=count(outcomes["passed"], outcomes["failed"], outcomes["error"], outcomes["skipped"]),
        failures=tuple(reader.failures[:MAX_FAILURES]),
        complete=complete,
        problem=None if complete else members.problem or "it ends in the middle",
        tests=tuple(reader.tests),
    )


class _Reader:
    def __init__(self) -> None:
        self.folder = ""
        self.failures: list[Found] = []
        self.tests: list[TestCase] = []
        self.outcomes: Counter[Outcome] = Counter()

    def suite(self, suite: dict[str, object], titles: tuple[str, ...]) -> None:
        """A file, project or `describe`, with what is in it."""
        if len(titles) > MAX_NESTED:
            return
        title = text(suite.get("title"))
        titles = titles if not title or looks_like_path(title) else (*titles, title)
        for spec in sequence(suite.get("specs")):
            self._spec(mapping(spec), titles)
        for inner in sequence(suite.get("suites")):
            self.suite(mapping(inner), titles)

    def _spec(self, spec: dict[str, object], titles: tuple[str, ...]) -> None:
        path = text(spec.get("file"))
        if path and self.folder and not path.startswith("/"):
            path = f"{self.folder}/{path}"
        title, line = text(spec.get("title")), number(spec.get("line"))
        for value in sequence(spec.get("tests")):
            test = mapping(value)
            results = [mapping(each) for each in sequence(test.get("results"))]
            outcome = _OUTCOMES.get(text(test.get("status")), "failed")
            self.outcomes[outcome] += 1
            project = text(test.get("projectName"))
            suite = " › ".join([f"[{project}]", *titles] if project else titles)
            if len(self.tests) < MAX_TESTS:
                duration = sum(number(each.get("duration")) or 0 for each in results)
                self.tests.append(TestCase(title, suite or None, path or None, duration, outcome))
            if outcome == "failed" and results:
                self._failed(results[-1], title, suite, path, line)
            elif outcome == "failed":
                self.failures.append(javascript.problem(title, "", suite=suite, own=(path,), own_line=line))

    def _failed(self, result: dict[str, object], title: str, suite: str, path: str, line: int | None) -> None:
        """The errors of the last try; of a test that was to fail and passed there are none."""
        errors = [mapping(each) for each in sequence(result.get("errors"))]
        errors = errors or [error for error in [mapping(result.get("error"))] if error]
        status = text(result.get("status"))
        kind: Kind | None = None
        if not errors:
            errors = [{"message": "Expected to fail, but passed." if status == "passed" else status}]
            kind = "timeout" if status == "timedOut" else None
        output = "".join(
            text(mapping(each).get("text"))
            for key in ("stdout", "stderr")
            for each in sequence(result.get(key))
        )
        for error in errors[:50]:
            self.failures.append(
                javascript.problem(
                    title,
                    _told(error),
                    suite=suite,
                    own=(path,),
                    own_line=line,
                    kind=kind,
                    output=output,
                )
            )

    def outside(self, error: dict[str, object]) -> None:
        """An error of no test: of the file that its place names, or of the whole run."""
        told = _told(error)
        location = mapping(error.get("location"))
        path, line = text(location.get("file")), number(location.get("line"))
        if not path:
            self.failures.append(javascript.problem("playwright", told, scope="run"))
            return
        self.outcomes["error"] += 1
        found = javascript.problem(path, told, scope="suite", own=(path,), own_line=line)
        place = (Frame(path, line),) if line else ()
        self.failures.append(replace(found, frames=(*place, *found.frames)))


def _told(error: dict[str, object]) -> str:
    """Message, stack and value of a `TestError`; the message may hold the stack already."""
    message, stack = text(error.get("message")) or text(error.get("value")), text(error.get("stack"))
    first = stack.split("\n    at ", 1)[-1]
    return message if not stack or first.strip() in message else f"{message}\n{stack}"

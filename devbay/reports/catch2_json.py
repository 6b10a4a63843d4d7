"""Catch2's JSON report (`-r json`): where assertions failed; what they said it does not hold."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from devbay.reports.json_members import Members
from devbay.reports.plain import plain
from devbay.reports.records import MAX_FAILURES, MAX_TESTS, Found, Frame, Outcome, Parsed, TestCase, count
from devbay.reports.source import Source

name = "catch2-json"
commands: frozenset[str] = frozenset()

MAX_DEPTH = 200
_OPENING = re.compile(r'"test-run"\s*:\s*\{')
_SNIFF = re.compile(rb'"catch2-version"\s*:\s*"')


def sniff(head: bytes) -> bool:
    """Whether Catch2 names its version in JSON."""
    return _SNIFF.search(head) is not None


def read(source: Source) -> Parsed:
    """The test cases, one at a time."""
    members = Members(source, _OPENING)
    outcomes: dict[Outcome, int] = {"passed": 0, "failed": 0, "error": 0, "skipped": 0}
    failures: list[Found] = []
    tests: list[TestCase] = []
    for key, case in members:
        if key != "test-cases" or not isinstance(case, dict):
            continue
        info = _object(case, "test-info")
        title, (path, _) = plain(str(info.get("name", ""))), _place(info)
        totals = _object(_object(case, "totals"), "assertions")
        outcome: Outcome = "passed"
        if totals.get("failed"):
            outcome = "failed"
            runs = case.get("runs")
            for run in runs if isinstance(runs, list) else []:
                failures += list(_failed(run, (), path))[: MAX_FAILURES - len(failures)]
        elif totals.get("skipped"):
            outcome = "skipped"
        outcomes[outcome] += 1
        if len(tests) < MAX_TESTS:
            tests.append(TestCase(title, None, path, None, outcome))
    counts = count(outcomes["passed"], outcomes["failed"], outcomes["error"], outcomes["skipped"])
    return Parsed(counts, tuple(failures), members.complete, members.problem, tuple(tests))


def _failed(node: object, path: tuple[str, ...], own: str | None) -> Iterator[Found]:
    """The failed assertions in a run or section, with the names of the sections around them."""
    if not isinstance(node, dict) or len(path) > MAX_DEPTH:
        return
    if node.get("kind") == "assertion":
        if node.get("status") is False:
            file, line = _place(node)
            frames = (Frame(file, line),) if file and line else ()
            message = "an assertion failed (Catch2's JSON does not say which)"
            yield Found("/".join(path), None, message=message, frames=frames, own=(own,) if own else ())
        return
    if isinstance(node.get("name"), str):
        path = (*path, plain(node["name"]))
    inner = node.get("path")
    for each in inner if isinstance(inner, list) else []:
        yield from _failed(each, path, own)


def _object(node: Mapping[str, object], key: str) -> Mapping[str, object]:
    value = node.get(key)
    return value if isinstance(value, dict) else {}


def _place(node: Mapping[str, object]) -> tuple[str | None, int | None]:
    place = _object(node, "source-location")
    file, line = place.get("filename"), place.get("line")
    return file if isinstance(file, str) else None, line if isinstance(line, int) else None

"""RSpec's JSON (`--format json`). Source: `rspec/core/formatters/json_formatter.rb` of RSpec 3."""

from __future__ import annotations

import re

from devbay.reports import rspec_text
from devbay.reports.compare import compared
from devbay.reports.json_members import Members, mapping, number, sequence, text
from devbay.reports.locate import frames_in
from devbay.reports.paths import is_library
from devbay.reports.records import MAX_FAILURES, MAX_TESTS, Found, Outcome, Parsed, TestCase, count
from devbay.reports.screen import dedented
from devbay.reports.source import Source

name = "rspec-json"
commands: frozenset[str] = frozenset()

_OPENING = re.compile(r'\{\s*"version"\s*:\s*"[\w.]+"\s*,\s*"(?:seed|examples|messages)"')
_SNIFF = re.compile(
    rb'\{\s*"version"\s*:\s*"[\w.]+"\s*,\s*"(?:seed"\s*:\s*\d+\s*,\s*"examples|examples|messages)"'
)
_RSPEC = re.compile(r"RSpec::(Expectations|Mocks)::|RSpec::Core::Pending")
_OUTCOMES: dict[str, Outcome] = {"passed": "passed", "failed": "failed", "pending": "skipped"}


def sniff(head: bytes) -> bool:
    return _SNIFF.search(head) is not None


def read(source: Source) -> Parsed:
    """The report. Errors outside of the examples are in its messages alone."""
    failures: list[Found] = []
    tests: list[TestCase] = []
    outcomes: dict[Outcome, int] = {"passed": 0, "failed": 0, "skipped": 0}
    outside, messages = 0, ""
    members = Members(source, _OPENING)
    for key, value in members:
        if key == "messages":
            messages += text(value) + "\n"
        elif key == "summary":
            outside = number(mapping(value).get("errors_outside_of_examples_count")) or 0
        elif key == "examples":
            example = mapping(value)
            outcome = _OUTCOMES.get(text(example.get("status")), "failed")
            outcomes[outcome] += 1
            if len(tests) < MAX_TESTS:
                tests.append(_case(example, outcome))
            if outcome == "failed" and len(failures) < MAX_FAILURES:
                failures.append(_failure(example))
    if outside:
        failures += _outside(messages)
    complete = members.seen and members.complete and members.problem is None
    return Parsed(
        counts=count(outcomes["passed"], outcomes["failed"], outside, outcomes["skipped"]),
        failures=tuple(failures),
        complete=complete,
        problem=None if complete else members.problem or "it ends in the middle",
        tests=tuple(tests),
    )


def _named(example: dict[str, object]) -> tuple[str, str | None]:
    """(Description, the groups around it)."""
    whole, own = text(example.get("full_description")), text(example.get("description"))
    suite = whole.removesuffix(own).strip() if own else ""
    return own or whole, suite or None


def _case(example: dict[str, object], outcome: Outcome) -> TestCase:
    title, suite = _named(example)
    seconds = example.get("run_time")
    duration = number(seconds * 1000) if isinstance(seconds, int | float) else None
    return TestCase(title, suite, text(example.get("file_path")) or None, duration, outcome)


def _failure(example: dict[str, object]) -> Found:
    title, suite = _named(example)
    raised = mapping(example.get("exception"))
    kind, told = text(raised.get("class")), text(raised.get("message"))
    message = dedented(told.split("\n"))
    expectation = not kind or bool(_RSPEC.match(kind))
    path = text(example.get("file_path"))
    expected, actual = compared(message)
    stack = "\n".join(text(line) for line in sequence(raised.get("backtrace")))
    frames = tuple(frame for frame in frames_in(stack) if not is_library(frame.path))
    if not any(frame.path.endswith(".rb") for frame in frames):
        frames = frames_in(told)  # several failed expectations have their stacks in the message
    return Found(
        title,
        suite=suite,
        kind="failure" if expectation else "error",
        message=message if expectation else f"{kind}: {message}",
        expected=expected,
        actual=actual,
        frames=frames,
        own=(path,) if path else (),
        own_line=number(example.get("line_number")),
    )


def _outside(messages: str) -> list[Found]:
    """The errors that RSpec's own text in `messages` tells."""
    return [f for f in rspec_text.read(Source("messages", messages.encode())).failures if f.scope == "suite"]

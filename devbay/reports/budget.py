"""What is shown of a result: the budget of an agent's context (decisions 19 and 37).

A passing run takes under 600 bytes of JSON, three failures under 2,000, twenty under 6,000. Identical
failures are grouped; what is left out is counted, and read with `failures_from`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from devbay.answers import Comparison, Counts, Failure, RunResult
from devbay.reports.plain import plain, shorten, tail

MAX_MESSAGE = 600
PAGE = 20
BUDGET_FEW, FEW = 1_980, 3
BUDGET_MANY = 5_980
ENVELOPE = 600
FRAME = len(', "failures": [], "more_failures": 10000')
MAX_OUTPUT = 1_500
"""Characters of output in a result that has no failures to show instead."""


def whole(failure: Failure) -> Failure:
    """A failure uncut but for its message, which the contract bounds."""
    message = shorten(plain(failure.message).strip(), MAX_MESSAGE)
    return failure if message == failure.message else failure.model_copy(update={"message": message})


def grouped(failures: Sequence[Failure]) -> list[Failure]:
    """Failures of the same place and message as one, whose name counts the others."""
    groups: dict[tuple[object, ...], list[Failure]] = {}
    for failure in failures:
        key = (failure.kind, failure.scope, failure.phase, failure.file, failure.line, failure.message)
        same = key if failure.message else (*key, failure.suite, failure.name)
        groups.setdefault(same, []).append(failure)
    result = []
    for group in groups.values():
        first = group[0]
        if len(group) > 1 and any(each.name != first.name for each in group):
            first = first.model_copy(
                update={"name": f"{first.name} (and {len(group) - 1} more with the same message)"}
            )
        result.append(first)
    return result


def page(failures: Sequence[Failure], start: int = 0, envelope: int = ENVELOPE) -> tuple[list[Failure], int]:
    """The failures to show from `start` on, and how many come after them; both count groups.

    envelope: bytes of the result around them.
    """
    groups = grouped([whole(failure) for failure in failures])
    shown = groups[start : start + PAGE]
    budget = (BUDGET_FEW if len(shown) <= FEW else BUDGET_MANY) - envelope
    cut = _fitted(shown, budget)
    return cut, max(0, len(groups) - start - len(cut))


@dataclass(frozen=True)
class _Level:
    """How much of a failure is kept: characters, for frames a number."""

    message: int
    frames: int
    value: int
    output: int
    suite: int


_LEVELS = (
    _Level(600, 12, 400, 400, 120),
    _Level(600, 6, 200, 0, 120),
    _Level(300, 3, 120, 0, 120),
    _Level(160, 1, 60, 0, 80),
    _Level(120, 0, 0, 0, 0),
    _Level(60, 0, 0, 0, 0),
)


def _fitted(failures: Sequence[Failure], budget: int) -> list[Failure]:
    """The failures within `budget` bytes of JSON: output goes first, then long texts, then whole records."""
    cut: list[Failure] = []
    for level in _LEVELS:
        cut = [_cut(failure, level) for failure in failures]
        if _size(cut) <= budget:
            return cut
    while len(cut) > 1 and _size(cut) > budget:
        cut.pop()
    return cut


def _cut(failure: Failure, level: _Level) -> Failure:
    """One failure, with its texts cut; a value that would be cut is left out, since half a value misleads."""
    fields: dict[str, Any] = failure.model_dump(exclude_unset=True)
    fields["name"] = shorten(failure.name, 200)
    if failure.message:
        fields["message"] = shorten(failure.message, level.message)
    for key, limit in (("expected", level.value), ("actual", level.value), ("suite", level.suite)):
        if len(fields.get(key) or "") > limit:
            del fields[key]
    if failure.frames:
        fields["frames"] = failure.frames[: level.frames]
    if failure.output:
        fields["output"] = tail(failure.output, level.output) if level.output else ""
    return Failure.model_validate(
        {key: value for key, value in fields.items() if key == "name" or value not in ([], "")}
    )


def _size(failures: Sequence[Failure]) -> int:
    return sum(len(json.dumps(failure.as_json(), ensure_ascii=False).encode()) + 2 for failure in failures)


def dense_text(result: RunResult) -> str:
    """A result as text: one line of verdict, then `file:line: message` per failure."""
    lines = [verdict_line(result)]
    lines += [failure_line(failure) for failure in result.failures]
    if result.more_failures:
        lines.append(f"... and {result.more_failures} more")
    if result.comparison:
        lines += comparison_lines(result.comparison)
    if result.output and not result.failures:
        lines.append(result.output)
    if result.next:
        lines.append(f"next: {result.next}")
    return "\n".join(lines)


def verdict_line(result: RunResult) -> str:
    """`unit failed (tests_failed): 2 failed, 3 passed in 1.2 s`."""
    head = " ".join(part for part in (result.task, result.status) if part)
    if result.reason and result.reason != result.status:
        head += f" ({result.reason})"
    facts = [_counted(result.counts)] if result.counts else []
    if result.exit_code and result.status not in ("passed",):
        facts.append(f"exit code {result.exit_code}")
    if result.detail:
        facts.append(result.detail)
    text = head + (": " + "; ".join(facts) if facts else "")
    return text + (f" in {result.duration_ms / 1000:.1f} s" if result.duration_ms is not None else "")


def comparison_lines(found: Comparison) -> list[str]:
    """`compared with main (r1): 1 new, 0 fixed, 2 shared`, and the names of those that are new or fixed."""
    new, fixed, shared = (
        len(names) + more
        for names, more in (
            (found.new, found.more_new), (found.fixed, found.more_fixed), (found.shared, found.more_shared),
        )
    )  # fmt: skip
    lines = [f"compared with {found.with_}: {new} new, {fixed} fixed, {shared} shared"]
    return lines + [f"new: {name}" for name in found.new] + [f"fixed: {name}" for name in found.fixed]


def _counted(counts: Counts) -> str:
    parts = [
        f"{number} {word}"
        for number, word in (
            (counts.failed, "failed"),
            (counts.errors, "errors"),
            (counts.passed, "passed"),
            (counts.skipped, "skipped"),
        )
        if number
    ]
    return ", ".join(parts) or "no tests"


def failure_line(failure: Failure) -> str:
    """`tests/test_a.py:7: TestA.test_b: assert 1 == 2` with the message's first lines on one."""
    place = f"{failure.file}:{failure.line}" if failure.line else failure.file or ""
    message = " ".join(failure.message.split())
    name = failure.name if failure.scope in ("test", "finding") else f"[{failure.scope}] {failure.name}"
    phase = f" ({failure.phase})" if failure.phase else ""
    phase += " [flaky: it passed on this commit]" if failure.flaky else ""
    return ": ".join(part for part in (place, name + phase, shorten(message, 300)) if part)


def present(result: RunResult, failures_from: int = 0) -> RunResult:
    """A whole result cut to the budget, its failures (grouped) from `failures_from` on."""
    fields: dict[str, Any] = {name: getattr(result, name) for name in result.model_fields_set}
    fields.pop("failures", None)
    if result.output:
        fields["output"] = tail(result.output, MAX_OUTPUT if not result.failures else MAX_OUTPUT // 3)
    around = len(json.dumps(RunResult(**fields).as_json(), ensure_ascii=False).encode()) + FRAME
    failures, more = page(result.failures, failures_from, around)
    if failures:
        fields["failures"] = failures
    if more:
        fields["more_failures"] = more
    return RunResult(**fields)

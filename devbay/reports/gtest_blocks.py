"""What one GoogleTest assertion says, in plain output and in the strings of its JSON alike."""

from __future__ import annotations

import re
from collections.abc import Sequence

from devbay.reports.compare import compared
from devbay.reports.plain import shorten
from devbay.reports.records import Found, Frame, Kind, Phase, Scope

MAX_LINES = 200
MAX_MESSAGE = 8_000

PLACE = re.compile(
    r"^(?:(?P<path>(?:[A-Za-z]:)?[^\s:(][^:()]*?)(?::(?P<line>\d+)|\((?P<msvc>\d+)\))|unknown file)"
    r": (?P<what>Failure|error|Skipped)\b:? ?(?P<rest>.*)$"
)
_HEAD = re.compile(r"^(?:(?P<path>(?:[A-Za-z]:)?[^\s:][^:\n]*):(?P<line>\d+)|unknown file)(?:: Failure)?\n")
_EXCEPTION = re.compile(r"^(?:(?:Unk|unk)nown )?C\+\+ exception\b|^SEH exception\b")
_END = re.compile(r"^(?:Stack trace:|Google Test trace:)")


def described(
    name: str,
    suite: str | None,
    place: tuple[str, int] | None,
    lines: Sequence[str],
    *,
    own: tuple[str, ...] = (),
    scope: Scope = "test",
    phase: Phase | None = None,
) -> Found:
    """A failed assertion. place: where, or None (`unknown file`). lines: what follows the place."""
    kept = list(lines)
    end = next((index for index, line in enumerate(kept) if _END.match(line)), len(kept))
    message = "\n".join(kept[:end]).strip("\n").rstrip()
    if message.startswith("Failed\n"):
        message = message.removeprefix("Failed\n")
    message = shorten(message, MAX_MESSAGE)
    kind: Kind = "error" if _EXCEPTION.match(message) else "failure"
    expected, actual = compared(message)
    frames = (Frame(*place),) if place else ()
    return Found(
        name,
        suite,
        kind,
        scope,
        phase,
        message=message,
        expected=expected,
        actual=actual,
        frames=frames,
        own=(place[0], *own) if place and not own else own,
    )


def place_of(match: re.Match[str]) -> tuple[str, int] | None:
    """The place that a line of `PLACE` names."""
    number = match["line"] or match["msvc"]
    return (match["path"], int(number)) if match["path"] and number else None


def split(text: str) -> tuple[tuple[str, int] | None, list[str]]:
    """Place and lines of a failure that a report holds as one string."""
    match = _HEAD.match(text)
    if match is None:
        return None, text.split("\n")[:MAX_LINES]
    place = (match["path"], int(match["line"])) if match["path"] else None
    return place, text[match.end() :].split("\n")[:MAX_LINES]

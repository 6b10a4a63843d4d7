"""What the JVM prints of an exception: its message, then its stack, then its causes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from devbay.reports.compare import compared
from devbay.reports.locate import frames_in
from devbay.reports.records import Found

_AT = re.compile(r"\s+at [\w.$/@<>-]+\(.*\)$|\s+\.\.\. \d+ more$")
_BELOW = re.compile(r"\s*(?:Caused by|Suppressed): ")
_ASSERTION = re.compile(
    r"(?:org\.opentest4j\.AssertionFailedError|java\.lang\.AssertionError|junit\.framework\.\w+"
    r"|org\.junit\.ComparisonFailure|kotlin\.AssertionError)\b:?\s*"
)


def described(found: Found, lines: Sequence[str]) -> Found:
    """`found` with what the text of its exception says.

    The stack is the exception's own; what it was caused by tells where only if it has no stack itself.
    """
    end = next((at for at, line in enumerate(lines) if _AT.match(line) or _BELOW.match(line)), len(lines))
    below = next((at for at, line in enumerate(lines) if at >= end and _BELOW.match(line)), len(lines))
    told = "\n".join(lines[:end]).strip()
    message = _ASSERTION.sub("", told, count=1) or told if _ASSERTION.match(told) else told
    expected, actual = compared(message)
    return replace(
        found,
        message=message,
        expected=expected,
        actual=actual,
        frames=frames_in("\n".join(lines[:below])) or frames_in("\n".join(lines)),
    )

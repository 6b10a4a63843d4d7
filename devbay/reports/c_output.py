"""What a test program of C or C++ printed, for runners (CTest, Meson) that only start programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import ModuleType

from devbay.reports import boost_text, catch2_text, doctest_text, gtest_text
from devbay.reports.compare import compared
from devbay.reports.locate import frames_in
from devbay.reports.plain import tail
from devbay.reports.records import Found, Kind, Parsed
from devbay.reports.source import Source

NESTED: tuple[ModuleType, ...] = (gtest_text, catch2_text, doctest_text, boost_text)
"""The formats in which such programs usually print."""


def described(
    name: str, kind: Kind, status: str, lines: Sequence[str], suite: str | None = None
) -> Sequence[Found]:
    """The failures that a program printed in a format of its own; else the program as a whole, by its status.

    kind, status: how the runner says that it ended.
    """
    inner = [found for found in _nested(lines) if found.scope != "run" or found.kind == "crash"]
    names = {(found.suite, found.name) for found in inner}
    if len(names) == 1:
        return [replace(found, name=name, suite=suite, scope="test", phase=None) for found in inner]
    if inner:
        return [
            replace(found, name=f"{found.suite}.{found.name}" if found.suite else found.name, suite=name)
            for found in inner
        ]
    text = "\n".join(lines).strip()
    said = "\n".join(line for line in text.split("\n")[-8:] if line.strip())
    message = said if kind == "failure" and said else f"{status}\n{said}".strip()
    expected, actual = compared(message)
    return [
        Found(
            name,
            suite,
            kind,
            message=message,
            expected=expected,
            actual=actual,
            frames=frames_in(text),
            output=tail(text, 4_000) or None,
        )
    ]


def _nested(lines: Sequence[str]) -> Sequence[Found]:
    data = "\n".join(lines).encode()
    for each in NESTED:
        if each.sniff(data):
            parsed: Parsed = each.read(Source("output", data=data))
            return parsed.failures
    return ()

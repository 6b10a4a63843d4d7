"""The report formats there are.

A new one is one module with `name`, `commands`, `sniff` and `read`, and one line here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Protocol

from devbay.errors import DevbayError
from devbay.reports import (
    ava_text,
    bats_text,
    bun_text,
    catch2_json,
    catch2_text,
    catch2_xml,
    checkstyle,
    deno_text,
    go_json,
    go_text,
    gtest_json,
    gtest_text,
    jest_json,
    jest_text,
    junit,
    libtest,
    lint_json,
    lint_text,
    minitest_text,
    mocha_json,
    mocha_text,
    node_text,
    phpunit_text,
    playwright_json,
    playwright_text,
    prove_text,
    pytest_text,
    rspec_json,
    rspec_text,
    sarif,
    sonar,
    tap,
    teamcity,
    testunit_text,
    unittest_text,
    vitest_text,
)
from devbay.reports.records import Parsed
from devbay.reports.source import Source


class Format(Protocol):
    """One report format; a module of this package is one.

    name: as manifests and callers spell it. commands: programs whose output is in this format, even where the
    output alone would not show it.
    """

    @property
    def name(self) -> str: ...

    @property
    def commands(self) -> frozenset[str]: ...

    def sniff(self, head: bytes) -> bool:
        """Whether bytes (the start and the end of a source) are of this format."""

    def read(self, source: Source) -> Parsed:
        """Read a source to its end with bounded memory; what is broken becomes `Parsed.problem`."""


FORMATS: tuple[Format, ...] = (
    prove_text,
    junit,
    jest_json,
    mocha_json,
    playwright_json,
    teamcity,
    jest_text,
    vitest_text,
    mocha_text,
    node_text,
    ava_text,
    bun_text,
    deno_text,
    playwright_text,
    pytest_text,
    unittest_text,
    rspec_json,
    rspec_text,
    testunit_text,
    minitest_text,
    phpunit_text,
    bats_text,
    go_json,
    go_text,
    tap,
    libtest,
    sonar,
    catch2_json,
    catch2_xml,
    catch2_text,
    gtest_json,
    gtest_text,
    # checkers last: what tests print may look like a finding
    sarif,
    checkstyle,
    lint_json,
    lint_text,
)


def names() -> list[str]:
    return [each.name for each in FORMATS]


def named(name: str) -> Format:
    """The format of that name. Raises `unknown_format`."""
    for each in FORMATS:
        if each.name == name:
            return each
    raise DevbayError(
        "unknown_format",
        f"there is no report format {name!r}",
        next=f"use one of: auto, {', '.join(names())}",
    )


def recognised(head: bytes) -> Format | None:
    """The first format that knows the bytes."""
    return next((each for each in FORMATS if each.sniff(head)), None)


def of_command(argv: Sequence[str]) -> Format | None:
    """The format that a command prints, by the programs it names."""
    programs = {re.split(r"[\\/]", word)[-1] for word in _words(argv)}
    return next((each for each in FORMATS if each.commands & programs), None)


def _words(argv: Iterable[str]) -> Iterable[str]:
    """The words of a command, also of one that a shell is given as text."""
    for word in argv:
        yield from re.split(r"[\s;&|()]+", word)

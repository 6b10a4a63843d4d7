"""The report formats there are.

A new one is one module with `name`, `commands`, `sniff` and `read`, and one line here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from devbay.errors import DevbayError
from devbay.reports import (
    ava_text,
    bats_text,
    boost_text,
    boost_xml,
    bun_text,
    catch2_json,
    catch2_text,
    catch2_xml,
    check_text,
    checkstyle,
    cmocka_text,
    ctest_text,
    ctrf,
    deno_text,
    doctest_text,
    dotnet_text,
    exunit_text,
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
    maven_text,
    meson_text,
    minitest_text,
    mocha_json,
    mocha_text,
    nextest,
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
    trx,
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


_BUILDERS = frozenset(
    {
        *("make", "gmake", "ninja", "cmake", "meson", "just", "task", "bazel", "nx", "turbo"),
        *("npm", "pnpm", "yarn", "bun", "deno", "mvn", "mvnw", "gradle", "gradlew", "sbt"),
        *("go", "cargo", "swift", "dotnet", "mix", "zig"),
    }
)
_TESTS = re.compile(r"(?:[\w-]+[:_-])?tests?(?:[:_-][\w:-]+)?")

CHECKERS: tuple[Format, ...] = (sarif, checkstyle, lint_json, lint_text)
"""Formats of findings. They come last: what tests print may look like a finding."""

FORMATS: tuple[Format, ...] = (
    prove_text,
    junit,
    trx,
    ctrf,
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
    exunit_text,
    bats_text,
    maven_text,
    dotnet_text,
    ctest_text,
    meson_text,
    nextest,
    go_json,
    go_text,
    tap,
    libtest,
    check_text,
    cmocka_text,
    boost_xml,
    boost_text,
    doctest_text,
    sonar,
    catch2_json,
    catch2_xml,
    catch2_text,
    gtest_json,
    gtest_text,
    *CHECKERS,
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


def candidates(head: bytes, argv: Sequence[str]) -> Iterator[Format]:
    """The formats that output may be in, the likeliest first.

    What a test runner's command printed may look like a checker's findings, or be those of a build before it.
    """
    known, named_by = recognised(head), of_command(argv)
    found = (named_by, known) if known in CHECKERS else (known or named_by,)
    yield from (each for each in found if each is not None)


def runs_tests(argv: Sequence[str]) -> bool:
    """Whether a command is meant to run tests, by its words: `make test`, `npm run test:unit`."""
    words = list(_words(argv))
    built = any(word.rpartition("/")[2] in _BUILDERS for word in words)
    return of_command(argv) is not None or (built and any(_TESTS.fullmatch(word) for word in words))


def _words(argv: Iterable[str]) -> Iterable[str]:
    """The words of a command, also of one that a shell is given as text."""
    for word in argv:
        yield from re.split(r"[\s;&|()]+", word)

"""The expected and the actual value, where the text of an assertion names them."""

from __future__ import annotations

import re

MAX_VALUE = 2_000

# Each pattern has the groups `expected` and `actual`; the first that fits wins. Sources: the output of pytest
# 8 and 9, unittest, Jest 30, Vitest 4, Chai, node:assert, JUnit 5, RSpec 3, Minitest 5, PHPUnit 9, libtest,
# GoogleTest, Test::More and Go's customs.
_PATTERNS = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"^[ \t]*Expected: (?P<expected>\S.*)\n[ \t]*(?:Received|Actual): *(?P<actual>\S.*)$",
        r"^[ \t]*expected: ?(?P<expected>\S.*)\n[ \t]*(?:got|actual) *: ?(?P<actual>\S.*)$",
        r"^#?[ \t]*got: (?P<actual>'.*')\n#?[ \t]*expected: (?P<expected>'.*')$",
        r"expected: (?P<expected><(?s:.*?)>) but was: (?P<actual><(?s:.*?)>)",
        r"^[ \t]*left: (?P<actual>.+)\n[ \t]*right: (?P<expected>.+)$",
        r"Failed asserting that (?P<actual>.+?) (?:is identical to|matches expected|is equal to)"
        r" (?P<expected>.+?)\.$",
        r"^(?:E\s+)?(?:\w*Error: )?assert (?P<actual>(?:(?! == ).)+) == (?P<expected>.+)$",
        r"^AssertionError: (?:\w+ differ: )?(?!assert )(?P<actual>\S.*?) != "
        r"(?P<expected>[^\n:]+?)(?: : .*)?$",
        r"\bexpected (?P<actual>\S+) (?:to be|to equal|to strictly equal|to deeply equal)"
        r" (?P<expected>['\"\d\[{-][^\s/]*|true|false|null|undefined)(?=\s|$)",
        r"^[ \t]*actual: (?P<actual>.+),\n[ \t]*expected: (?P<expected>.+),$",
        r"^- Expected\n\+ Received\n\n- (?P<expected>.+)\n\+ (?P<actual>.+)$",
        r"^Got: *(?P<actual>.+)\n[ \t]*Want: *(?P<expected>.+)$",
        r"\bgot (?P<actual>[^\s,;]+)[,;]? want(?:ed)? (?P<expected>[^\s,;]+)",
        r"= (?P<actual>[^\s,;]+)[,;] want (?P<expected>[^\s,;]+)",
        r"^[ \t]*Expected equality of these values:\n  .+\n"
        r"    Which is: (?P<actual>.+)\n  (?P<expected>\S.*)$",
    )
)


def compared(*texts: str) -> tuple[str | None, str | None]:
    """(expected, actual) from the first text that names both whole; (None, None) if none does."""
    for text in texts:
        for pattern in _PATTERNS:
            if match := pattern.search(text[:6_000]):
                expected, actual = match["expected"].strip(), match["actual"].strip()
                if expected != actual and _whole(expected) and _whole(actual):
                    return expected, actual
    return None, None


def _whole(value: str) -> bool:
    """Whether a value was neither abbreviated by the runner nor cut by a pattern (its pairs are closed)."""
    if not value or len(value) > MAX_VALUE or "[Array]" in value or "[Object]" in value:
        return False
    bare = re.sub(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", "", value)
    return all(bare.count(a) == bare.count(b) for a, b in ("()", "[]", "{}")) and not set(bare) & {"'", '"'}

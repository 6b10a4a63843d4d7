"""Text that others wrote as a person may see it in a terminal: nothing in it moves, hides or turns round."""

from __future__ import annotations

import unicodedata

_HIDDEN = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"}
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and signs that show as nothing."""


def plain(text: str) -> str:
    """The text with every character that is no plain sign or blank as `\\u{...}`; lines stay lines."""
    spaced = text.replace("\t", "    ")
    return "".join(each if each == "\n" or _is_plain(each) else f"\\u{{{ord(each):x}}}" for each in spaced)


def excerpt(text: str, *, lines: int, width: int) -> list[str]:
    """The first lines, each cut at a width; what was left out is counted."""
    every = text.removesuffix("\n").split("\n")
    shown = [_cut(plain(line), width) for line in every[:lines]]
    more = len(every) - lines
    return [*shown, f"... and {more} more line{'s' if more > 1 else ''}"] if more > 0 else shown


def _cut(line: str, width: int) -> str:
    more = len(line) - width
    return line if more <= 0 else f"{line[:width]} ... and {more} more characters"


def _is_plain(character: str) -> bool:
    if character in _BLANK or unicodedata.category(character) in _HIDDEN:
        return False
    return character == " " or not character.isspace()

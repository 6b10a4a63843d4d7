"""The commands in a text for a shell, when it is better to see too many than to miss one. Pure.

Unlike `devbay.runners.shell`, which is for lines that are plain enough to be sure of, this reads anything.
"""

from __future__ import annotations

import re

_COMMENT = re.compile(r"(?m)(?<!\S)#[^\n]*")
_INNER = re.compile(r"\$\(([^()]*)\)|`([^`]*)`")
_TOKEN = re.compile(
    r"""(?P<end>[;&|()\n]+)|(?P<space>[ \t\r<>]+)"""
    r"""|(?P<word>(?:[^\s;&|()<>'"\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+)""",
    re.DOTALL,
)
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_LEADING = {"if", "then", "elif", "else", "while", "until", "do", "!", "{", "}", "in", "time", "exec", "eval"}
_DEEP = 20


def commands(text: str) -> list[tuple[str, ...]]:
    """The words of every command, quotes removed, those of `$(...)` first; what these yield is `$_`."""
    text = _COMMENT.sub("", text.replace("\\\n", " "))
    found: list[tuple[str, ...]] = []
    for _ in range(_DEEP):
        inner = [first or second for first, second in _INNER.findall(text)]
        if not inner:
            break
        for each in inner:
            found += _split(each)
        text = _INNER.sub("$_", text)
    return found + _split(text)


def _split(text: str) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    words: list[str] = []
    for match in _TOKEN.finditer(text):  # a quote without its end is passed over
        if match["word"]:
            words.append(_unquoted(match["word"]))
        elif match["end"]:
            found.append(_bare(words))
            words = []
    found.append(_bare(words))
    return [each for each in found if each]


def _bare(words: list[str]) -> tuple[str, ...]:
    """Without what stands before the program."""
    start = 0
    while start < len(words) and (words[start] in _LEADING or _ASSIGNMENT.match(words[start])):
        start += 1
    return tuple(words[start:])


def _unquoted(word: str) -> str:
    return re.sub(
        r"""\\(.)|'([^']*)'|"((?:[^"\\]|\\.)*)\"""",
        lambda match: match[1] or match[2] or re.sub(r"\\(.)", r"\1", match[3] or ""),
        word,
        flags=re.DOTALL,
    )

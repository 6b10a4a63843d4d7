"""The simple commands in a line for a shell, where it is plain enough to be sure of them. Pure."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

_SUBSTITUTED = re.compile(r"\$\([^()]*\)|`[^`]*`")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_OPERATORS = {";", "&&", "||", "|", "&", "|&"}
_REPEATED = {"for", "while", "until", "case", "select", "function", "{", "}", "(", ")", "<<", "<<<", "<<-"}
_LOGIC = {"if", "then", "elif", "else", "fi", "!"}


@dataclass(frozen=True)
class Simple:
    """One command of a line. sets: variables set for it. folder: where `cd` before it led, None if unclear.

    last: what is appended to the line's text reaches it.
    """

    words: tuple[str, ...]
    sets: frozenset[str] = frozenset()
    folder: str | None = ""
    last: bool = False


def simple_commands(text: str) -> list[Simple] | None:
    """The commands in order; None if some could run more than once, or the line is no plain text."""
    found: list[Simple] = []
    folder: str | None = ""
    exported: frozenset[str] = frozenset()
    for line in text.replace("\\\n", " ").splitlines():
        tokens = _tokens(line)
        if tokens is None:
            return None
        for command in _split(tokens):
            words = list(command)
            while words and words[0] in _LOGIC:
                words.pop(0)
            sets = set(exported)
            while words and _ASSIGNMENT.match(words[0]):
                sets.add(words.pop(0).partition("=")[0])
            if not words:
                continue
            if words[0] == "cd":
                folder = f"{folder}/{words[1]}" if folder is not None and len(words) == 2 else None
                if folder is not None and "$" in folder:
                    folder = None
            elif words[0] == "export":
                exported |= {word.partition("=")[0] for word in words[1:]}
            else:
                found.append(Simple(tuple(words), frozenset(sets), folder))
    if found:
        ends = found[-1]
        found[-1] = Simple(ends.words, ends.sets, ends.folder, last=not text.rstrip().endswith(("&", ";")))
    return found


def _tokens(line: str) -> list[str] | None:
    lexer = shlex.shlex(_SUBSTITUTED.sub("$_", line), posix=True, punctuation_chars=";&|()<>")
    lexer.whitespace_split = True
    try:
        tokens = list(lexer)
    except ValueError:
        return None
    return None if any(token in _REPEATED for token in tokens) else tokens


def _split(tokens: list[str]) -> list[list[str]]:
    """At the operators, without redirections."""
    commands: list[list[str]] = [[]]
    skip = False
    for token in tokens:
        if skip:
            skip = False
        elif token in _OPERATORS or set(token) <= {";"}:
            commands.append([])
        elif set(token) <= set("<>&"):
            skip = True
            if commands[-1] and commands[-1][-1].isdigit():
                commands[-1].pop()
        else:
            commands[-1].append(token)
    return [command for command in commands if command]

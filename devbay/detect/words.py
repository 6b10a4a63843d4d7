"""Shell text as detection reads it: one plain command as an argv, anything more as text for a shell."""

from __future__ import annotations

import re
import shlex

_SPECIAL = re.compile(r"[|&;<>()$`*?\[\]~\n\\{}#!]")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


def argv(text: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """A command line as an argv and the variables set before it.

    What needs a shell (operators, expansions, quotes that do not close) keeps one: `sh -c TEXT`.
    """
    text = text.strip()
    words = plain(text)
    if words is None:
        return ("sh", "-c", text), {}
    return with_env(words)


def with_env(words: list[str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """`env A=b cmd`, `A=b cmd` and `cross-env A=b cmd` as the command and its variables."""
    rest = words[1:] if words[:1] in (["env"], ["cross-env"]) else words
    if len(rest) < len(words) and rest and rest[0].startswith("-"):
        return tuple(words), {}
    env: dict[str, str] = {}
    while rest and _ASSIGNMENT.match(rest[0]):
        name, _, value = rest[0].partition("=")
        env[name] = value
        rest = rest[1:]
    return (tuple(rest), env) if rest else (tuple(words), {})


def plain(text: str) -> list[str] | None:
    """The words of one command without anything that a shell would do to it, quotes aside; else None."""
    outside = re.sub(r"'[^']*'", "''", text)
    quoted = re.sub(r'"(?:[^"\\$`]|\\["\\$`])*"', '""', outside)
    if _SPECIAL.search(quoted):
        return None
    try:
        return shlex.split(text) or None
    except ValueError:
        return None


def joined(text: str) -> str:
    """A script with its continued lines put together."""
    return re.sub(r"[ \t]*\\\n[ \t]*", " ", text)

"""Variables in a compose file's texts, put in as compose does where none is set."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

# As compose-go's template.go has it (v2.6): an expression reaches to the last brace of its line, and is then
# cut where its own braces close. The rare texts where the two disagree come out as they do there.
_EXPRESSION = re.compile(
    r"\$(?:(?P<escaped>\$)|(?P<named>[_a-z][_a-z0-9]*)"
    r"|\{(?:(?P<braced>[_a-z][_a-z0-9]*(?::?[-+?](?:.*))?)\}|(?P<invalid>)))",
    re.IGNORECASE | re.ASCII,
)
_BRACED = re.compile(r"([_a-z][_a-z0-9]*)(?:(:?[-+?])(.*))?", re.IGNORECASE | re.ASCII)
MAX_NESTED = 50
MAX_DOLLARS = 2000


@dataclass(frozen=True)
class Needed:
    """A variable without which compose refuses the file, and what the file says to that."""

    name: str
    message: str = ""


@dataclass
class Found:
    """What one text says about variables. unset: read as blank. defaults: names to their default text."""

    unset: list[str] = field(default_factory=list)
    needed: list[Needed] = field(default_factory=list)
    defaults: dict[str, str] = field(default_factory=dict)
    broken: bool = False


def substitute(text: str, known: Mapping[str, str], found: Found) -> str:
    """`text` with `$VAR`, `${VAR}`, their defaults and `$$` resolved; what was missing is added to `found`.

    A required variable reads as blank. A text that is no template (`${}`, `${a b}`) stays as it is, and
    `found.broken` is set.
    """
    result = _substitute(text, known, found, 0)
    return text if found.broken else result


def _substitute(text: str, known: Mapping[str, str], found: Found, depth: int) -> str:
    if depth > MAX_NESTED or text.count("$") > MAX_DOLLARS:
        found.broken = True
        return text
    done: list[str] = []
    while match := _EXPRESSION.search(text):
        end = _closing(match[0])
        whole = match[0][: end + 1] if end >= 0 else match[0]
        done += text[: match.start()], _value(whole, known, found, depth)
        text = text[match.start() + len(whole) :]
    return "".join((*done, text))


def _value(whole: str, known: Mapping[str, str], found: Found, depth: int) -> str:
    match = _EXPRESSION.match(whole)
    if match is None or match["invalid"] is not None:
        found.broken = True
        return whole
    if match["escaped"]:
        return "$"
    parts = _BRACED.fullmatch(match["named"] or match["braced"])
    assert parts is not None
    name, operator, word = parts.groups()
    if operator is None:
        return _plain(name, known, found)
    value = known.get(name)
    is_there = bool(value) if operator.startswith(":") else value is not None
    if operator[-1] == "+":
        return _substitute(word, known, found, depth + 1) if is_there else value or ""
    if operator[-1] == "-":
        default = _substitute(word, known, found, depth + 1)
        found.defaults.setdefault(name, default)
        return value or "" if is_there else default
    if not is_there:
        found.needed.append(Needed(name, _substitute(word, known, Found(), depth + 1)))
    return value or ""


def _plain(name: str, known: Mapping[str, str], found: Found) -> str:
    if name not in known and name not in found.unset:
        found.unset.append(name)
    return known.get(name, "")


def _closing(text: str) -> int:
    """Where the first brace of `text` closes; -1 if it does not."""
    depth = at = 0
    while at < len(text):
        if text[at] == "}":
            depth -= 1
            if depth == 0:
                return at
        if text[at] == "{":
            depth += 1
            at += 1
        at += 1
    return -1

"""Values of compose's fields from what a file writes: numbers, switches, durations, sizes, lists of pairs."""

from __future__ import annotations

import re
from typing import Any

from devbay.detect.compose.tree import Map, sequence, shown

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"[-+]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+|0")
_STEP = re.compile(r"([0-9.]+)(ns|us|µs|μs|ms|s|m|h)")
_SIZE = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,18})?) ?([kmgtp]?)(i?b)?", re.IGNORECASE)


def text(value: Any) -> str | None:
    """A scalar as text; None where nothing is written."""
    return None if value is None or isinstance(value, Map | list) else shown(value)


def texts(value: Any) -> tuple[str, ...]:
    """A list of texts, or the one."""
    return tuple(
        shown(each) for each in sequence(value) if not isinstance(each, Map | list) and each is not None
    )


def switch(value: Any) -> bool | None:
    """A bool, also as the words of YAML 1.1 in quotes. Raises `ValueError`."""
    word = (text(value) or "").lower()
    if word in ("true", "y", "yes", "on"):
        return True
    if word in ("false", "n", "no", "off"):
        return False
    if value is None:
        return None
    raise ValueError(f"{word[:60]!r} is neither true nor false")


def number(value: Any) -> int | None:
    """A whole number. Raises `ValueError`."""
    word = text(value)
    if word is None:
        return None
    if not re.fullmatch(r"[-+]?[0-9]{1,18}", word):
        raise ValueError(f"{word[:60]!r} is no whole number")
    return int(word)


def seconds(value: Any) -> float | None:
    """A duration as Go writes them (`1m30s`). Raises `ValueError`; `5` is none."""
    word = text(value)
    if word is None:
        return None
    if len(word) > 100 or not _DURATION.fullmatch(word):
        raise ValueError(f"{word[:60]!r} is no duration; 5s and 1m30s are")
    total = sum(float(amount) * _UNITS[unit] for amount, unit in _STEP.findall(word))
    return round(-total if word.startswith("-") else total, 9)


def size(value: Any) -> int | None:
    """Bytes of `64m`, `1gb`, `1024`. Raises `ValueError`."""
    word = text(value)
    if word is None:
        return None
    match = _SIZE.fullmatch(word.strip())
    if match is None:
        raise ValueError(f"{word[:60]!r} is no size; 64m and 1gb are")
    return int(float(match[1]) * 1024 ** " kmgtp".index(match[2].lower() or " "))


def pairs(value: Any, separators: str = "=") -> list[tuple[str, Any, Any]]:
    """`[A=1, B]` or `{A: 1, B: null}` as (name, value or None, what carries the place)."""
    if isinstance(value, Map):
        return [(name, each, each) for name, each in value.items()]
    found: list[tuple[str, Any, Any]] = []
    for item in value if isinstance(value, list) else []:
        line = shown(item)
        at = next((line.index(mark) for mark in separators if mark in line), None)
        found.append((line, None, item) if at is None else (line[:at], line[at + 1 :], item))
    return found


def mapped(value: Any) -> dict[str, str]:
    """Pairs as a mapping; a name alone has a blank value."""
    return {name: "" if each is None else shown(each) for name, each, _ in pairs(value)}

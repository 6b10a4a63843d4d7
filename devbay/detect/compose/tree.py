"""Plain data that knows its place: what a compose file holds, each text and key with file and line."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from devbay.detect.facts import Origin

Path = tuple[str, ...]
"""Keys from the top; items of lists are `[]`."""


class Text(str):
    """A text of a file. unset: the variables in it that nobody sets."""

    origin: Origin | None
    unset: tuple[str, ...]

    def __new__(cls, text: str, origin: Origin | None = None, unset: tuple[str, ...] = ()) -> Text:
        made = super().__new__(cls, text)
        made.origin = origin
        made.unset = unset
        return made


class Place(Text):
    """A path that is already relative to the root of the view; `~/...` and absolute ones stay as written."""


class Map(dict[str, Any]):
    """A mapping. at: where each of its keys stands."""

    def __init__(self, data: Iterable[tuple[str, Any]] = (), at: dict[str, Origin] | None = None) -> None:
        super().__init__(data)
        self.at: dict[str, Origin] = dict(at or {})


def like(text: str, source: object) -> Text:
    """`text` as a part of `source`: with its place and its missing variables."""
    return Text(text, getattr(source, "origin", None), unset_in(source))


def unset_in(value: object) -> tuple[str, ...]:
    """The missing variables anywhere in a value, each once."""
    if isinstance(value, Text):
        return value.unset
    parts: Iterable[object] = (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    )
    return tuple(dict.fromkeys(name for part in parts for name in unset_in(part)))


def mapping(value: object) -> Map:
    """`value` if it is a mapping, else an empty one."""
    return value if isinstance(value, Map) else Map()


def sequence(value: object) -> list[Any]:
    """A list as it is, nothing as an empty one, anything else as a list of one."""
    return value if isinstance(value, list) else [] if value is None else [value]


def copied(value: Any) -> Any:
    """A deep copy of mappings and lists."""
    if isinstance(value, Map):
        return Map(((key, copied(each)) for key, each in value.items()), value.at)
    return [copied(each) for each in value] if isinstance(value, list) else value


def size(value: object) -> int:
    """The number of values in a value, itself included."""
    parts: Iterable[object] = (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    )
    return 1 + sum(map(size, parts))


def matches(path: Path, pattern: str) -> bool:
    """Whether a path fits a pattern of keys with dots, in which `*` stands for any one."""
    parts = pattern.split(".")
    return len(parts) == len(path) and all(
        wanted in ("*", here) for here, wanted in zip(path, parts, strict=True)
    )


def shown(value: object) -> str:
    """A scalar as compose writes it into an environment: `true`, `3.1` for 3.10, `1e+06` for 1000000.0."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return _float(value) if isinstance(value, float) else "" if value is None else str(value)


def _float(number: float) -> str:
    """Go's `%v`: the shortest digits, with an exponent below 1e-4 and from 1e6 on."""
    if number != number or number in (float("inf"), float("-inf")):
        return "NaN" if number != number else "+Inf" if number > 0 else "-Inf"
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits))
    point = len(text) + exponent
    if text == "0":
        body = "0"
    elif not -3 <= point <= 6:
        head = text[0] + (f".{text[1:]}" if len(text) > 1 else "")
        body = f"{head}e{'-' if point < 1 else '+'}{abs(point - 1):02d}"
    elif point <= 0:
        body = f"0.{'0' * -point}{text}"
    else:
        text = text.ljust(point, "0")
        body = text[:point] + (f".{text[point:]}" if len(text) > point else "")
    return f"{'-' if sign else ''}{body}"

"""A compose file's YAML as go-yaml reads it: scalars, merge keys, `!reset` and `!override`; bounded first."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from math import isfinite
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
)

from devbay.detect.compose.tree import Map, Path, Text
from devbay.detect.facts import Origin

MAX_NODES = 20_000
"""Values of one file, an alias counting as what it repeats: half a second of parsing."""
MAX_DEPTH = 50
MAX_DOCUMENTS = 20
_TAG = "tag:yaml.org,2002:"
_MERGE = "<<"
_WORDS: Mapping[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
}
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_BASES = (
    (16, re.compile(r"0[xX]_?([0-9a-fA-F]+)")), (2, re.compile(r"0[bB]([01]+)")),
    (8, re.compile(r"0[oO]?([0-7]+)")), (10, re.compile(r"(0|[1-9][0-9]*)")),
)  # fmt: skip
_TIME = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})"
    r"(?: (\d{1,2}):(\d{1,2}):(\d{1,2})(\.\d+)?"
    r"|[Tt](\d{1,2}):(\d{1,2}):(\d{1,2})(\.\d+)?(?:Z|([-+])(\d\d):(\d\d)))?"
)


class Broken(Exception):
    """Nothing of a file can be read; inside this package only."""


@dataclass
class Document:
    """One document. resets: paths whose earlier value is dropped before this document is merged onto it."""

    data: Any
    resets: list[Path] = field(default_factory=list)


@dataclass
class Reading:
    """A file's documents, and what compose would not accept about it, each with its place."""

    documents: list[Document]
    faults: list[tuple[str, Origin]]


@dataclass
class _Node:
    data: Any
    size: int = 1
    height: int = 1


def read(text: str, file: str) -> Reading:
    """All documents of `text`. Raises `Broken` where it is no YAML, or more of it than the limits allow."""
    reader = _Reader(file)
    try:
        documents = reader.documents(iter(YAML(typ="safe", pure=True).parse(text)))
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f" (line {mark.line + 1})" if mark else ""
        if mark and any(
            re.match(r" *\t", each) for each in text.split("\n")[max(mark.line - 1, 0) : mark.line + 1]
        ):
            raise Broken(f"is no YAML: a tab is used for indentation{line}") from None
        raise Broken(f"is no YAML: {error.problem or error.context}{line}") from None
    except (YAMLError, ValueError, OverflowError, RecursionError) as error:
        raise Broken(f"is no YAML: {str(error).splitlines()[0][:200]}") from None
    return Reading(documents, reader.faults)


class _Reader:
    def __init__(self, file: str) -> None:
        self._file = file
        self._count = 0
        self._anchors: dict[str, _Node | None] = {}
        self._resets: list[Path] = []
        self.faults: list[tuple[str, Origin]] = []

    def documents(self, events: Iterator[Event]) -> list[Document]:
        found: list[Document] = []
        self._events = events
        for event in events:
            if isinstance(event, DocumentStartEvent):
                if len(found) == MAX_DOCUMENTS:
                    raise Broken(f"has more than {MAX_DOCUMENTS} documents")
                self._anchors, self._resets = {}, []
                node = self._node(next(events), (), 1)
                found.append(Document(node.data if node else Map(), self._resets))
        return found

    def _origin(self, event: Event) -> Origin:
        return Origin(self._file, event.start_mark.line + 1)

    def _node(self, event: Event, path: Path, depth: int) -> _Node | None:
        """The value that begins with `event`; None where `!reset` takes it away."""
        if isinstance(event, AliasEvent):
            name = str(event.anchor)
            aliased = self._anchors.get(name)
            if aliased is None:
                raise Broken(
                    f"uses the alias *{name[:60]} without its anchor (line {event.start_mark.line + 1})"
                )
            self._spend(aliased.size, depth + aliased.height - 1)
            return aliased
        assert isinstance(event, ScalarEvent | CollectionStartEvent)
        self._spend(1, depth)
        if event.anchor:
            self._anchors[event.anchor] = None
        tag = str(event.tag or "")
        if tag in ("!reset", "!override"):
            self._resets.append(path)
        if isinstance(event, ScalarEvent):
            node = _Node(self._scalar(event))
        elif isinstance(event, MappingStartEvent):
            node = self._mapping(path, depth)
        else:
            node = self._sequence(path, depth)
        if event.anchor:
            self._anchors[event.anchor] = node
        return None if tag == "!reset" else node

    def _sequence(self, path: Path, depth: int) -> _Node:
        node = _Node([])
        for index, event in enumerate(iter(lambda: next(self._events), None)):
            assert event is not None
            if isinstance(event, SequenceEndEvent):
                break
            child = self._node(event, (*path, str(index)), depth + 1)
            if child is not None:
                node.data.append(child.data)
                _grow(node, child)
        return node

    def _mapping(self, path: Path, depth: int) -> _Node:
        data, merged = Map(), list[Map]()
        node = _Node(data)
        for event in iter(lambda: next(self._events), None):
            assert event is not None
            if isinstance(event, MappingEndEvent):
                break
            key = self._key(event, path, depth)
            is_merge = key == _MERGE and isinstance(event, ScalarEvent) and event.style is None
            child = self._node(next(self._events), path if is_merge else (*path, key), depth + 1)
            if child is None:
                continue
            _grow(node, child)
            if is_merge:
                merged += self._sources(event, child.data)
                continue
            if key in data:
                self.faults.append((f"the key {key[:60]} is written twice", self._origin(event)))
            data[key] = child.data
            data.at[key] = self._origin(event)
        for source in merged:
            for key, value in source.items():
                if key not in data:
                    data[key] = value
                    data.at[key] = source.at[key]
        return node

    def _key(self, event: Event, path: Path, depth: int) -> str:
        self._spend(1, depth)
        if isinstance(event, AliasEvent):
            anchored = self._anchors.get(str(event.anchor))
            key: Any = anchored.data if anchored else None
        elif isinstance(event, ScalarEvent):
            key = self._scalar(event)
        else:
            raise Broken(f"has a key that is no text (line {event.start_mark.line + 1})")
        if not isinstance(key, str):
            where = ".".join(path) or "the top"
            self.faults.append((f"a key of {where} is no text; quote it", self._origin(event)))
        return str(event.value) if isinstance(event, ScalarEvent) else str(key)

    def _sources(self, event: Event, value: Any) -> list[Map]:
        sources = value if isinstance(value, list) else [value]
        if not all(isinstance(source, Map) for source in sources):
            self.faults.append(("`<<` takes mappings", self._origin(event)))
        return [source for source in sources if isinstance(source, Map)]

    def _scalar(self, event: ScalarEvent) -> Any:
        text, tag = event.value, str(event.tag or "").removeprefix(_TAG)
        if "\x00" in text:
            raise Broken(f"holds a NUL character (line {event.start_mark.line + 1})")
        if tag == "binary":
            try:
                text = base64.b64decode(text, validate=False).decode("utf-8", "replace")
            except binascii.Error:
                self.faults.append(("!!binary is no base64", self._origin(event)))
        elif tag in ("int", "float", "bool", "null") or (not tag and event.style is None):
            value = resolved(text)
            if isinstance(value, float) and not isfinite(value):
                self.faults.append((f"{text} is no number that compose takes", self._origin(event)))
            if not isinstance(value, str):
                return float(value) if tag == "float" and type(value) is int else value
            text = value
        return Text(text, self._origin(event))

    def _spend(self, nodes: int, depth: int) -> None:
        self._count += nodes
        if self._count > MAX_NODES:
            raise Broken(f"has more than {MAX_NODES} values, aliases counted as what they repeat")
        if depth > MAX_DEPTH:
            raise Broken(f"is nested deeper than {MAX_DEPTH} levels")


def _grow(node: _Node, child: _Node) -> None:
    node.size += child.size
    node.height = max(node.height, child.height + 1)


def resolved(text: str) -> Any:
    """A plain scalar: None, a bool, a number, or the text; a date as the text compose makes of it.

    go-yaml v3 (`resolve.go`): `yes`, `on`, `22:22` are text; 0o17, 017, 0x1F, 0b11 and 1_000 are numbers.
    """
    if text in _WORDS:
        return _WORDS[text]
    if not text[:1].isdigit() and text[:1] not in ("+", "-", "."):
        return text
    plain = text.replace("_", "")
    digits = plain[1:] if plain[:1] in ("+", "-") else plain
    for base, form in _BASES:
        if (match := form.fullmatch(digits)) and len(digits) < 70:
            number = int(match[1], base) * (-1 if plain[0] == "-" else 1)
            if -(2**63) <= number < 2**64:
                return number
            break
    if _FLOAT.fullmatch(plain):
        real = float(plain)
        return text if real in (float("inf"), float("-inf")) else real
    return _date(text) or text


def _date(text: str) -> str | None:
    """As Go prints a time: a date, a date with a time, or RFC 3339; None if it is none of them."""
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    parts = match.groups()
    hour, minute, second, fraction = parts[3:7] if parts[3] else parts[7:11]
    offset = timedelta(hours=int(parts[12] or 0), minutes=int(parts[13] or 0))
    year, month, day = (int(part) for part in parts[:3])
    try:
        zone = timezone(-offset if parts[11] == "-" else offset)
        moment = datetime(year, month, day, int(hour or 0), int(minute or 0), int(second or 0), tzinfo=zone)
    except ValueError:
        return None
    rest = (fraction or "").rstrip("0").rstrip(".")
    return f"{moment:%Y-%m-%d %H:%M:%S}{rest} {moment:%z} {f'{moment:%z}' if offset else 'UTC'}"

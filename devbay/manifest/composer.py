"""YAML events to data (YAML 1.2, core schema), bounded before anything is built.

Scalars are resolved here and not by the library: `on`, `yes` and `no` are text, a number keeps the spelling
it has in the file. Limits (decision 33) are checked on the event stream, an alias counting as what it
repeats, so that an alias bomb ends at the limit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ruamel.yaml import YAML
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

from devbay.manifest.source import MAX_DEPTH, MAX_NODES, Node, Problem, Tree, Unreadable

MAX_DIGITS = 100
_UNUSABLE = re.compile("[\x00\ud800-\udfff]")
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(
    r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
)
_WORDS: Mapping[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_TAG = "tag:yaml.org,2002:"


class WrittenInt(int):
    """A whole number that knows its spelling in the file."""

    written: str


class WrittenFloat(float):
    """A number that knows its spelling in the file."""

    written: str


def compose(text: str) -> Tree:
    """The one document in `text`. Raises `Unreadable`, and the library's errors where it is no YAML."""
    return _Builder(iter(YAML(typ="safe", pure=True).parse(text))).document()


class _Builder:
    """Turns the events of one document into nodes; stops where no reading can go on."""

    def __init__(self, events: Iterator[Event]) -> None:
        self._events = events
        self._count = 0
        self._anchors: dict[str, Node | None] = {}
        self._path: list[str | int] = []
        self._problems: list[Problem] = []

    def document(self) -> Tree:
        root: Node | None = None
        for event in self._events:
            if isinstance(event, DocumentStartEvent):
                if root is not None:
                    raise self._stop(
                        "documents", event, "the file has several documents", "keep one document"
                    )
                root = self._node(next(self._events), 1)
        if root is None or root.data is None:
            fix = "write `version: 1`, `project: <name>` and `services:`, or run `devbay init`"
            raise Unreadable(Problem("empty", "the manifest is empty", fix))
        return Tree(root, tuple(self._problems))

    def _node(self, event: Event, depth: int) -> Node:
        if isinstance(event, AliasEvent):
            return self._alias(event, depth)
        assert isinstance(event, ScalarEvent | CollectionStartEvent)
        self._spend(event, 1, depth)
        anchor = event.anchor
        if anchor:
            self._anchors[anchor] = None
        if isinstance(event, ScalarEvent):
            node = Node(self._scalar(event))
        else:
            tag = str(event.tag or "")
            if tag not in {"", "!", f"{_TAG}map", f"{_TAG}seq"}:
                raise self._stop("tag", event, f"the tag {tag[:60]} is not supported", "remove the tag")
            is_map = isinstance(event, MappingStartEvent)
            node = self._mapping(depth) if is_map else self._sequence(depth)
            node.size += sum(child.size for _, _, child in node.children.values())
            node.height += max((child.height for _, _, child in node.children.values()), default=0)
        if anchor:
            self._anchors[anchor] = node
        return node

    def _alias(self, event: AliasEvent, depth: int) -> Node:
        name = str(event.anchor)
        if name not in self._anchors:
            raise self._stop(
                "alias", event, f"the alias *{name[:60]} has no anchor", f"define &{name[:60]} above it"
            )
        node = self._anchors[name]
        if node is None:
            raise self._stop("alias", event, f"the alias *{name[:60]} contains itself", "remove the alias")
        self._spend(event, node.size, depth + node.height - 1)
        return node

    def _sequence(self, depth: int) -> Node:
        node = Node([])
        for event in self._events:
            if isinstance(event, SequenceEndEvent):
                break
            index = len(node.data)
            self._path.append(index)
            child = self._node(event, depth + 1)
            self._path.pop()
            node.data.append(child.data)
            node.children[index] = (*_start(event), child)
        return node

    def _mapping(self, depth: int) -> Node:
        node = Node({})
        merged: list[Node] = []
        extra = 0
        for event in self._events:
            if isinstance(event, MappingEndEvent):
                break
            self._spend(event, 1, depth + 1)
            extra += 1
            if not isinstance(event, ScalarEvent):
                raise self._stop("key", event, "a key must be a text", "write `name: value`")
            key = event.value
            plain = event.style is None and event.tag is None
            if (plain and key in {"", "~"}) or _UNUSABLE.search(key):
                raise self._stop("key", event, "a key is empty or unusable", "give the key a name")
            self._path.append(key)
            value = self._node(next(self._events), depth + 1)
            if plain and key == "<<":
                merged.extend(self._merge_sources(event, value))
                extra += value.size
            elif key in node.data:
                first = node.children[key][0]
                problem = f"`{key[:60]}` is written twice (first in line {first})"
                fix = "keep one of the two"
                self._problems.append(
                    Problem("duplicate-key", problem, fix, *_start(event), tuple(self._path))
                )
            else:
                node.data[key] = value.data
                node.children[key] = (*_start(event), value)
            self._path.pop()
        for source in merged:
            for key, child in source.children.items():
                if key not in node.data:
                    node.data[key] = child[2].data
                    node.children[key] = child
        node.size += extra
        return node

    def _merge_sources(self, event: Event, value: Node) -> list[Node]:
        sources = (
            [child for _, _, child in value.children.values()] if isinstance(value.data, list) else [value]
        )
        if not all(isinstance(source.data, dict) for source in sources):
            fix = "write `<<: *anchor` of a mapping"
            raise self._stop("merge", event, "`<<` takes mappings", fix)
        return sources

    def _scalar(self, event: ScalarEvent) -> Any:
        text, tag = event.value, str(event.tag or "")
        if _UNUSABLE.search(text):
            raise self._stop("utf-8", event, "a text holds a NUL or half a character", "remove the escape")
        if not tag.startswith(_TAG) and tag not in {"", "!"}:
            raise self._stop("tag", event, f"the tag {tag[:60]} is not supported", "remove the tag")
        kind = tag.removeprefix(_TAG)
        if kind in {"!", "str"} or (not kind and event.style is not None):
            return text
        value = self._resolved(event, text)
        found = (
            "null"
            if value is None
            else {"bool": "bool", "WrittenInt": "int", "WrittenFloat": "float"}.get(
                type(value).__name__, "str"
            )
        )
        if kind and kind != found and not (kind == "float" and found == "int"):
            raise self._stop("tag", event, f"{text[:60]!r} is no !!{kind[:20]}", "remove the tag")
        return value

    def _resolved(self, event: Event, text: str) -> Any:
        if text in _WORDS:
            return _WORDS[text]
        number: WrittenInt | WrittenFloat
        if _INT.fullmatch(text):
            if len(text) > MAX_DIGITS:
                raise self._stop(
                    "number", event, f"a number has {len(text)} digits", "quote it if it is text"
                )
            base = {"0o": 8, "0x": 16}.get(text[:2], 10)
            number = WrittenInt(text, base)
        elif _FLOAT.fullmatch(text):
            number = WrittenFloat(
                text.replace(".inf", "inf").replace(".nan", "nan").replace(".I", "I").replace(".N", "N")
            )
        else:
            return text
        number.written = text
        return number

    def _spend(self, event: Event, nodes: int, depth: int) -> None:
        self._count += nodes
        if self._count > MAX_NODES:
            message = f"the manifest has more than {MAX_NODES} values, aliases counted as what they repeat"
            raise self._stop("limit", event, message, "make it smaller")
        if depth > MAX_DEPTH:
            raise self._stop(
                "limit", event, f"values are nested deeper than {MAX_DEPTH} levels", "make it flatter"
            )

    def _stop(self, rule: str, event: Event, message: str, fix: str) -> Unreadable:
        return Unreadable(Problem(rule, message, fix, *_start(event), tuple(self._path)))


def _start(event: Event) -> tuple[int, int]:
    return event.start_mark.line + 1, event.start_mark.column + 1

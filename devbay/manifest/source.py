"""The bytes of a manifest to plain data with positions, or to the one thing that makes them unreadable."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from devbay.manifest.diagnostics import Path

MAX_BYTES = 1024 * 1024
MAX_NODES = 10_000
MAX_DEPTH = 50

_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Problem:
    """Something wrong with the text itself. line, column: 1-based."""

    rule: str
    message: str
    fix: str
    line: int = 1
    column: int = 1
    path: Path = ()


class Unreadable(Exception):
    """Nothing can be read; inside this package only, `load` turns it into a diagnostic."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


@dataclass
class Node:
    """Plain data, where its parts stand, how many nodes it has and how many levels."""

    data: Any
    children: dict[str | int, tuple[int, int, Node]] = field(default_factory=dict)
    size: int = 1
    height: int = 1


@dataclass(frozen=True)
class Tree:
    """A document read: its data, its problems (all errors), and where each path of keys stands."""

    root: Node
    problems: tuple[Problem, ...] = ()

    @property
    def data(self) -> Any:
        return self.root.data

    def locate(self, path: Path) -> tuple[int, int]:
        """Line and column of the key or list item, or of the nearest one above it that exists."""
        line, column, node = 1, 1, self.root
        for part in path:
            if part not in node.children:
                break
            line, column, node = node.children[part]
        return line, column


def read(content: bytes | str) -> Tree:
    """The one document in `content`. Raises `Unreadable` where nothing can be read."""
    from ruamel.yaml.error import MarkedYAMLError, YAMLError  # costly, and most calls read no manifest

    from devbay.manifest import composer

    text = _decode(content)
    try:
        return composer.compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        said = ", ".join(str(part) for part in (error.context, error.problem) if part)
        raise Unreadable(_syntax_problem(text, line, column, said)) from None
    except (YAMLError, ValueError, OverflowError) as error:  # escapes out of range, bad directives
        raise Unreadable(Problem("yaml", f"this is no YAML: {error}"[:300], "correct the syntax")) from None


def _decode(content: bytes | str) -> str:
    size = len(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content)
    if size > MAX_BYTES:
        message = f"the file has {size} bytes; at most {MAX_BYTES} are read"
        raise Unreadable(Problem("limit", message, "move data out of the manifest"))
    if isinstance(content, bytes):
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            line, column = _place(content[: error.start].decode("utf-8"))
            message = f"the file is not UTF-8 (byte 0x{content[error.start]:02x})"
            raise Unreadable(Problem("utf-8", message, "save it as UTF-8", line, column)) from None
    else:
        text = content
    if bad := _UNPRINTABLE.search(text):
        line, column = _place(text[: bad.start()])
        message = f"the file holds the character U+{ord(bad[0]):04X}"
        raise Unreadable(Problem("utf-8", message, "remove it", line, column))
    return text


def _place(before: str) -> tuple[int, int]:
    lines = re.split("\r\n|[\n\r\x85\u2028\u2029]", before)
    return len(lines), len(lines[-1]) + 1


def _syntax_problem(text: str, line: int, column: int, said: str) -> Problem:
    lines = re.split("\r\n|[\n\r\x85\u2028\u2029]", text)
    for at in (line, line - 1):
        indent = re.match(r"[ \t]*", lines[at - 1] if 0 < at <= len(lines) else "")
        if indent and "\t" in indent[0]:
            place = indent[0].index("\t") + 1
            return Problem("tab", "a tab is used for indentation", "indent with spaces", at, place)
    return Problem(
        "yaml", f"this is no YAML: {said}"[:300], "correct the syntax; quote text that holds `: ` or ` #`, "
        "or starts with one of `{[&*!|>%@`", line, column,
    )  # fmt: skip

"""The YAML of TAP's diagnostic blocks, read leniently: what producers write is often no YAML at all.

Vitest leaves the lines of a quoted text unindented, node quotes with backticks. Only what diagnostics use is
read: nested mappings, block and quoted scalars.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_ENTRY = re.compile(
    r"""^(?P<indent>\s*)(?P<key>'(?:[^']|'')*'|"(?:[^"\\]|\\.)*"|[^\s'"#:-][^:]*?|-[^\s:][^:]*?):(?:\s+(?P<value>.*))?$"""
)
_BLOCK = re.compile(r"^(?P<style>[|>])(?P<digit>\d?)[+-]?(?P<second>\d?)\s*$")


def fields(lines: Sequence[str]) -> dict[str, str]:
    """Scalars by their key, those of nested mappings as `outer.inner`. Bounded by the lines given."""
    found: dict[str, str] = {}
    outer: list[tuple[int, str]] = []
    at = 0
    while at < len(lines):
        match = _ENTRY.match(lines[at])
        at += 1
        if match is None:
            continue
        indent, value = len(match["indent"]), (match["value"] or "").strip()
        while outer and outer[-1][0] >= indent:
            outer.pop()
        key = ".".join([*(name for _, name in outer), _unquoted(match["key"])])[:300]
        if block := _BLOCK.match(value):
            text, at = _block(lines, at, indent, block)
        elif value[:1] in ("'", '"', "`"):
            text, at = _quoted(lines, at, value)
        elif value:
            text = "" if value == "~" else value
        else:
            outer = [*outer, (indent, _unquoted(match["key"]))][-20:]
            continue
        found.setdefault(key, text)
    return found


def _block(lines: Sequence[str], at: int, indent: int, block: re.Match[str]) -> tuple[str, int]:
    """A block scalar and the index behind it."""
    kept: list[str] = []
    while at < len(lines) and (not lines[at].strip() or len(lines[at]) - len(lines[at].lstrip()) > indent):
        kept.append(lines[at])
        at += 1
    digit = block["digit"] or block["second"]
    first = next((line for line in kept if line.strip()), "")
    inner = indent + int(digit) if digit else len(first) - len(first.lstrip())
    text = [line[inner:] if not line[:inner].strip() else line.lstrip() for line in kept]
    return (" " if block["style"] == ">" else "\n").join(text).rstrip(), at


def _quoted(lines: Sequence[str], at: int, value: str) -> tuple[str, int]:
    """A quoted scalar, over several lines if it must be; an unclosed one is its first line."""
    quote, text, end = value[0], value, at
    while not _closed(text, quote) and end < len(lines):
        text += "\n" + lines[end]
        end += 1
    if not _closed(text, quote):
        return value[1:], at
    return _unquoted(text.strip()), end


def _closed(text: str, quote: str) -> bool:
    body = text.rstrip()[1:]
    if not body.endswith(quote):
        return False
    if quote == '"':
        slashes = len(body[:-1]) - len(body[:-1].rstrip("\\"))
        return slashes % 2 == 0
    return quote == "`" or (len(body) - len(body.rstrip("'"))) % 2 == 1


def _unquoted(text: str) -> str:
    if len(text) < 2 or text[0] != text[-1] or text[0] not in "'\"`":
        return text.strip()
    inner = text[1:-1]
    if text[0] == "'":
        return inner.replace("''", "'")
    if text[0] == '"':
        return re.sub(r'\\(["\\n/])', lambda match: "\n" if match[1] == "n" else match[1], inner)
    return inner

"""A forgiving, streaming reader of XML as test runners write it (decision 40).

It expands no entity but the five of XML and character references, stops at a document type declaration, keeps
what came before a cut, and holds no more than one tag and one piece of text at a time. Documents that follow
each other, text around them, illegal characters and end tags that do not match are taken as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

MAX_TAG = 4 * 1024 * 1024
"""A longer tag ends the reading: no runner writes one, and it would have to be held in memory."""

TokenKind = Literal["start", "end", "text", "doctype", "cut"]

_NAME = re.compile(r"[A-Za-z_:][\w:.\-]*")
_ATTRIBUTE = re.compile(r"""([A-Za-z_:][\w:.\-]*)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
_LONELY = re.compile(r"<+?(?=<?[^<]|$)|<")
_TAG_MARK = re.compile(r"[\"'>]")
_REFERENCE = re.compile(r"&(?:#[xX]([0-9A-Fa-f]{1,8})|#([0-9]{1,10})|(lt|gt|amp|quot|apos));")
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}


@dataclass(frozen=True, slots=True)
class Token:
    """start: name and attributes (`closed` for `<x/>`); end: name; text: text; doctype and cut end it all."""

    kind: TokenKind
    name: str = ""
    text: str = ""
    attributes: dict[str, str] = field(default_factory=dict)
    closed: bool = False


def unescape(text: str) -> str:
    """Character references and the five entities of XML; anything else that starts with `&` stays."""
    return _REFERENCE.sub(_referenced, text) if "&" in text else text


def _referenced(match: re.Match[str]) -> str:
    if match[3]:
        return _NAMED[match[3]]
    number = int(match[1], 16) if match[1] else int(match[2])
    if number == 0 or number > 0x10FFFF or 0xD800 <= number <= 0xDFFF:
        return "\ufffd"
    return chr(number)


class _Buffer:
    """The unread text: `text` from `at` on."""

    def __init__(self, pieces: Iterable[str]) -> None:
        self._pieces = iter(pieces)
        self.text = ""
        self.at = 0

    def more(self) -> bool:
        """Read on; False at the end. What was taken is dropped, so `at` becomes 0."""
        for piece in self._pieces:
            if piece:
                self.text = self.text[self.at :] + piece
                self.at = 0
                return True
        return False

    def left(self) -> int:
        return len(self.text) - self.at

    def take(self, end: int) -> str:
        """The text up to index `end`."""
        taken, self.at = self.text[self.at : end], end
        return taken


def tokens(pieces: Iterable[str]) -> Iterator[Token]:
    """The tokens of a text that comes in pieces. `cut` is the last one if the text ends inside a tag."""
    buffer = _Buffer(pieces)
    while buffer.left() or buffer.more():
        if buffer.text[buffer.at] != "<":
            yield from _text(buffer)
            continue
        while buffer.left() < 9 and buffer.more():
            pass
        text, at = buffer.text, buffer.at
        if text.startswith("<![CDATA[", at):
            yield from _until(buffer, 9, "]]>", keep=True)
        elif text.startswith("<!--", at):
            yield from _until(buffer, 4, "-->", keep=False)
        elif text.startswith("<?", at):
            yield from _until(buffer, 2, "?>", keep=False)
        elif text[at : at + 9].upper() == "<!DOCTYPE":
            yield Token("doctype")
            return
        elif _NAME.match(text, at + 1) or text.startswith("</", at):
            tag = _tag(buffer)
            if tag is None:
                yield Token("cut")
                return
            yield tag
        elif buffer.left() == 1:
            yield Token("cut")
            return
        else:
            lonely = _LONELY.match(text, at)
            yield Token("text", text=buffer.take(lonely.end() if lonely else at + 1))


def _text(buffer: _Buffer) -> Iterator[Token]:
    """Text up to the next tag, or as much as is there (without cutting a reference in two)."""
    end = buffer.text.find("<", buffer.at)
    if end < 0:
        end = len(buffer.text)
        half = buffer.text.rfind("&", max(buffer.at, end - 12))
        if half >= 0 and ";" not in buffer.text[half:]:
            if half == buffer.at and buffer.more():
                return
            end = half if half > buffer.at else end
    yield Token("text", text=unescape(buffer.take(end)))


def _until(buffer: _Buffer, skip: int, mark: str, *, keep: bool) -> Iterator[Token]:
    """Pass on (or drop) everything up to `mark`, after `skip` characters; `cut` if the text ends first."""
    buffer.at += skip
    while True:
        end = buffer.text.find(mark, buffer.at)
        found = end >= 0
        taken = buffer.take(end if found else max(buffer.at, len(buffer.text) - len(mark) + 1))
        if keep and taken:
            yield Token("text", text=taken)
        if found:
            buffer.at += len(mark)
            return
        if not buffer.more():
            if keep and buffer.left():
                yield Token("text", text=buffer.take(len(buffer.text)))
            buffer.at = len(buffer.text)
            yield Token("cut")
            return


def _tag(buffer: _Buffer) -> Token | None:
    """The tag at the start of the buffer; None if the text ends before it does."""
    searched, quote = 1, ""  # counted from the start of the tag: `more` moves it
    while True:
        start = buffer.at + searched
        if quote:
            found = buffer.text.find(quote, start)
            if found >= 0:
                searched, quote = found + 1 - buffer.at, ""
                continue
        elif match := _TAG_MARK.search(buffer.text, start):
            searched = match.end() - buffer.at
            if match[0] == ">":
                return _parsed_tag(buffer.take(match.end()))
            quote = match[0]
            continue
        searched = buffer.left()
        if searched > MAX_TAG or not buffer.more():
            return None


def _parsed_tag(tag: str) -> Token:
    name = _NAME.match(tag, 2 if tag[1] == "/" else 1)
    local = name[0].rpartition(":")[2] if name else ""
    closed = tag.endswith("/>")
    if tag[1] == "/":
        return Token("end", local)
    attributes: dict[str, str] = {}
    for match in _ATTRIBUTE.finditer(tag, name.end() if name else 1, len(tag) - (2 if closed else 1)):
        value = match[2] if match[2] is not None else match[3] if match[3] is not None else match[4]
        attributes.setdefault(match[1], unescape(value))
    return Token("start", local, attributes=attributes, closed=closed)

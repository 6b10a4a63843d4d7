"""Where a report is read from: bytes in chunks, from memory or from a regular file opened with care.

A report's path is written by code that devbay does not trust: nothing but a regular file is opened, opening
never waits (a FIFO), and below a worktree no link is followed.
"""

from __future__ import annotations

import codecs
import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from devbay.errors import DevbayError

CHUNK = 256 * 1024
SAMPLE = 64 * 1024
MAX_LINE = 64 * 1024

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DECLARED = re.compile(rb"""<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9._-]{1,40})["']""")
# Codecs of the standard library that are not text encodings (zip, hex, idna, ...) stay out of reach.
_TEXT = re.compile(
    r"(utf[-_]?8|utf[-_]?16(le|be)?|utf[-_]?32(le|be)?|(us[-_]?)?ascii|latin[-_]?1|iso[-_]?8859[-_]?\d+"
    r"|(windows[-_]?|cp)\d{3,4}|gb\w{0,6}|big5|shift[-_]?jis|euc[-_]?(jp|kr)|koi8[-_]?[ru]|mac[-_]?roman)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Source:
    """Bytes with a name. label: a path as the caller gave it, `stdout` or `output`.

    With `beneath`, `path` lies below that folder and no link on the way is followed. `then` is read after it.
    """

    label: str
    data: bytes | None = None
    path: Path | None = None
    beneath: Path | None = None
    then: Source | None = None

    def chunks(self) -> Iterator[bytes]:
        """The bytes in order, `CHUNK` at a time. Raises `report_missing` or `bad_report`."""
        yield from self._own_chunks()
        if self.then is not None:
            yield b"\n"
            yield from self.then.chunks()

    def _own_chunks(self) -> Iterator[bytes]:
        if self.path is None:
            data = self.data or b""
            for start in range(0, len(data), CHUNK):
                yield data[start : start + CHUNK]
            return
        with os.fdopen(_open(self), "rb", buffering=0) as file:
            try:
                while chunk := file.read(CHUNK):
                    yield chunk
            except OSError as error:
                raise _bad(self, str(error)) from error

    def sample(self) -> bytes:
        """The start and, of a longer source, the end: what a format is recognised by."""
        own = self._own_sample()
        return own if self.then is None else own + b"\n" + self.then.sample()

    def _own_sample(self) -> bytes:
        if self.path is None:
            data = self.data or b""
            return data if len(data) <= 2 * SAMPLE else data[:SAMPLE] + b"\n" + data[-SAMPLE:]
        with os.fdopen(_open(self), "rb", buffering=0) as file:
            try:
                size = os.fstat(file.fileno()).st_size
                head = file.read(SAMPLE)
                if size <= SAMPLE:
                    return head
                file.seek(max(SAMPLE, size - SAMPLE))
                return head + b"\n" + file.read(SAMPLE)
            except OSError as error:
                raise _bad(self, str(error)) from error

    def text(self) -> Iterator[str]:
        """The text in pieces; undecodable bytes are replaced, the encoding is the one that the bytes name."""
        decoder: codecs.IncrementalDecoder | None = None
        for chunk in self.chunks():
            if decoder is None:
                decoder = codecs.getincrementaldecoder(encoding(chunk))(errors="replace")
            yield decoder.decode(chunk)
        if decoder is not None and (rest := decoder.decode(b"", final=True)):
            yield rest

    def lines(self) -> Iterator[str]:
        """Lines without their ends; one longer than `MAX_LINE` comes in pieces."""
        rest = ""
        for piece in self.text():
            parts = (rest + piece).split("\n")
            rest = parts.pop()
            for line in parts:
                yield from _pieces(line)
            if len(rest) > MAX_LINE:
                yield from _pieces(rest[:-1])
                rest = rest[-1:]
        if rest:
            yield from _pieces(rest)


def joined(sources: Sequence[Source]) -> Source:
    """Several sources as one, a line break between them; named `output` if there are several."""
    whole: Source | None = None
    for source in reversed(sources):
        whole = replace(source, then=whole)
    if whole is None:
        return Source("output", b"")
    return whole if len(sources) == 1 else replace(whole, label="output")


def encoding(head: bytes) -> str:
    """The text encoding of a document that starts with `head`: byte order mark, XML declaration, UTF-8."""
    for bom, name in _BOMS:
        if head.startswith(bom):
            return name
    if head.startswith(b"<\x00"):
        return "utf-16-le"
    if head.startswith(b"\x00<"):
        return "utf-16-be"
    declared = _DECLARED.search(head[:400])
    if declared is None:
        return "utf-8"
    name = declared[1].decode("ascii")
    # A declaration that was read as single bytes is not UTF-16, whatever it says.
    if not _TEXT.fullmatch(name) or re.match(r"utf[-_]?(16|32)", name, re.IGNORECASE):
        return "utf-8"
    try:
        return codecs.lookup(name).name
    except LookupError:
        return "utf-8"


def _pieces(line: str) -> Iterator[str]:
    line = line.removesuffix("\r")
    if len(line) <= MAX_LINE:
        yield line
        return
    for start in range(0, len(line), MAX_LINE):
        yield line[start : start + MAX_LINE]


def _bad(source: Source, why: str) -> DevbayError:
    return DevbayError(
        "bad_report", f"{source.label} cannot be read as a report: {why}", next="name a readable report file"
    )


def _open(source: Source) -> int:
    """A descriptor of a regular file. Raises `report_missing` or `bad_report`."""
    if source.path is None:
        raise _bad(source, "it is no file")
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        if source.beneath is None:
            descriptor = os.open(source.path, flags)
        else:
            descriptor = _open_beneath(source.beneath, source.path, flags)
    except FileNotFoundError as error:
        raise DevbayError(
            "report_missing", f"there is no report at {source.label}", next="check the report's path"
        ) from error
    except (OSError, ValueError) as error:
        raise _bad(source, getattr(error, "strerror", None) or str(error)) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _bad(source, "it is not a regular file")
    return descriptor


def _open_beneath(root: Path, path: Path, flags: int) -> int:
    """Open `path` component by component from `root`, following no link (not even one made meanwhile)."""
    parts = path.relative_to(root).parts
    if not parts or ".." in parts:
        raise ValueError(f"it is not below {root}")
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts[:-1]:
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(parts[-1], flags | os.O_NOFOLLOW, dir_fd=folder)
    finally:
        os.close(folder)

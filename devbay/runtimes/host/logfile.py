"""Reading what a service printed, from the two files its keeper writes: the last lines, and those to come."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from devbay.jobs import Job
from devbay.runtimes.base import LogEntry
from devbay.runtimes.host.logwriter import LOG, OLDER

BLOCK = 64 * 1024
POLL_S = 0.2
STAMPED = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z) (.*)", re.DOTALL)


def tail(folder: Path, service: str, *, lines: int | None, since: str | None = None) -> list[LogEntry]:
    """The last `lines` entries (None: all), oldest first; with `since` (RFC 3339) only later ones.

    Reads from the end, and no more than it gives back.
    """
    after = _normal(since) if since else ""
    found: list[LogEntry] = []
    with ExitStack() as stack:
        files = [stack.enter_context(file) for file in _open(folder)]
        for entry in islice(_newest_first(files, service), lines):
            if entry.at <= after:
                break
            found.append(entry)
    return found[::-1]


def follow(
    folder: Path, service: str, *, lines: int, job: Job, is_over: Callable[[], bool]
) -> Iterator[LogEntry]:
    """The last `lines` entries and those to come, across rotation; ends when `is_over()`, with its last line.

    Raises `Cancelled`.
    """
    with ExitStack() as stack:
        files = [stack.enter_context(file) for file in _open(folder)]
        yield from list(islice(_newest_first(files, service), lines))[::-1]
        current = files[-1] if files else None
        if current is not None:
            current.seek(_complete(current))
        rest = b""
        while True:
            over = is_over()  # asked first, so that nothing printed before the end is missed
            newer = [stack.enter_context(file) for file in _open(folder, after=current)]
            # Read to its end only now: whatever the keeper put into it before the newer ones is there.
            for file in [current, *newer] if current is not None else newer:
                if file is not current:
                    rest = b""
                while block := file.read(BLOCK):
                    *complete, rest = (rest + block).split(b"\n")
                    yield from filter(None, (_entry(service, raw) for raw in complete))
            if newer:
                current = newer[-1]
            if over:
                return
            job.sleep(POLL_S)


def _open(folder: Path, after: BinaryIO | None = None) -> list[BinaryIO]:
    """The files there are, older first; with `after` those that are newer than that one."""
    while True:
        with ExitStack() as stack:
            found: list[BinaryIO] = []
            for name in LOG, OLDER:  # in this order, so that a rotation in between shows one twice
                try:
                    found.insert(0, stack.enter_context((folder / name).open("rb", buffering=0)))
                except FileNotFoundError:
                    continue
            nodes = [os.fstat(file.fileno()).st_ino for file in found]
            if len(nodes) == 2 and nodes[0] == nodes[1]:
                continue
            known = os.fstat(after.fileno()).st_ino if after is not None else None
            if known in nodes:
                for file in found[: nodes.index(known) + 1]:
                    file.close()
                found = found[nodes.index(known) + 1 :]
            stack.pop_all()
            return found


def _newest_first(files: list[BinaryIO], service: str) -> Iterator[LogEntry]:
    for file in reversed(files):
        rest = b""
        at = _complete(file)
        while at > 0:
            start = max(0, at - BLOCK)
            head, *complete = (os.pread(file.fileno(), at - start, start) + rest).split(b"\n")
            yield from filter(None, (_entry(service, raw) for raw in reversed(complete)))
            rest, at = head, start
        if (entry := _entry(service, rest)) is not None:
            yield entry


def _complete(file: BinaryIO) -> int:
    """The size up to the last end of a line; behind it a line may be being written."""
    at = os.fstat(file.fileno()).st_size
    while at > 0:
        start = max(0, at - BLOCK)
        cut = os.pread(file.fileno(), at - start, start).rfind(b"\n")
        if cut >= 0:
            return start + cut + 1
        at = start
    return 0


def _entry(service: str, raw: bytes) -> LogEntry | None:
    """A line of the file; None for what no keeper wrote whole, such as a line its killing cut short."""
    found = STAMPED.fullmatch(raw)
    if found is None:
        return None
    return LogEntry(service, found[1].decode(), found[2].decode("utf-8", "replace"))


def _normal(moment: str) -> str:
    """RFC 3339 as the files have it: UTC, nine digits."""
    found = re.fullmatch(r"(.+?T[^.Zz+-]+)(?:\.(\d+))?(.*)", moment)
    if found is None:
        raise ValueError(f"no RFC 3339 time: {moment!r}")
    zone = "+00:00" if found[3] in ("", "Z", "z") else found[3]
    when = datetime.fromisoformat(f"{found[1]}{zone}").astimezone(UTC)
    return f"{when:%Y-%m-%dT%H:%M:%S}.{(found[2] or '').ljust(9, '0')[:9]}Z"

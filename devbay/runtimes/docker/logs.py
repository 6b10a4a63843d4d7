"""What a container printed: the last lines, the lines since a moment, and those to come."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from devbay.jobs import Job
from devbay.runtimes.docker.containers import Container
from devbay.runtimes.docker.engine import Engine

LINE_LIMIT = 64 * 1024
"""Bytes kept of one line; the rest of a longer one is dropped."""
GAP = timedelta(milliseconds=50)
"""Less than a container takes to start, more than the last lines of its former run take to be written."""


@dataclass(frozen=True)
class Line:
    """One line of output without its end, ANSI codes kept, invalid UTF-8 replaced.

    at: RFC 3339 UTC with nine digits. stderr: it was written there.
    """

    at: str
    text: str
    stderr: bool = False


@dataclass
class LineReader:
    """Puts messages of the engine's log together to lines.

    Each frame is a message: a timestamp, a space, and up to 16 KiB, ending in a newline where the line
    does. The parts of a longer line each carry a timestamp; the first counts.
    """

    _open: dict[int, tuple[str, bytearray]] = field(default_factory=dict)

    def feed(self, stream: int, message: bytes) -> Line | None:
        """The line that this message ends, if it does."""
        at, _, part = message.partition(b" ")
        ends = part.endswith(b"\n")
        if ends and stream not in self._open:
            return _line(at.decode("ascii", "replace"), part[:-1], stream)
        started, text = self._open.setdefault(stream, (at.decode("ascii", "replace"), bytearray()))
        text += part[: LINE_LIMIT - len(text)]
        if not ends:
            return None
        del self._open[stream]
        return _line(started, bytes(text).removesuffix(b"\n"), stream)

    def rest(self) -> list[Line]:
        """Lines that never ended."""
        left, self._open = self._open, {}
        return [_line(at, bytes(text), stream) for stream, (at, text) in left.items()]


def tail(engine: Engine, container: str, *, lines: int | None = None, since: str | None = None) -> list[Line]:
    """The last `lines` (all if None), oldest first; with `since` (RFC 3339) only later ones. No waiting."""
    return list(_read(engine, container, lines, since, follow=False, job=None))


def follow(
    engine: Engine, container: str, *, job: Job, lines: int | None = 0, since: str | None = None
) -> Iterator[Line]:
    """The same and then every line as it comes, until the container stops. Raises `Cancelled`."""
    return _read(engine, container, lines, since, follow=True, job=job)


def start_of_run(container: Container) -> str | None:
    """The moment after which lines belong to the container's present run; None if it is the first.

    Not `started_at`, which the engine notes after the process may have printed already.
    """
    if not container.finished_at:
        return None
    before, digits = _split(container.finished_at)
    return f"{before + GAP:%Y-%m-%dT%H:%M:%S}.{(before + GAP).microsecond:06d}{digits[6:]}Z"


def _read(
    engine: Engine, container: str, lines: int | None, since: str | None, *, follow: bool, job: Job | None
) -> Iterator[Line]:
    params: dict[str, Any] = {"stdout": "1", "stderr": "1", "timestamps": "1"}
    params["tail"] = "all" if lines is None else str(lines)
    if follow:
        params["follow"] = "1"
    if since is not None:
        params["since"] = epoch(since)
    reader = LineReader()
    path = f"/containers/{container}/logs"
    with engine.stream("GET", path, params=params, doing=f"read the log of {container}", job=job) as stream:
        for number, message in stream.labelled_frames():
            line = reader.feed(number, message)
            if line is not None and (since is None or _order(line.at) > _order(since)):
                yield line
    yield from reader.rest()


def epoch(moment: str) -> str:
    """RFC 3339 as the seconds with nine digits that the engine reads."""
    when, digits = _split(moment)
    return f"{int(when.replace(microsecond=0).timestamp())}.{digits}"


def _split(moment: str) -> tuple[datetime, str]:
    """The moment (to the microsecond), and its fraction of a second in nine digits."""
    found = re.fullmatch(r"(.+?T[^.Zz+-]+)(?:\.(\d+))?(.*)", moment)
    if found is None:
        raise ValueError(f"no RFC 3339 time: {moment!r}")
    digits = (found[2] or "").ljust(9, "0")[:9]
    zone = "+00:00" if found[3] in ("", "Z", "z") else found[3]
    when = datetime.fromisoformat(f"{found[1]}.{digits[:6]}{zone}").astimezone(UTC)
    return when, digits


def _order(moment: str) -> tuple[datetime, str]:
    return _split(moment)


def _line(at: str, text: bytes, stream: int) -> Line:
    return Line(at, text[:LINE_LIMIT].removesuffix(b"\r").decode("utf-8", "replace"), stream == 2)

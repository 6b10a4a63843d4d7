"""Writing a service's output: each line with its time, in two files of bounded size. For the keeper."""

from __future__ import annotations

import os
import time

LOG = "log"
OLDER = "log.1"
LONGEST_LINE = 16 * 1024
"""Bytes of a line that are kept together; a longer one becomes several entries."""
ROTATED_AT = 8 * 1024 * 1024
SECOND = 1_000_000_000


class LogWriter:
    """Takes raw output and appends `<RFC 3339 UTC, nanoseconds> <text>` lines to `<folder>/log`.

    A full or broken disk loses lines, never the service: what was lost is said once there is room again.
    """

    def __init__(self, folder: str, limit: int = ROTATED_AT) -> None:
        self._path = f"{folder}/{LOG}"
        self._older = f"{folder}/{OLDER}"
        self._limit = limit
        self._open_line = b""
        self._lost = 0
        self._handle = -1
        self._size = 0
        self._torn = False
        self._last = self._second = 0
        self._date = b""

    def feed(self, data: bytes) -> None:
        """Write the lines that are complete; the rest waits for its end."""
        data = self._open_line + data
        lines = data.split(b"\n")
        self._open_line = lines.pop()
        while len(self._open_line) >= LONGEST_LINE:
            cut = _character_end(self._open_line, LONGEST_LINE)
            lines.append(self._open_line[:cut])
            self._open_line = self._open_line[cut:]
        self._write(lines)

    def flush(self) -> None:
        """Write a last line that has no end."""
        if self._open_line:
            self._write([self._open_line])
            self._open_line = b""

    def _write(self, lines: list[bytes]) -> None:
        # Each entry has a time of its own, later than the last: readers go on behind a time.
        self._last = max(time.time_ns(), self._last)
        batch: list[bytes] = []
        size = 0
        for line in lines:
            while True:
                cut = len(line) if len(line) <= LONGEST_LINE else _character_end(line, LONGEST_LINE)
                self._last += 1
                if self._last // SECOND != self._second:
                    self._second = self._last // SECOND
                    self._date = timestamp(self._last)[:20].encode()
                text = line[:cut].removesuffix(b"\r")
                batch.append(b"%b%09dZ %b\n" % (self._date, self._last % SECOND, text))
                size += len(batch[-1])
                line = line[cut:]
                if not line:
                    break
            if size >= self._limit // 4:
                self._append(batch)
                batch, size = [], 0
        if batch:
            self._append(batch)

    def _append(self, batch: list[bytes]) -> None:
        data = b"".join(batch)
        try:
            if self._handle < 0:
                self._open()
            if self._size and self._size + len(data) > self._limit:
                self._rotate()
            if self._lost:
                note = f" [devbay lost {self._lost} lines here: they could not be written]\n"
                self._put(batch[0].partition(b" ")[0] + note.encode())
                self._lost = 0
            self._put(data)
        except OSError:
            self._lost += len(batch)

    def _open(self) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._handle = os.open(self._path, flags, 0o600)
        self._size = os.fstat(self._handle).st_size
        # The last keeper may have been killed in the middle of a line.
        self._torn = self._size > 0 and os.pread(self._handle, 1, self._size - 1) != b"\n"

    def _rotate(self) -> None:
        os.replace(self._path, self._older)  # noqa: PTH105 - pathlib costs a keeper 2 MB
        os.close(self._handle)
        self._handle = -1
        self._open()

    def _put(self, data: bytes) -> None:
        if self._torn:
            data = b"\n" + data
        while data:
            written = os.write(self._handle, data)
            self._size += written
            self._torn = data[written - 1 : written] != b"\n"
            data = data[written:]


def timestamp(now: int) -> str:
    """Nanoseconds since 1970 as RFC 3339 in UTC with nine digits."""
    seconds, rest = divmod(now, SECOND)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest:09d}Z"


def _character_end(line: bytes, at: int) -> int:
    """The largest cut of at most `at` bytes that goes through no UTF-8 character."""
    cut = at
    while cut > at - 4 and line[cut : cut + 1] and line[cut] & 0xC0 == 0x80:
        cut -= 1
    return cut if cut > at - 4 else at

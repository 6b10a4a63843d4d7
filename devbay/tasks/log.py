"""A run's output: scrubbed before it is stored, bounded on disk, its end kept in memory."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

MAX_LOG_BYTES = 256 * 1024 * 1024
TAIL_BYTES = 64 * 1024


class StreamScrubber(Protocol):
    """Removes secrets from a stream; may hold back the end of a chunk until the next."""

    def feed(self, chunk: bytes) -> bytes: ...

    def close(self) -> bytes: ...


class RunLog:
    """Takes raw output chunk by chunk. `full`: the log reached its bound and the rest was not stored."""

    def __init__(self, path: Path, scrubber: Callable[[], StreamScrubber]) -> None:
        """`scrubber` is called at the first output: by then all that the run was given is known."""
        self._file = path.open("ab", buffering=0)
        self._make_scrubber = scrubber
        self._scrubber: StreamScrubber | None = None
        self._lock = threading.Lock()
        self._size = path.stat().st_size
        self._tail = b""
        self.full = False

    def write(self, chunk: bytes) -> None:
        with self._lock:
            if self._scrubber is None:
                self._scrubber = self._make_scrubber()
            self._store(self._scrubber.feed(chunk))

    def close(self) -> None:
        with self._lock:
            if self._scrubber is not None:
                self._store(self._scrubber.close())
            self._file.close()

    @property
    def tail(self) -> str:
        """The last 64 KiB as text, starting at a whole line if there is one."""
        with self._lock:
            data = self._tail
        if len(data) >= TAIL_BYTES:
            data = data.split(b"\n", 1)[-1]
        return data.decode("utf-8", "replace")

    def _store(self, clean: bytes) -> None:
        if not clean:
            return
        self._tail = (self._tail + clean)[-TAIL_BYTES:]
        room = MAX_LOG_BYTES - self._size
        if len(clean) > room:
            self.full = True
            clean = clean[: max(room, 0)]
        self._file.write(clean)
        self._size += len(clean)

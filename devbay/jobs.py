"""A job: one piece of work somebody waits for, with progress out and cancellation in.

The engine is synchronous and runs in threads; a job is how a thread hears that its caller left.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from devbay.errors import Cancelled

Progress = Callable[[str, float | None], None]


class Job:
    """Cancellation and progress for one request.

    `on_progress(message, fraction)` is called from worker threads; fraction is 0-1 or None.
    """

    def __init__(self, on_progress: Progress | None = None) -> None:
        self._on_progress = on_progress
        self._cancelled = threading.Event()
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], None]] = []

    @property
    def cancelled(self) -> bool:
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """Mark the job cancelled and call what was registered with `when_cancelled`, once."""
        with self._lock:
            if self._cancelled.is_set():
                return
            self._cancelled.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def check(self) -> None:
        """Raise `Cancelled` if the job was cancelled."""
        if self._cancelled.is_set():
            raise Cancelled

    def sleep(self, seconds: float) -> None:
        """Wait; raise `Cancelled` as soon as the job is cancelled."""
        if self._cancelled.wait(seconds):
            raise Cancelled

    def progress(self, message: str, fraction: float | None = None) -> None:
        """Tell the caller what is being done; never raises because of a slow caller."""
        if self._on_progress is not None:
            self._on_progress(message, fraction)

    @contextmanager
    def when_cancelled(self, callback: Callable[[], None]) -> Iterator[None]:
        """Call `callback` (from the cancelling thread) if the job is cancelled inside the block."""
        with self._lock:
            if not self._cancelled.is_set():
                self._callbacks.append(callback)
                registered = True
            else:
                registered = False
        if not registered:
            callback()
        try:
            yield
        finally:
            with self._lock:
                if callback in self._callbacks:
                    self._callbacks.remove(callback)

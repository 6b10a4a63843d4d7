"""What a keeper waits for: file handles, moments and signals, without a thread. Standard library only."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` adds an enum's 0.9 MB to every keeper
import os
import select
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Action = Callable[[], None]


class Loop:
    """Calls actions when a handle can be read, a moment has come or a signal arrived, until it is over."""

    def __init__(self) -> None:
        self.over = False
        self._poll = select.poll()
        self._readers: dict[int, Action] = {}
        self._moments: dict[str, tuple[float, Action]] = {}
        self._signals: dict[int, Action] = {}
        reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK) if hasattr(os, "pipe2") else _pipe()
        _signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        self.when_readable(reader, lambda: self._on_signals(reader))

    def when_readable(self, handle: int, action: Action) -> None:
        self._readers[handle] = action
        self._poll.register(handle, select.POLLIN)

    def forget(self, handle: int) -> None:
        if self._readers.pop(handle, None) is not None:
            self._poll.unregister(handle)

    def after(self, name: str, seconds: float, action: Action) -> None:
        """Do it once; a second moment of the same name replaces the first."""
        self._moments[name] = (time.monotonic() + seconds, action)

    def cancel(self, name: str) -> None:
        self._moments.pop(name, None)

    def on_signal(self, number: int, action: Action) -> None:
        self._signals[number] = action
        _signal.signal(number, _nothing)

    def run(self) -> None:
        while not self.over:
            now = time.monotonic()
            due = [name for name, (at, _) in self._moments.items() if at <= now]
            for name in due:
                if name in self._moments:  # an earlier action may have cancelled it
                    self._moments.pop(name)[1]()
            if due:
                continue
            first = min((at for at, _ in self._moments.values()), default=None)
            # Rounded up, so that no moment is waited for by polling again and again.
            wait = None if first is None else max(0, int((first - now) * 1000) + 1)
            for handle, _ in self._poll.poll(wait):
                if handle in self._readers and not self.over:
                    self._readers[handle]()

    def _on_signals(self, reader: int) -> None:
        for number in sorted(set(os.read(reader, 4096))):
            if number in self._signals:
                self._signals[number]()


def _nothing(number: int, frame: object) -> None:
    """A handler that leaves the work to the loop, which the wake-up handle ends the sleep of."""


def _pipe() -> tuple[int, int]:
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    return reader, writer

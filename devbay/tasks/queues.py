"""Queues: runs that would write the same report file in a worktree go one after another."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from devbay.jobs import Job


class Queues:
    """First come, first served, per key."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._waiting: dict[tuple[str, str], list[str]] = defaultdict(list)

    @contextmanager
    def turn(
        self, key: tuple[str, str], run: str, job: Job, on_position: Callable[[int], None]
    ) -> Iterator[None]:
        """Wait for the run's turn; `on_position(n)` says how many are before it, 0 when it is its turn."""

        def wake() -> None:
            with self._condition:
                self._condition.notify_all()

        with self._condition:
            self._waiting[key].append(run)
        try:
            with job.when_cancelled(wake):
                shown = -1
                while True:
                    with self._condition:
                        position = self._waiting[key].index(run)
                        # looked at under the lock that `wake` takes, so that no cancellation is missed
                        if position == shown and position > 0 and not job.cancelled:
                            self._condition.wait()
                            position = self._waiting[key].index(run)
                    job.check()
                    if position != shown:
                        on_position(position)
                        shown = position
                    if position == 0:
                        break
            yield
        finally:
            with self._condition:
                self._waiting[key].remove(run)
                if not self._waiting[key]:
                    del self._waiting[key]
                self._condition.notify_all()

"""Background work of the daemon: a request starts it, waits for a while, and may leave it going."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from devbay.errors import Cancelled
from devbay.jobs import Job

T = TypeVar("T")


class Work(Generic[T]):
    """One piece of work in a thread of its own, with its own job; watchers get its progress."""

    def __init__(self, name: str, body: Callable[[Job], T]) -> None:
        self.name = name
        self.job = Job(self._broadcast)
        self.step = ""
        self._body = body
        self._over = threading.Condition()
        self._finished = False
        self._watchers: dict[int, Job] = {}
        self._ids = itertools.count()
        self._result: T | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"work-{name}", daemon=True)

    def start(self) -> Work[T]:
        self._thread.start()
        return self

    @property
    def finished(self) -> bool:
        return self._finished

    def result(self) -> T:
        """The result once finished; raises what the work raised."""
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]  # set whenever _error is not

    def wait(self, seconds: float | None, job: Job) -> bool:
        """Wait for the end at most `seconds`; True if it is over. Raises `Cancelled` if `job` is cancelled.

        The work itself goes on: cancelling it is the caller's decision.
        """
        watcher = next(self._ids)

        def wake() -> None:
            with self._over:
                self._over.notify_all()

        with self._over:
            self._watchers[watcher] = job
        try:
            with job.when_cancelled(wake), self._over:
                self._over.wait_for(lambda: self._finished or job.cancelled, seconds)
            if not self._finished:
                job.check()
            return self._finished
        finally:
            with self._over:
                del self._watchers[watcher]

    def wait_or_cancel(self, seconds: float | None, job: Job) -> bool:
        """As `wait`, for the request that alone wants this work: its cancellation cancels the work."""
        try:
            return self.wait(seconds, job)
        except Cancelled:
            self.job.cancel()
            self.wait(None, Job())
            raise

    def _run(self) -> None:
        try:
            self._result = self._body(self.job)
        except BaseException as error:  # noqa: BLE001  # handed to whoever asks for the result
            self._error = error
        with self._over:
            self._finished = True
            self._over.notify_all()

    def _broadcast(self, message: str, fraction: float | None) -> None:
        with self._over:
            self.step = message
            watchers = list(self._watchers.values())
        for job in watchers:
            job.progress(message, fraction)

"""One lock per bay: changes exclude each other; runs are counted, and what would disturb them refuses."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from devbay.errors import WORK_FAILED, DevbayError
from devbay.jobs import Job

DISTURBING = frozenset({"create", "cool", "freeze", "destroy"})
"""Changes during which no run may begin."""


class BayLocks:
    """`changing` is held while a bay is being changed; `active runs` hold it shared (decision 17)."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._changing: dict[str, str] = {}
        self._runs: dict[str, set[str]] = defaultdict(set)
        self._users: dict[str, set[str]] = defaultdict(set)

    def change_in_progress(self, bay: str) -> str | None:
        """What is being done to the bay now (a verb), or None."""
        with self._condition:
            return self._changing.get(bay)

    def active_runs(self, bay: str) -> list[str]:
        with self._condition:
            return sorted(self._runs[bay])

    def any_active(self) -> bool:
        with self._condition:
            return bool(self._changing) or any(self._runs.values())

    @contextmanager
    def change(self, bay: str, verb: str, job: Job) -> Iterator[None]:
        """Hold the bay for a change; waits for another change to end, or until the job is cancelled."""
        self._wait(lambda: bay not in self._changing, job)
        # _wait returns holding nothing; claim under the lock, and wait again if another was faster
        while not self._claim(bay, verb):
            self._wait(lambda: bay not in self._changing, job)
        try:
            yield
        finally:
            with self._condition:
                del self._changing[bay]
                self._condition.notify_all()

    def refuse_during_runs(self, bay: str, verb: str) -> None:
        """Raise `busy` with the ids of the runs that are active in the bay."""
        runs = self.active_runs(bay)
        if runs:
            raise DevbayError(
                "busy",
                f"cannot {verb} while runs are active: {', '.join(runs)}",
                next="wait for them with bay_run_result, or pass force to cancel them first",
                exit_code=WORK_FAILED,
                runs=runs,
            )

    def wait_for_runs(self, bay: str, job: Job) -> None:
        """Wait until no run is active."""
        self._wait(lambda: not self._runs[bay], job)

    def begin_use(self, bay: str, run: str) -> None:
        """The run's services are up: from now on to its end replacing one would disturb it."""
        with self._condition:
            self._users[bay].add(run)

    def in_use(self, bay: str) -> list[str]:
        """Runs that use services of the bay now."""
        with self._condition:
            return sorted(self._users[bay])

    def wait_until_unused(self, bay: str, job: Job) -> None:
        self._wait(lambda: not self._users[bay], job)

    @contextmanager
    def run(self, bay: str, run: str, job: Job) -> Iterator[None]:
        """Count a run as active in the bay, once no change that would disturb it is going on."""

        def enter() -> bool:
            if self._changing.get(bay) in DISTURBING:
                return False
            self._runs[bay].add(run)
            return True

        self._wait(enter, job)
        try:
            yield
        finally:
            with self._condition:
                self._runs[bay].discard(run)
                self._users[bay].discard(run)
                if not self._runs[bay]:
                    del self._runs[bay]
                self._condition.notify_all()

    def _claim(self, bay: str, verb: str) -> bool:
        with self._condition:
            if bay in self._changing:
                return False
            self._changing[bay] = verb
            return True

    def _wait(self, ready: Callable[[], bool], job: Job) -> None:
        def wake() -> None:
            with self._condition:
                self._condition.notify_all()

        with job.when_cancelled(wake), self._condition:
            while not ready():
                job.check()
                self._condition.wait()

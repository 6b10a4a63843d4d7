"""Verifications of manifests: begun by a request, and waited for by it or by the next one."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from devbay.bays.parts import Bay
from devbay.bays.verbs import Caller
from devbay.detect.answers import Verification
from devbay.detect.verify import unstamped
from devbay.errors import Cancelled, DevbayError
from devbay.imports import load
from devbay.jobs import Job
from devbay.store import BayRecord
from devbay.works import Work
from devbay.worktrees import Repository

logger = logging.getLogger(__name__)


class Key(NamedTuple):
    """What makes two calls ask for the same: the checkout, its commit, and the manifest without its stamp."""

    repository: str
    toplevel: Path
    commit: str
    text: str


@dataclass(frozen=True)
class Verified:
    """What came of it. text: the manifest as verified, repaired and stamped; as given where it was not."""

    text: str
    verification: Verification

    @property
    def ok(self) -> bool:
        return self.verification.outcome == "verified"


class Verifications:
    """Verifications of this daemon. One lives on when its request is answered; the same call waits for it.

    One that is waited for ends when the last call that waits is cancelled.
    """

    def __init__(self, core: Any) -> None:
        self._core = core
        self._lock = threading.Lock()
        self._works: dict[Key, Work[Verified]] = {}
        self._waiting: Counter[Key] = Counter()

    def going(self) -> list[str]:
        """Names of those that a restart would interrupt."""
        return [work.name for work in list(self._works.values()) if not work.finished]

    def verify(self, caller: Caller, repository: Repository, text: str, *, wait_s: float) -> Verified:
        """The outcome, or `running` after `wait_s`."""
        key = Key(repository.id, repository.toplevel, _head(repository), unstamped(text))
        with self._lock:
            work = self._works.get(key)
            if work is None:
                self._forget_old(repository.id)
                attempt = load("devbay.tools.attempt").Attempt(self._core, caller, repository, key.text)
                work = Work(f"verify-{repository.toplevel.name}", attempt.perform)
                self._works[key] = work
                work.start()
            self._waiting[key] += 1
        try:
            over = work.wait(wait_s, caller.job)
        except Cancelled:
            if self._waiting[key] == 1:
                work.job.cancel()
                work.wait(None, Job())
                self._forget(key, work)
            raise
        finally:
            with self._lock:
                self._waiting[key] -= 1
                if not self._waiting[key]:
                    del self._waiting[key]
        if not over:
            running = Verification(outcome="running", reason=work.step or "making a throwaway bay")
            return Verified(text, running)
        self._forget(key, work)
        return work.result()

    def _forget(self, key: Key, work: Work[Verified]) -> None:
        with self._lock:
            if self._works.get(key) is work:
                del self._works[key]

    def _forget_old(self, repository: str) -> None:
        """Results that nobody asked for again; the lock is held."""
        self._works = {
            key: work
            for key, work in self._works.items()
            if key.repository != repository or not work.finished
        }


def _head(repository: Repository) -> str:
    """The commit that a bay would be made of; empty where there is none, which making it then says."""
    try:
        return repository.head_commit()
    except DevbayError:
        return ""


def remove(core: Any, record: BayRecord, env: Mapping[str, str]) -> str | None:
    """Remove a throwaway bay whatever its request came to; says what is left if it cannot be."""
    found = core.parts.store.bay(record.id)
    if found is None:
        return None
    try:
        caller = Caller(Job(), Path(found.worktree), env)
        core.bays.destroy(caller, Bay(core.parts, found, env), force=True, dry=False)
    except DevbayError as error:
        logger.warning("removing %s: %s", record.name, error.message)
        return f"the throwaway bay is left: {error.message}; devbay rm {record.name} --force"
    return None

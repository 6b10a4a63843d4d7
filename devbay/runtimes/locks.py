"""Locks by key: between the threads of one daemon, and between processes through a locked file."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from devbay.home import private_dir
from devbay.jobs import Job

POLL_S = 0.05


class KeyedLocks:
    """One lock per key between threads; a waiter leaves as soon as its job is cancelled."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._locks: dict[str, tuple[threading.Lock, int]] = {}

    @contextmanager
    def hold(self, key: str, job: Job) -> Iterator[None]:
        with self._guard:
            lock, users = self._locks.get(key, (threading.Lock(), 0))
            self._locks[key] = (lock, users + 1)
        try:
            while not lock.acquire(timeout=POLL_S):
                job.check()
            try:
                yield
            finally:
                lock.release()
        finally:
            with self._guard:
                lock, users = self._locks.pop(key)
                if users > 1:
                    self._locks[key] = (lock, users - 1)


@contextmanager
def file_lock(folder: Path, key: str, job: Job) -> Iterator[None]:
    """Hold `<folder>/<key>.lock` alone among all threads and processes.

    The kernel gives it up when its holder dies, so a kill -9 leaves no lock behind. The file stays: removing
    it would let two holders lock two files of one name.
    """
    with _opened(folder, key) as descriptor:
        while not _try(descriptor):
            job.sleep(POLL_S)
        yield


@contextmanager
def try_file_lock(folder: Path, key: str) -> Iterator[bool]:
    """The same without waiting; yields whether the lock is held."""
    with _opened(folder, key) as descriptor:
        yield _try(descriptor)


@contextmanager
def _opened(folder: Path, key: str) -> Iterator[int]:
    descriptor = os.open(private_dir(folder) / f"{key}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True

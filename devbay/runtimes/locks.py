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
def file_lock(folder: Path, key: str, job: Job, *, shared: bool = False) -> Iterator[None]:
    """Hold `<folder>/<key>.lock` alone among all threads and processes, or with others that share it.

    The kernel gives it up when its holder dies, so a kill -9 leaves no lock behind. The file stays until
    `remove_lock`.
    """
    while True:
        with _opened(folder, key) as descriptor:
            while not _try(descriptor, shared=shared):
                job.sleep(POLL_S)
            if _is_at(folder, key, descriptor):
                yield
                return


@contextmanager
def try_file_lock(folder: Path, key: str) -> Iterator[bool]:
    """The same without waiting; yields whether the lock is held."""
    with _opened(folder, key) as descriptor:
        yield _try(descriptor) and _is_at(folder, key, descriptor)


def remove_lock(folder: Path, key: str) -> None:
    """Remove the file of a lock that the caller holds alone; who waits for it takes a new one."""
    (folder / f"{key}.lock").unlink()


@contextmanager
def _opened(folder: Path, key: str) -> Iterator[int]:
    descriptor = os.open(private_dir(folder) / f"{key}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _try(descriptor: int, *, shared: bool = False) -> bool:
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(folder: Path, key: str, descriptor: int) -> bool:
    """Whether the locked file still has its name: two files of one name would be two locks."""
    try:
        return os.path.samestat((folder / f"{key}.lock").stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False

"""Shared memory that dead services leave, removed by real keepers."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from pathlib import Path

import pytest

from devbay.jobs import Job
from devbay.runtimes.host.ipc import SHM
from tests.runtimes.host.conftest import Kept, eventually

pytestmark = pytest.mark.skipif(not Path("/proc/sysvipc").is_dir(), reason="no System V objects here")

MAKER = """
import ctypes, mmap, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
segment = libc.shmget(0, 4096, 0o1600)
semaphore = libc.semget(0, 1, 0o1600)
queue = libc.msgget(0, 0o1600)
libc.msgsnd(queue, b"\\1" + b"\\0" * 15, 8, 0)
libc.shmat.restype = ctypes.c_void_p
libc.shmat(segment, None, 0)
class Operation(ctypes.Structure):
    _fields_ = [("number", ctypes.c_ushort), ("value", ctypes.c_short), ("flags", ctypes.c_short)]
libc.semop(semaphore, ctypes.byref(Operation(0, 1, 0)), 1)
for path in sys.argv[1:]:
    with open(path, "a+b") as file:
        file.truncate(4096)
        kept = mmap.mmap(file.fileno(), 4096)
        globals()[path] = kept
if os.fork():  # one lives on when the other crashes
    print("made", segment, semaphore, queue, flush=True)
time.sleep(60)
"""


def numbers(table: str, name: str) -> set[int]:
    head, *lines = Path(f"/proc/sysvipc/{table}").read_text().splitlines()
    at = head.split().index(name)
    return {int(line.split()[at]) for line in lines}


@pytest.mark.parametrize("end", ["stop", "crash"])
def test_what_a_service_made_is_removed_and_what_was_there_stays(kept: Kept, end: str) -> None:
    own, older = Path(f"{SHM}/devbay-{kept.home}-own"), Path(f"{SHM}/devbay-{kept.home}-older")
    libc = ctypes.CDLL(None)
    foreign = libc.shmget(0, 4096, 0o1600)
    older.write_bytes(b"mine")
    try:
        kept.start("", argv=(sys.executable, "-c", MAKER, str(own), str(older)))
        eventually(lambda: "made" in kept.log)
        segment, semaphore, queue = map(int, kept.log.split()[-3:])
        assert segment in numbers("shm", "shmid") and semaphore in numbers("sem", "semid")
        assert queue in numbers("msg", "msqid")
        if end == "stop":
            kept.stop()
        else:
            os.kill(kept.state.pid or 0, signal.SIGKILL)
            kept.keepers.wait(kept.folder, kept.socket, Job())
        assert segment not in numbers("shm", "shmid") and semaphore not in numbers("sem", "semid")
        assert queue not in numbers("msg", "msqid")
        assert not own.exists()
        assert older.exists() and foreign in numbers("shm", "shmid")
    finally:
        libc.shmctl(foreign, 0, None)
        older.unlink()
        own.unlink(missing_ok=True)

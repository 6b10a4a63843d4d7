"""What a killed Postgres leaves: 56 bytes of the kernel's shared memory, and a lock with its process id."""

from __future__ import annotations

import ctypes
from pathlib import Path

IPC_RMID = 0  # the same number on Linux and macOS
TABLE = Path("/proc/sysvipc/shm")


def remove_left_segment(data: Path) -> bool:
    """Remove the segment that `postmaster.pid` names (line 7: key and id); False if there is none to remove.

    Only one that nobody is attached to, of the data directory's user and with the key in that file: ids are
    given again. Without the table of /proc (macOS) the key alone must lead to the same id.
    """
    try:
        lines = (data / "postmaster.pid").read_text().splitlines()
        key, segment = (int(word) for word in lines[6].split())
        user = data.stat().st_uid
    except (OSError, IndexError, ValueError):
        return False  # no server ran here, or it ended and removed its segment
    libc = ctypes.CDLL(None, use_errno=True)
    abandoned = _abandoned(key, segment, user) if TABLE.exists() else libc.shmget(key, 0, 0) == segment
    return abandoned and bool(libc.shmctl(segment, IPC_RMID, None) == 0)


def remove_left_lock(data: Path) -> bool:
    """Remove a `postmaster.pid` whose process is another program by now; False if there is none to remove.

    Postgres itself takes every process of its user for a server that still runs, and does not start
    (CreateLockFile in its miscinit.c). A server of this data works in it; without /proc the file stays.
    """
    lock = data / "postmaster.pid"
    try:
        pid = int(lock.read_text().splitlines()[0])
        at = Path(f"/proc/{pid}/cwd").readlink()
    except (OSError, IndexError, ValueError):
        return False  # no lock, or one of a process that is gone or another user's: Postgres replaces it
    if at == data.resolve():
        return False
    lock.unlink()
    return True


def _abandoned(key: int, segment: int, user: int) -> bool:
    """By /proc/sysvipc/shm: key, shmid, perms, size, cpid, lpid, nattch, uid, ... (proc(5))."""
    for line in TABLE.read_text().splitlines()[1:]:
        fields = [int(word) for word in line.split()[:8]]
        if fields[0] & 0xFFFFFFFF == key & 0xFFFFFFFF and fields[1] == segment:
            return fields[6] == 0 and fields[7] == user
    return False

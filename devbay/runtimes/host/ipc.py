"""What outlives a process in memory: System V segments, semaphores, queues; files of /dev/shm.

Noted while the processes of a service live, removed when they are dead and nobody else uses it. Sources:
proc(5) (`maps`, `sysvipc`), shmctl(2), semctl(2), msgctl(2). Of semaphores and queues the kernel knows who
used them last, not who made them: what was made and never used is nobody's. A keeper imports this: see
`tree`.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time

from devbay.runtimes.host import tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    Node = tuple[int, int]  # device, inode

SHM = "/dev/shm"  # noqa: S108
IPC_RMID, GETPID = 0, 11  # include/uapi/linux/ipc.h, include/uapi/linux/sem.h


def present(born_before: float | None = None) -> set[Node]:
    """The files of /dev/shm that are there; with a time those that were made before it, or may have been."""
    found: set[Node] = set()
    try:
        names = os.listdir(SHM)  # noqa: PTH208
    except OSError:
        return found
    for name in names:
        path = f"{SHM}/{name}"
        node, born = _node(path), None if born_before is None else _born(path)
        if node is not None and (born is None or born_before is None or born < born_before):
            found.add(node)
    return found


class Leftovers:
    """Collects what the processes of one service have, and removes it at their end.

    others: files of /dev/shm that are not the service's, because they were there before it.
    """

    def __init__(self, others: set[Node]) -> None:
        self._others = others
        self._main: dict[int, float] = {}  # id, seconds since 1970
        self._segments: set[tuple[int, int]] = set()  # (id, key), which together are not used again soon
        self._semaphores: set[tuple[int, int]] = set()
        self._queues: set[tuple[int, int]] = set()
        self._files: dict[str, Node] = {}
        self._libc = ctypes.CDLL(None, use_errno=True) if os.path.isdir("/proc/sysvipc") else None  # noqa: PTH112

    def begin(self, main: tree.Process) -> None:
        """Its objects are the service's even when it is dead by the time they are noted."""
        self._main = {main.pid: started_at(main)} if _same_ipc(main.pid) else {}

    def note(self, alive: Collection[tree.Process]) -> None:
        """Remember what these processes and the main one made or use now."""
        if self._libc is None:
            return
        own = self._main | {one.pid: started_at(one) for one in alive if _same_ipc(one.pid)}
        for row in _rows("shm"):
            if _is_own(int(row["cpid"]), int(row["ctime"]), own):
                self._segments.add((int(row["shmid"]), int(row["key"])))
        for row in _rows("sem"):
            number = int(row["semid"])
            last = self._libc.semctl(number, 0, GETPID)
            if _is_own(last, max(int(row["otime"]), int(row["ctime"])), own):
                self._semaphores.add((number, int(row["key"])))
        for row in _rows("msg"):
            uses = ((int(row["lspid"]), int(row["stime"])), (int(row["lrpid"]), int(row["rtime"])))
            if any(_is_own(pid, at, own) for pid, at in uses):
                self._queues.add((int(row["msqid"]), int(row["key"])))
        for one in alive:
            found = _files(one.pid).items()
            self._files.update((path, node) for path, node in found if node not in self._others)

    def remove(self) -> list[str]:
        """Remove what was noted and is used by no living process; returns `<kind> <name>` of each."""
        removed: list[str] = []
        if self._libc is None:
            return removed
        for row in _rows("shm"):
            known = (int(row["shmid"]), int(row["key"])) in self._segments
            if known and row["nattch"] == "0" and not self._libc.shmctl(int(row["shmid"]), IPC_RMID, None):
                removed.append(f"segment {row['shmid']}")
        for row in _rows("sem"):
            known = (int(row["semid"]), int(row["key"])) in self._semaphores
            if known and not self._libc.semctl(int(row["semid"]), 0, IPC_RMID, 0):
                removed.append(f"semaphore {row['semid']}")
        for row in _rows("msg"):
            known = (int(row["msqid"]), int(row["key"])) in self._queues
            if known and not self._libc.msgctl(int(row["msqid"]), IPC_RMID, None):
                removed.append(f"queue {row['msqid']}")
        left = {path for path, node in self._files.items() if _node(path) == node}
        if left:
            left -= set().union(*(_files(pid) for pid in tree.processes()))
        for path in sorted(left):
            try:
                os.unlink(path)  # noqa: PTH108
            except FileNotFoundError:
                continue
            removed.append(f"file {path}")
        return removed


def started_at(one: tree.Process) -> float:
    """When a process was started, in seconds since 1970."""
    uptime = float(tree.read("/proc/uptime").split()[0])
    return time.time() - uptime + one.started / os.sysconf("SC_CLK_TCK")


def _is_own(pid: int, at: int, own: dict[int, float]) -> bool:
    """Whether one of the processes did it, and not one that had its id before it."""
    return pid in own and at >= own[pid] - 2


def _rows(table: str) -> list[dict[str, str]]:
    head, *lines = tree.read(f"/proc/sysvipc/{table}").decode().splitlines() or [""]
    return [dict(zip(head.split(), line.split(), strict=False)) for line in lines]


def _same_ipc(pid: int) -> bool:
    """Whether a process shares our System V objects; those of a namespace of its own end with it."""
    try:
        return os.readlink(f"/proc/{pid}/ns/ipc") == os.readlink("/proc/self/ns/ipc")  # noqa: PTH115
    except OSError:
        return False


def _files(pid: int) -> dict[str, Node]:
    """Files of our /dev/shm that a process has mapped or open. A sandbox has a /dev/shm of its own."""
    found: dict[str, Node] = {}
    for line in tree.read(f"{tree.PROC}/{pid}/maps").decode(errors="surrogateescape").splitlines():
        words = line.split(None, 5)
        if len(words) == 6 and words[5].startswith(f"{SHM}/"):
            major, _, minor = words[3].partition(":")
            found[words[5]] = (os.makedev(int(major, 16), int(minor, 16)), int(words[4]))
    folder = f"{tree.PROC}/{pid}/fd"
    try:
        names = os.listdir(folder)  # noqa: PTH208
    except OSError:
        names = []
    for name in names:
        try:
            target = os.readlink(f"{folder}/{name}")  # noqa: PTH115
            if target.startswith(f"{SHM}/"):
                status = os.stat(f"{folder}/{name}")  # noqa: PTH116
                found[target] = (status.st_dev, status.st_ino)
        except OSError:
            continue
    return {path: node for path, node in found.items() if _node(path) == node}


def _node(path: str) -> Node | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _born(path: str) -> float | None:
    """When a file was made, where the file system says (statx(2)); seconds since 1970."""
    found = ctypes.create_string_buffer(256)
    try:
        failed = ctypes.CDLL(None).statx(-100, os.fsencode(path), 0x100, 0x800, found)
    except AttributeError:  # a C library without it
        return None
    mask = int.from_bytes(found.raw[0:4], sys.byteorder)
    if failed or not mask & 0x800:
        return None
    return int.from_bytes(found.raw[80:88], sys.byteorder)

"""Processes of this machine: those of a mark, their descendants, what they use, and how to end them.

A keeper imports this too, and there is one for every service: nothing is imported at the top that would
cost each of them memory. Sources: proc(5), pidfd_open(2). Without /proc (macOS) `ps` is asked.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` adds an enum's 0.9 MB to every keeper
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

PROC = "/proc"
HAS_PROC = os.path.exists("/proc/self/stat")  # noqa: PTH110 - pathlib costs a keeper 2 MB
LISTEN = "0A"  # include/net/tcp_states.h
DEAD = "ZX"


class Process:
    """One process at one moment. started: clock ticks since boot (seconds where there is no /proc)."""

    __slots__ = ("command", "group", "parent", "pid", "session", "started", "state")

    def __init__(
        self, pid: int, parent: int, group: int, session: int, started: int, state: str, command: str
    ) -> None:
        self.pid, self.parent, self.group, self.session = pid, parent, group, session
        self.started, self.state, self.command = started, state, command

    def __repr__(self) -> str:
        return f"<{self.command} {self.pid} started {self.started} {self.state}>"


class Survivors(Exception):
    """Processes that were killed again and again and still are there."""

    def __init__(self, pids: list[int]) -> None:
        super().__init__(f"could not be ended: {', '.join(map(str, pids))}")
        self.pids = pids


def process(pid: int) -> Process | None:
    """The process, or None if there is none."""
    if not HAS_PROC:
        return _from_ps(str(pid)).get(pid)
    raw = read(f"{PROC}/{pid}/stat")
    return _parse(pid, raw) if raw else None


def processes() -> dict[int, Process]:
    """Every process of this machine that is visible from here."""
    if not HAS_PROC:
        return _from_ps(None)
    found = ((pid, process(pid)) for pid in _pids())
    return {pid: one for pid, one in found if one is not None}


def descendants(roots: Collection[int], table: dict[int, Process]) -> list[Process]:
    """The children of `roots`, their children and so on; parents come before their children."""
    children: dict[int, list[Process]] = {}
    for one in table.values():
        children.setdefault(one.parent, []).append(one)
    found: list[Process] = []
    open_, seen = list(roots), set(roots)
    while open_:
        for child in children.get(open_.pop(0), ()):
            if child.pid not in seen:
                seen.add(child.pid)
                found.append(child)
                open_.append(child.pid)
    return found


def marked(name: str, value: str) -> list[Process]:
    """The living processes that were started with the variable `name=value`, as far as it can be read."""
    word = f"{name}={value}".encode()
    if not HAS_PROC:
        table = _from_ps(None)
        text = _ps("-axEww", "-o", "pid=,command=").splitlines()
        pids = [int(line.split(None, 1)[0]) for line in text if word.decode() in line.split()]
        return [table[pid] for pid in pids if pid in table]
    found = []
    for pid in _pids():
        if not _says(pid, word):
            continue
        # Read again behind the start time: the id may have become another process's in between.
        one = process(pid)
        if one is not None and one.state not in DEAD and _says(pid, word):
            found.append(one)
    return found


def marks(name: str, prefix: str) -> set[str]:
    """The values of the variable `name` that begin with `prefix`, among all living processes."""
    start = f"{name}={prefix}".encode()
    found: set[str] = set()
    for pid in _pids() if HAS_PROC else ():
        for word in read(f"{PROC}/{pid}/environ").split(b"\0"):
            if word.startswith(start):
                found.add(word.partition(b"=")[2].decode(errors="replace"))
    return found


def send(target: Process, number: int) -> bool:
    """Signal exactly this process; False if it is gone. Raises `PermissionError` if it is not ours.

    A process id alone may be another process's by now: the pidfd holds one process, and its start time
    says whether that is the one.
    """
    try:
        handle = os.pidfd_open(target.pid) if hasattr(os, "pidfd_open") else -1
    except ProcessLookupError:
        return False
    except OSError:  # an old kernel, or no file handle left
        handle = -1
    try:
        now = process(target.pid)
        if now is None or now.started != target.started or now.state in DEAD:
            return False
        if handle >= 0:
            _signal.pidfd_send_signal(handle, number)
        else:
            os.kill(target.pid, number)
    except ProcessLookupError:
        return False
    finally:
        if handle >= 0:
            os.close(handle)
    return True


def end(
    find: Callable[[], Iterable[Process]],
    *,
    reap: Callable[[], None] = lambda: None,
    patience_s: float | None = None,
) -> tuple[list[int], list[int]]:
    """Kill what `find` finds until it finds nothing; returns the ids that were killed and those not ours.

    All are stopped before the first is killed: what forks or restarts its children would win the race
    otherwise. `reap` collects dead children. Raises `Survivors` after `patience_s` (None: never).
    """
    started, rounds, wait = time.monotonic(), 0, 0.001
    stopped: set[tuple[int, int]] = set()
    killed: set[int] = set()
    foreign: set[int] = set()
    while True:
        reap()
        alive = [one for one in find() if one.state not in DEAD and one.pid not in foreign]
        if not alive:
            return sorted(killed), sorted(foreign)
        fresh = [one for one in alive if (one.pid, one.started) not in stopped]
        rounds += 1
        stopping = bool(fresh) and rounds < 50
        for one in fresh if stopping else alive:
            stopped.add((one.pid, one.started))
            try:
                if send(one, _signal.SIGSTOP if stopping else _signal.SIGKILL) and not stopping:
                    killed.add(one.pid)
            except PermissionError:
                foreign.add(one.pid)
        if not stopping:
            if patience_s is not None and time.monotonic() - started > patience_s:
                raise Survivors(sorted(one.pid for one in alive))
            time.sleep(wait)
            wait = min(wait * 2, 0.05)


def memory_bytes(pids: Iterable[int]) -> int:
    """What the processes use: the proportional share of shared pages, else the resident set."""
    return sum(_memory(pid) for pid in pids)


def listeners(port: int) -> frozenset[int] | None:
    """The processes that listen on a TCP port; empty if none does, None if they cannot be told."""
    if not HAS_PROC:
        return None
    inodes = {inode for inode, (_, found) in _listening_sockets().items() if found == port}
    if not inodes:
        return frozenset()
    owners = frozenset(pid for pid in _pids() if inodes & _sockets(pid))
    return owners or None


def listening(pids: Iterable[int]) -> list[tuple[str, int]]:
    """The TCP addresses and ports that these processes listen on, sorted by port."""
    if not HAS_PROC:
        return []
    own: set[int] = set()
    for pid in pids:
        own |= _sockets(pid)
    if not own:
        return []
    return sorted(
        {place for inode, place in _listening_sockets().items() if inode in own},
        key=lambda at: (at[1], at[0]),
    )


def boot_id() -> str:
    """Another one after each start of the machine; empty where that cannot be told."""
    return read(f"{PROC}/sys/kernel/random/boot_id").decode().strip()


def _says(pid: int, word: bytes) -> bool:
    return word in read(f"{PROC}/{pid}/environ").split(b"\0")


def _pids() -> list[int]:
    return [int(name) for name in os.listdir(PROC) if name.isdigit()]  # noqa: PTH208


def read(path: str) -> bytes:
    """The whole of a file of /proc; empty if it is gone or closed to us."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        parts = []
        while part := os.read(handle, 65536):
            parts.append(part)
        return b"".join(parts)
    except OSError:  # the process ended between open and read
        return b""
    finally:
        os.close(handle)


def _parse(pid: int, stat: bytes) -> Process:
    # The command stands in parentheses and may hold anything, so the last one counts.
    command = stat[stat.index(b"(") + 1 : stat.rindex(b")")].decode(errors="replace")
    words = stat[stat.rindex(b")") + 2 :].split()
    return Process(
        pid, int(words[1]), int(words[2]), int(words[3]), int(words[19]), words[0].decode(), command
    )


def _memory(pid: int) -> int:
    if not HAS_PROC:
        return 1024 * sum(map(int, _ps("-o", "rss=", "-p", str(pid)).split()))
    for line in read(f"{PROC}/{pid}/smaps_rollup").splitlines():
        if line.startswith(b"Pss:"):
            return 1024 * int(line.split()[1])
    words = read(f"{PROC}/{pid}/statm").split()
    return int(words[1]) * os.sysconf("SC_PAGE_SIZE") if words else 0


def _sockets(pid: int) -> set[int]:
    """Inodes of the sockets that a process holds; empty if it is gone or closed to us."""
    found: set[int] = set()
    folder = f"{PROC}/{pid}/fd"
    try:
        names = os.listdir(folder)  # noqa: PTH208
    except OSError:
        return found
    for name in names:
        try:
            target = os.readlink(f"{folder}/{name}")  # noqa: PTH115
        except OSError:
            continue
        if target.startswith("socket:["):
            found.add(int(target[8:-1]))
    return found


def _listening_sockets() -> dict[int, tuple[str, int]]:
    from socket import AF_INET, AF_INET6, inet_ntop  # never needed by a keeper

    found: dict[int, tuple[str, int]] = {}
    for table, family in ("tcp", AF_INET), ("tcp6", AF_INET6):
        for line in read(f"{PROC}/net/{table}").decode("ascii", "replace").splitlines()[1:]:
            words = line.split()
            if words[3] != LISTEN:
                continue
            address, _, port = words[1].partition(":")
            # 32-bit words, each written as a number of this machine.
            parts = (address[at : at + 8] for at in range(0, len(address), 8))
            packed = b"".join(int(part, 16).to_bytes(4, sys.byteorder) for part in parts)
            found[int(words[9])] = (inet_ntop(family, packed), int(port, 16))
    return found


def _from_ps(pid: str | None) -> dict[int, Process]:
    found: dict[int, Process] = {}
    which = ("-p", pid) if pid else ("-ax",)
    for line in _ps(*which, "-o", "pid=,ppid=,pgid=,state=,lstart=,comm=").splitlines():
        words = line.split(None, 9)
        if len(words) < 10:
            continue
        at = time.strptime(" ".join(words[4:9]), "%a %b %d %H:%M:%S %Y")
        one = Process(
            int(words[0]),
            int(words[1]),
            int(words[2]),
            int(words[2]),
            int(time.mktime(at)),
            words[3][0],
            words[9],
        )
        found[one.pid] = one
    return found


def _ps(*arguments: str) -> str:
    import subprocess  # never needed where there is /proc

    done = subprocess.run(
        ["ps", *arguments],
        capture_output=True,
        text=True,
        errors="replace",
        env={**os.environ, "LC_ALL": "C"},
    )
    return done.stdout

"""Control groups: limits on a service, and the exact set of its processes. Source: cgroups(7).

A parent that this user may write to is found by trying it with a process. The daemon makes a service's
group, its keeper puts the process in and removes the group. A keeper imports this: see `tree`.
"""

from __future__ import annotations

import errno
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from devbay.manifest.models import Limits

V1_NEEDED = "memory"
V1 = (V1_NEEDED, "pids", "cpu", "freezer")
V2 = ("memory", "pids", "cpu")
CPU_PERIOD_US = 100_000


class Cgroup:
    """The group of one service. folders: by controller in version 1, under `` in version 2."""

    def __init__(self, version: int, folders: dict[str, str]) -> None:
        self.version, self.folders = version, folders

    def text(self) -> str:
        """One word for a state file: `<version>`, then `:<controller>=<folder>` of each."""
        return ":".join([str(self.version), *(f"{key}={folder}" for key, folder in self.folders.items())])

    @classmethod
    def of_text(cls, text: str) -> Cgroup:
        """What `text` wrote."""
        version, *folders = text.split(":")
        return cls(int(version), dict(item.split("=", 1) for item in folders))

    def make(self, limits: Limits | None) -> None:
        """Make the folders and set the limits; what exists already is used. Raises `OSError`."""
        for folder in self.folders.values():
            os.makedirs(folder, exist_ok=True)  # noqa: PTH103 - pathlib costs a keeper 2 MB
        for controller, name, value in _settings(self.version, limits):
            if controller in self.folders:
                _write(f"{self.folders[controller]}/{name}", value)

    def join(self, pid: int) -> None:
        """Put a process in, with what it will start. Raises `OSError`."""
        for folder in self.folders.values():
            _write(f"{folder}/cgroup.procs", str(pid))

    def pids(self) -> set[int]:
        """The processes that are in now."""
        found: set[int] = set()
        for folder in self.folders.values():
            found.update(map(int, _read(f"{folder}/cgroup.procs").split()))
        return found

    def freeze(self, frozen: bool) -> bool:
        """Stop or go on with every process at once; False where there is no freezer."""
        try:
            if self.version == 2:
                _write(f"{self.folders['']}/cgroup.freeze", str(int(frozen)))
            elif "freezer" in self.folders:
                _write(f"{self.folders['freezer']}/freezer.state", "FROZEN" if frozen else "THAWED")
            else:
                return False
        except OSError:  # a kernel without it
            return False
        return True

    def kill(self) -> None:
        """Kill every process at once where the kernel can (5.14); a frozen one is thawed to die."""
        self.freeze(False)
        if self.version == 2:
            try:
                _write(f"{self.folders['']}/cgroup.kill", "1")
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.EACCES, errno.EPERM):
                    raise

    def oom_kills(self) -> int:
        """How many processes of the group were killed for want of memory."""
        folder = self.folders.get("" if self.version == 2 else "memory", "")
        name = "memory.events" if self.version == 2 else "memory.oom_control"
        words = _read(f"{folder}/{name}").split()
        return int(words[words.index("oom_kill") + 1]) if "oom_kill" in words else 0

    def remove(self) -> list[str]:
        """Remove the empty folders; returns those that stay because a process is in them."""
        left = []
        for folder in self.folders.values():
            try:
                os.rmdir(folder)  # noqa: PTH106
            except FileNotFoundError:
                continue
            except OSError:
                left.append(folder)
        return left


class Parent:
    """Where this user may make groups. folders: as those of `Cgroup`; empty if nowhere."""

    def __init__(self, version: int, folders: dict[str, str]) -> None:
        self.version, self.folders = version, folders

    def group(self, name: str) -> Cgroup | None:
        """The group called `name`, made or not; None where no groups can be made."""
        if not self.folders:
            return None
        return Cgroup(self.version, {key: f"{folder}/{name}" for key, folder in self.folders.items()})


NOWHERE = Parent(0, {})
_found: Parent | None = None


def parent() -> Parent:
    """The parent for this process's services, found once by trying."""
    global _found
    if _found is None:
        _found = next(filter(_works, _candidates()), NOWHERE)
    return _found


def kind() -> str:
    """How limits are kept: `cgroup v2`, `cgroup v1` or `setrlimit` (memory of each process only)."""
    found = parent()
    return f"cgroup v{found.version}" if found.folders else "setrlimit"


def _candidates() -> list[Parent]:
    mounts = [line.split() for line in _read("/proc/self/mounts").splitlines()]
    own = [line.split(":", 2) for line in _read("/proc/self/cgroup").splitlines()]
    found: list[Parent] = []
    for mount in (words[1] for words in mounts if words[2] == "cgroup2"):
        path = next((words[2] for words in own if words[0] == "0"), "/").rstrip("/")
        while True:
            found.append(Parent(2, {"": mount + path}))
            if not path:
                break
            path = path.rpartition("/")[0]
    folders: dict[str, str] = {}
    for controller in V1:
        at = [words[1] for words in mounts if words[2] == "cgroup" and controller in words[3].split(",")]
        below = [words[2].rstrip("/") for words in own if controller in words[1].split(",")]
        if at and below:
            folders[controller] = at[0] + below[0]
    if V1_NEEDED in folders:
        # Each controller is its own hierarchy, and may be writable or not for itself.
        usable = {key: path for key, path in folders.items() if _works(Parent(1, {key: path}))}
        if V1_NEEDED in usable:
            found.append(Parent(1, usable))
    return found


def _works(candidate: Parent) -> bool:
    """Whether a group can be made here, have limits, and take a process that this one started."""
    import subprocess  # a keeper never tries

    group = candidate.group(f"devbay-try-{os.getpid()}")
    if group is None:
        return False
    made = False
    try:
        if candidate.version == 2:
            folder = candidate.folders[""]
            if not set(V2) <= set(_read(f"{folder}/cgroup.subtree_control").split()):
                _write(f"{folder}/cgroup.subtree_control", " ".join(f"+{name}" for name in V2))
        made = True
        group.make(None)
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as child:
            try:
                group.join(child.pid)
                return child.pid in group.pids()
            finally:
                child.communicate()
    except OSError:
        return False
    finally:
        if made:
            group.remove()


def _settings(version: int, limits: Limits | None) -> list[tuple[str, str, str]]:
    """(controller, file, value) of each limit. memory: bytes; cpus: cores; pids: tasks."""
    found: list[tuple[str, str, str]] = []
    if limits is None:
        return found
    if limits.memory is not None:
        name = "memory.max" if version == 2 else "memory.limit_in_bytes"
        found.append(("memory", name, str(limits.memory)))
    if limits.pids is not None:
        found.append(("pids", "pids.max", str(limits.pids)))
    if limits.cpus is not None:
        quota = max(1000, round(limits.cpus * CPU_PERIOD_US))
        if version == 2:
            found.append(("cpu", "cpu.max", f"{quota} {CPU_PERIOD_US}"))
        else:
            found.append(("cpu", "cpu.cfs_period_us", str(CPU_PERIOD_US)))
            found.append(("cpu", "cpu.cfs_quota_us", str(quota)))
    return [("" if version == 2 else controller, name, value) for controller, name, value in found]


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123
            return file.read()
    except OSError:
        return ""


def _write(path: str, text: str) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(handle, text.encode())
    finally:
        os.close(handle)

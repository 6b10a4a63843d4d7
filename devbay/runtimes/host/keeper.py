"""The keeper of one service or run: parent of all its processes, independent of the daemon.

Started by `keepers`. It reads eight bytes of length and a marshalled order from stdin; a service's keeper
then forks away, locks `<folder>/lock`, says `ok <ref>`, `held` or `failed <stage> <errno>` on stdout and
answers on a unix socket, one word line per request: `state`, `watch`, `pause`, `resume`, `stop <seconds>`.
Every answer is the state as one line of JSON; to `stop` it comes once everything is dead. A run's keeper
prints one line of JSON at the end, and ends everything when stdin says `cancel` or closes.

There is one of these for every service: only the standard library, and of it only what is written in C,
which keeps a keeper at 9 MB, 4 of them its own.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` adds an enum's 0.9 MB to every keeper
import fcntl
import marshal
import os
import resource
import sys

from devbay.runtimes.host import spawn
from devbay.runtimes.host.kept import Keeper, say, to_json
from devbay.runtimes.host.servicekeeper import ServiceKeeper

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HELD = 75
"""The exit code of a keeper whose folder another one keeps."""


class RunKeeper(Keeper):
    """Keeps one finite command, whose output is the daemon's pipe."""

    def __init__(self, order: dict[str, Any]) -> None:
        super().__init__(order)
        self.timed_out = False
        self.loop.on_signal(_signal.SIGTERM, self.kill)
        self.loop.when_readable(0, self.on_control)
        self.loop.after("timeout", order["timeout"], self.on_timeout)

    def begin(self) -> None:
        """Start the command; raises `SpawnFailed` or `OSError`."""
        os.set_inheritable(self.order["output"], False)
        try:
            self.start(self.order["output"])
        finally:
            os.close(self.order["output"])

    def on_control(self) -> None:
        """`cancel`, or the end of the daemon: either way everything ends now."""
        os.read(0, 4096)
        self.loop.forget(0)
        self.kill()

    def on_timeout(self) -> None:
        self.timed_out = True
        self.kill()

    def kill(self) -> None:
        self.end_all()
        self.on_child()

    def main_ended(self) -> None:
        code = self.ended or 0
        self.end_all()
        oom = self.cgroup is not None and self.cgroup.oom_kills() > 0
        self.clear()
        say(to_json({"code": code, "timed_out": self.timed_out, "oom_killed": oom}))
        self.loop.over = True


def main() -> None:
    _signal.signal(_signal.SIGHUP, _signal.SIG_IGN)  # one who finds our lock may ask for the socket already
    order = read_order()
    service = order["mode"] == "service"
    if service and os.fork():  # to be no child of the daemon, which then may end
        os._exit(0)
    os.setsid()
    os.chdir("/")
    spawn.prctl(spawn.PR_SET_CHILD_SUBREAPER, 1)
    spawn.prctl(spawn.PR_SET_NAME, b"devbay-keeper")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the environment in memory holds secrets
    if service:
        keep_service(order)
    else:
        keep(RunKeeper(order))


def keep_service(order: dict[str, Any]) -> None:
    try:
        lock = os.open(f"{order['folder']}/lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        say(f"failed lock {error.errno}\n".encode())
        return
    try:
        # A record lock: the kernel tells its holder's id (F_GETLK), and asking does not take it.
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        say(b"held\n")
        sys.exit(HELD)
    try:
        keeper = ServiceKeeper(order, lock)
    except OSError as error:
        say(f"failed socket {error.errno}\n".encode())
        return
    keep(keeper)


def keep(keeper: ServiceKeeper | RunKeeper) -> None:
    try:
        keeper.begin()
    except (spawn.SpawnFailed, OSError) as error:
        stage, number = (
            ("program", error.errno) if isinstance(error, OSError) else (error.stage, error.number)
        )
        keeper.end_all()
        if isinstance(keeper, ServiceKeeper):
            keeper.finish(127, False, str(error))
        else:
            keeper.clear()
        say(f"failed {stage} {number}\n".encode())
        return
    if isinstance(keeper, ServiceKeeper):
        say(f"ok {keeper.state['ref']}\n".encode())
        null = os.open(os.devnull, os.O_RDWR)
        for handle in (0, 1, 2):
            os.dup2(null, handle)
        os.close(null)
    try:
        keeper.loop.run()
    except BaseException:
        keeper.end_all()
        raise


def read_order() -> dict[str, Any]:
    length = int.from_bytes(_read_exactly(8), "little")
    found: dict[str, Any] = marshal.loads(_read_exactly(length))  # noqa: S302 - from our own daemon
    return found


def _read_exactly(size: int) -> bytes:
    parts = []
    while size:
        part = os.read(0, size)
        if not part:
            sys.exit("the order is not complete")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)

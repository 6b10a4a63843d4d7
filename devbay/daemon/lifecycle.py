"""The daemon's life: one per home, a log, a socket, signals, and the reasons to end."""

from __future__ import annotations

import asyncio
import fcntl
import json
import logging
import logging.handlers
import os
import re
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread
from anyio.abc import SocketListener

import devbay
from devbay.daemon.requests import Requests
from devbay.daemon.server import Server
from devbay.errors import DevbayError
from devbay.home import Home, private_dir
from devbay.tools.registry import Call, PrivateHandler, Registry, Services, Tool

logger = logging.getLogger(__name__)

IDLE_S = 600.0
CHECK_S = 5.0
LOG_BYTES, LOG_FILES = 5_000_000, 3
LOCK_WAIT_S = 15.0
STOP_WAIT_S = 5.0
STOPPED, IDLE, NEWER = "stopped by `devbay daemon stop`", "idle", "a newer client wants a newer daemon"

Make = Callable[[Home], tuple[Services, list[Tool[Any, Any]]]]


class AlreadyRunning(Exception):
    """Another daemon holds this home and answers on its socket."""


@dataclass
class Daemon:
    """One running daemon. `ending` says why it ends once that is decided."""

    home: Home
    core: Services
    server: Server
    idle_s: float
    loop: asyncio.AbstractEventLoop
    started: float = field(default_factory=time.time)
    ending: str = ""
    retiring: bool = False
    stop: anyio.Event = field(default_factory=anyio.Event)

    def end(self, why: str) -> None:
        """Decide to end (in the event loop's thread); the first reason stays."""
        if not self.ending:
            logger.info("ending: %s", why)
            self.ending = why
        self.stop.set()

    def methods(self) -> dict[str, PrivateHandler]:
        """The private methods about the daemon itself; they run in worker threads."""
        return {"devbay/hello": self._hello, "devbay/status": self._status, "devbay/stop": self._stop}

    def _hello(self, call: Call, params: dict[str, Any]) -> dict[str, Any]:
        """`{"version"}` of the client in, the daemon's out. A newer client makes this daemon leave.

        restarting: it ends now, connect again. retiring: it ends when `busy` is over, and serves until then.
        """
        answer: dict[str, Any] = {"version": devbay.__version__, "pid": os.getpid(), "restarting": False}
        if newer(str(params.get("version", "")), devbay.__version__):
            busy = self.core.busy()
            self.retiring = True
            if not busy and self.server.requests.active <= 1:
                self.loop.call_soon_threadsafe(self.end, NEWER)
                answer["restarting"] = True
            answer |= {"retiring": True, "busy": busy}
        return answer

    def _status(self, call: Call, params: dict[str, Any]) -> dict[str, Any]:
        return {
            "running": True,
            "version": devbay.__version__,
            "pid": os.getpid(),
            "socket": str(self.home.socket),
            "state_dir": str(self.home.state_dir),
            "log": str(self.home.logs / "daemon.log"),
            "uptime_s": round(time.time() - self.started),
            "connections": self.server.connections,
            "requests": self.server.requests.active - 1,
            "busy": self.core.busy(),
            "memory_mb": memory_mb(),
        }

    def _stop(self, call: Call, params: dict[str, Any]) -> dict[str, Any]:
        self.loop.call_soon_threadsafe(self.end, STOPPED)
        return {"stopped": True, "pid": os.getpid(), "interrupted": self.core.busy()}

    async def watch(self) -> None:
        """End when idle or replaced; put the socket back when something removed it."""
        quiet_since = time.monotonic()
        pause = min(CHECK_S, self.idle_s / 4)
        while True:
            await anyio.sleep(0.2 if self.retiring else pause)
            if self.retiring and not self.server.requests.active and not self.core.busy():
                self.end(NEWER)
            if self.server.connections or self.server.requests.active:
                quiet_since = time.monotonic()
            elif time.monotonic() - quiet_since > self.idle_s:
                if await to_thread.run_sync(self.core.idle):
                    self.end(IDLE)
                quiet_since = time.monotonic()


def run(make: Make, *, home: Home, ready_fd: int | None = None, idle_s: float = IDLE_S) -> int:
    """Be the daemon of `home` until told to end; the process's exit code.

    `ready_fd` gets `ready` once the socket answers, or the error of a failed start as JSON.
    """
    os.umask(0o022)  # worktrees are for containers of any user; what is private lies in folders of mode 0700
    try:
        with _Ready(ready_fd) as ready:
            open_log(home)
            with only_one(home):
                core, tools = make(home)
                core.start()
                ending = ""
                try:
                    ending = anyio.run(_serve, home, core, Registry(tools), ready, idle_s)
                finally:
                    core.close(stop_proxy=ending in (STOPPED, IDLE))
    except AlreadyRunning:
        logger.info("another daemon serves this home")
    except DevbayError:
        return 1
    logger.info("ended")
    return 0


class _Ready:
    """Tells the starting client once how the start went."""

    def __init__(self, fd: int | None) -> None:
        self._fd = fd

    def __enter__(self) -> _Ready:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, DevbayError):
            logger.error("%s: %s", error.code, error.message)
            self.tell(json.dumps({"error": error.as_dict() | {"exit_code": error.exit_code}}))
        elif isinstance(error, AlreadyRunning):
            self.tell("ready")
        elif error is not None and not isinstance(error, SystemExit):
            logger.error("failed", exc_info=error)
        self.tell("")

    def tell(self, text: str) -> None:
        if self._fd is None:
            return
        fd, self._fd = self._fd, None
        try:
            if text:
                os.write(fd, text.encode() + b"\n")
        except BrokenPipeError:  # the client gave up waiting; the daemon is as useful to the next one
            logger.info("the client that started this daemon is gone")
        finally:
            os.close(fd)


def open_log(home: Home) -> Path:
    """Log to `daemon.log`; what writes to stdout and stderr (tracebacks, libraries) lands there too."""
    path = private_dir(home.logs) / "daemon.log"
    handler = _Rotating(path, maxBytes=LOG_BYTES, backupCount=LOG_FILES, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    handler.take_stdio()
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logger.info("devbayd %s, process %s", devbay.__version__, os.getpid())
    return path


class _Rotating(logging.handlers.RotatingFileHandler):
    """A rotating log that descriptors 1 and 2 follow."""

    def doRollover(self) -> None:  # noqa: N802 - the base class's name
        super().doRollover()
        self.take_stdio()

    def take_stdio(self) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        stream = self.stream or self._open()
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)


class only_one:  # noqa: N801 - used as a `with` word
    """Hold the home's lock for life. The kernel frees it whatever way the process ends.

    The lock lies in the state folder, not beside the socket: runtime folders get cleaned. Raises
    `AlreadyRunning` if another daemon answers, `daemon_stuck` if one holds the lock and does not.
    """

    def __init__(self, home: Home) -> None:
        self._home = home
        self._fd = -1

    def __enter__(self) -> None:
        path = private_dir(self._home.state_dir) / "daemon.lock"
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        deadline = time.monotonic() + LOCK_WAIT_S
        while True:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                holder = os.pread(self._fd, 20, 0).decode("ascii", "replace").strip()
            if answers(self._home):
                raise AlreadyRunning
            if time.monotonic() > deadline:
                raise DevbayError(
                    "daemon_stuck",
                    f"process {holder or '?'} holds {path} and does not answer on {self._home.socket}",
                    next=f"look at {self._home.logs / 'daemon.log'}, then end process {holder or '?'}",
                    exit_code=1,
                )
            time.sleep(0.02)
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)

    def __exit__(self, *_: object) -> None:
        os.ftruncate(self._fd, 0)
        os.close(self._fd)


def answers(home: Home) -> bool:
    """True if something accepts connections on the home's socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(home.socket))
        except OSError:
            return False
    return True


def newer(theirs: str, ours: str) -> bool:
    """True if version `theirs` (numbers and dots) is above `ours`; anything else is not."""
    numbers = [tuple(int(part) for part in re.findall(r"\d+", text)[:4]) for text in (theirs, ours)]
    return numbers[0] > numbers[1]


def memory_mb() -> int:
    """Resident memory of this process in MiB (its peak where there is no /proc)."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except FileNotFoundError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak // (1024 * 1024 if sys.platform == "darwin" else 1024)
    return pages * os.sysconf("SC_PAGE_SIZE") // (1024 * 1024)


async def _serve(home: Home, core: Services, registry: Registry, ready: _Ready, idle_s: float) -> str:
    requests = Requests(core)
    server = Server(registry, requests)
    daemon = Daemon(home, core, server, idle_s, asyncio.get_running_loop())
    server.private = {**core.private, **daemon.methods()}
    async with anyio.create_task_group() as group:
        group.start_soon(_signals, daemon)
        group.start_soon(daemon.watch)
        group.start_soon(_listen, daemon, ready)
        await daemon.stop.wait()
        await anyio.sleep(0.05)  # let the answer to the one who asked for the end go out
        home.socket.unlink(missing_ok=True)
        await to_thread.run_sync(requests.cancel_all)
        with anyio.move_on_after(STOP_WAIT_S):
            while requests.active:
                await anyio.sleep(0.02)
        group.cancel_scope.cancel()
    return daemon.ending


async def _listen(daemon: Daemon, ready: _Ready) -> None:
    """Listen, and listen anew when the socket's file was removed (by a cleaner of temporary folders)."""
    path = daemon.home.socket
    async with anyio.create_task_group() as connections:
        while True:
            listener = await anyio.create_unix_listener(path, mode=0o600, backlog=128)
            async with listener:
                accepting, inode = anyio.CancelScope(), _inode(path)
                connections.start_soon(_accept, listener, daemon.server, connections, accepting)
                ready.tell("ready")
                while inode is not None and _inode(path) == inode:
                    await anyio.sleep(CHECK_S)
                logger.warning("%s was removed; listening anew", path)
                accepting.cancel()


async def _accept(
    listener: SocketListener, server: Server, group: anyio.abc.TaskGroup, scope: anyio.CancelScope
) -> None:
    with scope:
        await listener.serve(server.handle, group)


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None


async def _signals(daemon: Daemon) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
        async for number in signals:
            if number == signal.SIGHUP:
                logger.info("ignored a hangup")
            else:
                daemon.end(signal.Signals(number).name)

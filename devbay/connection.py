"""A connection to the daemon, started where there is none. Standard library only."""

from __future__ import annotations

import errno
import json
import os
import select
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import devbay
from devbay.errors import WORK_FAILED, DevbayError
from devbay.home import Home

START_TIMEOUT_S = 30.0
RESTART_TIMEOUT_S = 20.0
HELLO_TIMEOUT_S = 15.0
MAX_SOCKET_PATH = 103 if sys.platform == "darwin" else 107
DAEMON_ENV = frozenset("PATH HOME USER LOGNAME SHELL LANG TZ TMPDIR DEVBAY_HOME".split())  # noqa: SIM905
"""What the daemon itself starts with: it serves every caller, so nothing of the first one's session."""


def daemon_argv() -> list[str]:
    """The command that starts this installation's daemon, whatever folder or PYTHONPATH is in force."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
    code = (
        f"import sys; {root!r} in sys.path or sys.path.insert(0, {root!r});"
        " from devbay.daemon.__main__ import main; main()"
    )
    return [sys.executable, "-P", "-c", code]


def start_daemon(home: Home, argv: Sequence[str], env: Mapping[str, str]) -> None:
    """Start the daemon, detached from terminal, session and parent, and wait until its socket answers.

    Raises the daemon's own error, or `daemon_failed` with the end of its log.
    """
    own = {key: value for key, value in env.items() if key in DAEMON_ENV or key.startswith(("XDG_", "LC_"))}
    home.logs.mkdir(mode=0o700, parents=True, exist_ok=True)
    log_path = home.logs / "daemon.log"
    log = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    seen = os.fstat(log).st_size
    ready, told = os.pipe()
    try:
        child = os.fork()
        if child == 0:
            _become_daemon(list(argv), own, log, told)
        os.close(told)
        os.waitpid(child, 0)
        answer = _read_line(ready, START_TIMEOUT_S)
    finally:
        os.close(log)
        os.close(ready)
    if answer == b"ready":
        return
    if answer.startswith(b"{"):
        raise error_from(json.loads(answer)["error"])
    what = "did not answer in time" if answer == b"timeout" else "ended while starting"
    raise DevbayError(
        "daemon_failed",
        f"the devbay daemon {what}{_log_tail(log_path, seen)}",
        next=f"read {log_path}",
        exit_code=WORK_FAILED,
    )


def _become_daemon(argv: list[str], env: dict[str, str], log: int, told: int) -> None:
    """In the forked child: leave the session, fork again, exec. Never returns."""
    try:
        os.setsid()
        if os.fork() != 0:
            os._exit(0)
        os.chdir("/")
        os.umask(0o022)
        null = os.open(os.devnull, os.O_RDONLY)
        keep = [os.dup(fd) for fd in _above(null, log, told)]
        for target, fd in enumerate((keep[0], keep[1], keep[1], keep[2])):
            os.dup2(fd, target)
        os.closerange(4, max(os.sysconf("SC_OPEN_MAX"), 4096))
        os.execve(argv[0], [*argv, "--ready-fd", "3"], env)  # noqa: S606
    except OSError as error:
        os.write(2, f"cannot start {argv[0]}: {error}\n".encode())
    finally:
        os._exit(127)


def _above(*fds: int) -> list[int]:
    """The descriptors, moved above the ones that are about to be overwritten."""
    import fcntl

    return [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in fds]


def _read_line(fd: int, timeout_s: float) -> bytes:
    deadline = time.monotonic() + timeout_s
    data = b""
    while b"\n" not in data:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([fd], [], [], left)[0]:
            return b"timeout"
        chunk = os.read(fd, 65536)
        if not chunk:
            break
        data += chunk
    return data.split(b"\n", 1)[0]


def _log_tail(path: Any, start: int) -> str:
    with open(path, "rb") as file:  # noqa: PTH123 - no pathlib needed at start
        size = file.seek(0, os.SEEK_END)
        file.seek(max(start if start <= size else 0, size - 4000))
        lines = file.read().decode("utf-8", "replace").strip().splitlines()[-12:]
    return ":\n" + "\n".join(lines) if lines else ""


def connect(
    home: Home, env: Mapping[str, str], *, argv: Sequence[str] | None = None, start: bool = True
) -> socket.socket:
    """A connection to a daemon that is not older than this client, starting it where needed.

    `start=False` raises `daemon_not_running` instead of starting one.
    """
    deadline = time.monotonic() + RESTART_TIMEOUT_S
    while True:
        link = _open(home)
        if link is not None and not start:
            return link
        if link is None:
            if not start:
                raise DevbayError(
                    "daemon_not_running", "the devbay daemon is not running", exit_code=WORK_FAILED
                )
            start_daemon(home, argv or daemon_argv(), env)
            if (link := _open(home)) is not None:
                return link
        hello = _hello(link) if link is not None else {"restarting": True}
        if link is not None and not hello.get("restarting"):
            return link
        if link is not None:
            wait_closed(link, deadline)
        if time.monotonic() > deadline:
            raise DevbayError(
                "daemon_failed", f"the daemon on {home.socket} does not answer", exit_code=WORK_FAILED
            )
        time.sleep(0.01)


def _open(home: Home) -> socket.socket | None:
    if len(os.fsencode(home.socket)) > MAX_SOCKET_PATH:
        raise DevbayError(
            "socket_path_too_long",
            f"{home.socket} has more than the {MAX_SOCKET_PATH} bytes that a socket's path may have",
            next="set XDG_RUNTIME_DIR to a folder with a shorter path",
        )
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        link.connect(str(home.socket))
    except OSError as error:
        link.close()
        if error.errno in (errno.ENOENT, errno.ECONNREFUSED):
            return None
        raise DevbayError(
            "daemon_failed", f"cannot connect to {home.socket}: {error}", exit_code=WORK_FAILED
        ) from error
    return link


def _hello(link: socket.socket) -> dict[str, Any]:
    """The daemon's answer to this client's version; one that hangs up at once is restarting."""
    request = {"jsonrpc": "2.0", "id": "hello", "method": "devbay/hello"}
    request["params"] = {"version": devbay.__version__}  # type: ignore[assignment]
    data = b""
    link.settimeout(HELLO_TIMEOUT_S)
    try:
        link.sendall(json.dumps(request).encode() + b"\n")
        while not data.endswith(b"\n"):
            chunk = link.recv(65536)
            if not chunk:
                return {"restarting": True}
            data += chunk
    except (BrokenPipeError, ConnectionResetError):
        return {"restarting": True}
    except TimeoutError as error:
        raise DevbayError(
            "daemon_failed",
            f"the devbay daemon accepts connections but did not answer within {HELLO_TIMEOUT_S:.0f} s",
            next="see `daemon.log` in devbay's state folder; end the process named in `daemon.lock`",
            exit_code=WORK_FAILED,
        ) from error
    link.settimeout(None)
    answer: dict[str, Any] = json.loads(data)
    return answer.get("result") or {}


def wait_closed(link: socket.socket, deadline: float) -> None:
    """Wait until a restarting daemon hangs up."""
    link.settimeout(max(0.1, deadline - time.monotonic()))
    try:
        while link.recv(65536):
            continue
    except OSError:
        return
    finally:
        link.close()


def error_from(data: Mapping[str, Any]) -> DevbayError:
    fields = {key: value for key, value in data.items() if key not in ("code", "message", "next")}
    exit_code = fields.pop("exit_code", WORK_FAILED)
    return DevbayError(
        str(data.get("code", "unknown")),
        str(data.get("message", "")),
        next=str(data.get("next", "")),
        exit_code=int(exit_code),
        **fields,
    )

"""`devbay mcp`: a pipe between an agent's stdio and the daemon. Standard library only: agents pay for it.

Each request gets the caller's directory and environment. When the daemon goes away the requests it owed
are answered with errors and the next message connects again, replaying the client's `initialize`.
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from devbay.client import caller_meta
from devbay.connection import connect
from devbay.errors import DevbayError
from devbay.home import Home

MAX_LINE = 16 * 1024 * 1024
CHUNK = 65536
PIPE_CHUNK = 4096
"""What a descriptor reported as writable takes without blocking (PIPE_BUF on Linux)."""
DRAIN_S = 2.0
"""How long answers are waited for after the agent closed stdin (`echo ... | devbay mcp`)."""
REPLAY_ID = "devbay-replayed-initialize"
PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, DEVBAY_ERROR = -32700, -32600, -32601, -32000


class Lines:
    """Bytes in, complete lines out; a line above the limit (None: there is none) comes out as None, once."""

    def __init__(self, limit: int | None = MAX_LINE) -> None:
        self._limit = limit
        self._data = bytearray()
        self._skipping = False

    def feed(self, chunk: bytes) -> list[bytes | None]:
        found: list[bytes | None] = []
        *ends, rest = chunk.split(b"\n")
        for part in ends:
            self._data += part
            if not self._skipping:
                found.append(None if self._too_long() else bytes(self._data))
            self._data = bytearray()
            self._skipping = False
        if not self._skipping:
            self._data += rest
        if self._too_long():
            self._data = bytearray()
            self._skipping = True
            found.append(None)
        return found

    def _too_long(self) -> bool:
        return self._limit is not None and len(self._data) > self._limit


class Pipe:
    """The state between the two ends: what is owed to the agent and how to get the daemon back."""

    def __init__(self, home: Home, env: Mapping[str, str], cwd: str, argv: Sequence[str] | None) -> None:
        self._home, self._env, self._argv = home, env, argv
        self._meta = caller_meta(env, cwd)
        self._link: socket.socket | None = None
        self._from_agent, self._from_daemon = Lines(), Lines(None)
        self._to_agent, self._to_daemon = bytearray(), bytearray()
        self._pending: dict[Any, None] = {}
        self._initialize: dict[str, Any] | None = None

    def run(self, stdin: int, stdout: int) -> None:
        """Carry messages until stdin ends and what is owed was answered, or stdout is closed."""
        ends_at: float | None = None
        while ends_at is None or (time.monotonic() < ends_at and self._owing()):
            reads = [stdin] if ends_at is None and len(self._to_daemon) < MAX_LINE else []
            writes = [stdout] if self._to_agent else []
            if self._link is not None:
                if len(self._to_agent) < MAX_LINE:
                    reads.append(self._link.fileno())
                if self._to_daemon:
                    writes.append(self._link.fileno())
            wait = None if ends_at is None else max(0.0, ends_at - time.monotonic())
            readable, writable, broken = _ready(reads, writes, stdout, wait)
            if stdout in broken:
                return
            if stdout in writable:
                self._write_agent(stdout)
            link = self._link.fileno() if self._link is not None else -1
            if link in readable or link in broken:
                self._read_daemon()
            elif link in writable:
                self._write_daemon()
            if stdin in readable or stdin in broken:
                chunk = _read(stdin)
                if not chunk:
                    ends_at = time.monotonic() + DRAIN_S
                for line in self._from_agent.feed(chunk):
                    self._take(line)

    def _owing(self) -> bool:
        return bool(self._pending or self._to_agent or self._to_daemon)

    def _write_agent(self, stdout: int) -> None:
        try:
            del self._to_agent[: os.write(stdout, self._to_agent[:PIPE_CHUNK])]
        except BlockingIOError:
            return

    def _take(self, line: bytes | None) -> None:
        """One line of the agent: forward it, or answer it here if it is no message."""
        if line is None:
            self._answer_error(None, INVALID_REQUEST, f"the message is longer than {MAX_LINE} bytes")
            return
        if not line.strip():
            return
        try:
            message = json.loads(line)
        except (ValueError, RecursionError) as error:
            self._answer_error(None, PARSE_ERROR, f"the message is not JSON: {str(error)[:200]}")
            return
        if not isinstance(message, dict):
            self._answer_error(None, INVALID_REQUEST, "a message is a JSON object")
            return
        method, identity = message.get("method"), message.get("id")
        if isinstance(method, str) and method.startswith("devbay/"):
            self._answer_error(identity, METHOD_NOT_FOUND, f"there is no method {method[:80]}")
            return
        if not self._connected(identity if "method" in message else None, replay=method != "initialize"):
            return
        if isinstance(method, str) and _is_id(identity):
            self._pending[identity] = None
            params = message["params"] if isinstance(message.get("params"), dict) else {}
            if "params" not in message or message["params"] is params:
                meta = params.get("_meta") if isinstance(params.get("_meta"), dict) else {}
                message["params"] = {**params, "_meta": {**(meta or {}), **self._meta}}
            if method == "initialize":
                self._initialize = message
        elif method == "notifications/cancelled":
            cancelled = (message.get("params") or {}).get("requestId")
            if _is_id(cancelled):
                self._pending.pop(cancelled, None)
        self._queue(message)

    def _connected(self, identity: Any, *, replay: bool) -> bool:
        """Have a daemon, starting it where needed; if there is none, say so to the request `identity`."""
        if self._link is not None:
            return True
        try:
            link = connect(self._home, self._env, argv=self._argv)
        except (DevbayError, OSError) as error:
            data = error.as_dict() if isinstance(error, DevbayError) else {"code": "daemon_failed"}
            self._answer_error(identity, DEVBAY_ERROR, _told(error), data)
            return False
        link.setblocking(False)
        self._link, self._from_daemon, self._to_daemon = link, Lines(None), bytearray()
        if replay and self._initialize is not None:
            self._queue({**self._initialize, "id": REPLAY_ID})
            self._queue({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return True

    def _queue(self, message: dict[str, Any]) -> None:
        self._to_daemon += _encoded(message)

    def _write_daemon(self) -> None:
        assert self._link is not None
        try:
            del self._to_daemon[: self._link.send(self._to_daemon[:CHUNK])]
        except BlockingIOError:
            return
        except OSError:
            self._lose_daemon()

    def _read_daemon(self) -> None:
        assert self._link is not None
        try:
            chunk = self._link.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self._lose_daemon()
            return
        for line in self._from_daemon.feed(chunk):
            if line is None:
                continue
            message = json.loads(line)
            identity = message.get("id")
            if "method" not in message and identity == REPLAY_ID:
                continue
            if "method" not in message and _is_id(identity):
                self._pending.pop(identity, None)
            self._to_agent += line + b"\n"

    def _lose_daemon(self) -> None:
        """The daemon hung up: answer what it owed, and connect again at the next message."""
        assert self._link is not None
        self._link.close()
        self._link = None
        self._to_daemon.clear()
        owed, self._pending = self._pending, {}
        data = {
            "code": "daemon_restarted",
            "message": "the devbay daemon ended before it answered",
            "next": "call again; bay_status and bay_run_result tell what became of the work",
        }
        for identity in owed:
            self._answer_error(identity, DEVBAY_ERROR, f"{data['code']}: {data['message']}", data)

    def _answer_error(self, identity: Any, code: int, text: str, data: dict[str, Any] | None = None) -> None:
        if identity is None and code == DEVBAY_ERROR:
            return  # a notification is owed no answer
        error = {"code": code, "message": text} | ({"data": data} if data else {})
        answer = {"jsonrpc": "2.0", "id": identity if _is_id(identity) else None, "error": error}
        self._to_agent += _encoded(answer)


def _encoded(message: dict[str, Any]) -> bytes:
    """One line. Lone surrogates cannot be UTF-8; they stay escaped for the daemon to refuse."""
    try:
        return json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def _is_id(identity: Any) -> bool:
    return isinstance(identity, str | int) and not isinstance(identity, bool)


def _read(fd: int) -> bytes:
    """What there is to read; nothing if the descriptor is closed or broken."""
    try:
        return os.read(fd, CHUNK)
    except OSError:
        return b""


def _told(error: Exception) -> str:
    if not isinstance(error, DevbayError):
        return f"daemon_failed: {error}"
    return f"{error.code}: {error.message}" + (f"\nnext: {error.next}" if error.next else "")


def _ready(
    reads: list[int], writes: list[int], stdout: int, wait_s: float | None
) -> tuple[set[int], set[int], set[int]]:
    """Descriptors that are readable, writable, and hung up. stdout is always watched for its reader's end."""
    masks = {stdout: 0}
    for fd in reads:
        masks[fd] = masks.get(fd, 0) | select.POLLIN
    for fd in writes:
        masks[fd] = masks.get(fd, 0) | select.POLLOUT
    poller = select.poll()
    for fd, mask in masks.items():
        poller.register(fd, mask)
    events = poller.poll(None if wait_s is None else wait_s * 1000)
    readable = {fd for fd, event in events if event & select.POLLIN}
    writable = {fd for fd, event in events if event & select.POLLOUT}
    hung_up = select.POLLHUP | select.POLLERR | select.POLLNVAL
    return readable, writable, {fd for fd, event in events if event & hung_up}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the pipe on this process's stdin and stdout; `argv` is the command that starts the daemon."""
    try:
        home = Home.from_environment(os.environ)
        Pipe(home, os.environ, _cwd(), argv).run(0, 1)
    except BrokenPipeError:
        return 0
    except KeyboardInterrupt:
        return 130
    return 0


def _cwd() -> str:
    """The caller's directory as the shell names it; `/` if it was removed."""
    try:
        return os.getcwd()  # noqa: PTH109 - no pathlib needed at start
    except FileNotFoundError:
        sys.stderr.write("devbay: the current directory was removed\n")
        return "/"

"""A devbay home of a test's own, with real daemon processes in it that end with the test."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from devbay.client import Client
from devbay.connection import connect
from devbay.home import Home
from tests.daemon import fake

ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class House:
    """Home, environment and helpers; `options` go to every fake daemon that is started in it."""

    def __init__(self, root: Path, runtime: Path) -> None:
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(root),
            "DEVBAY_HOME": str(root / "devbay"),
            "XDG_RUNTIME_DIR": str(runtime),
            "LANG": "C.UTF-8",
        }
        self.home = Home.from_environment(self.env)
        self.root = root

    def client(self, cwd: str = "/tmp", **options: str) -> Client:
        return Client(self.home, self.env, cwd, argv=fake.argv(**options))

    def link(self, **options: str) -> Raw:
        return Raw(connect(self.home, self.env, argv=fake.argv(**options)))

    def pid(self) -> int | None:
        try:
            text = (self.home.state_dir / "daemon.lock").read_text().strip()
        except FileNotFoundError:
            return None
        return int(text) if text and alive(int(text)) else None

    def end(self) -> None:
        pid = self.pid()
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
            until(lambda: not alive(pid), "the daemon ends")

    def command(self, *words: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """A devbay command as a process (the daemon must run already)."""
        argv = [sys.executable, "-m", "devbay", *words]
        options = {"cwd": fake.ROOT, "env": self.env, "stdin": subprocess.DEVNULL, **options}
        return subprocess.run(argv, text=True, capture_output=True, timeout=30, check=False, **options)

    def log(self) -> str:
        return (self.home.logs / "daemon.log").read_text()


class Raw:
    """A connection that sends what it is told, byte for byte."""

    def __init__(self, link: socket.socket) -> None:
        self.socket = link
        link.settimeout(20)
        self._reader = link.makefile("rb")

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._reader.close()
        self.socket.close()

    def send(self, message: dict[str, Any] | bytes) -> None:
        data = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
        self.socket.sendall(data)

    def receive(self) -> dict[str, Any]:
        line = self._reader.readline()
        assert line.endswith(b"\n"), "the daemon hung up"
        message: dict[str, Any] = json.loads(line)
        return message

    def ask(self, message: dict[str, Any] | bytes) -> dict[str, Any]:
        self.send(message)
        return self.receive()

    def call(self, identity: Any, tool: str, arguments: dict[str, Any], **meta: Any) -> None:
        params = {"name": tool, "arguments": arguments, "_meta": {**ENVELOPE, **meta}}
        self.send({"jsonrpc": "2.0", "id": identity, "method": "tools/call", "params": params})


@contextmanager
def house(root: Path) -> Iterator[House]:
    """A house below `root`; its daemon is gone afterwards. The runtime folder is short: socket paths are."""
    runtime = Path(tempfile.mkdtemp(prefix="db-"))
    root.mkdir(parents=True, exist_ok=True)
    found = House(root, runtime)
    try:
        yield found
    finally:
        found.end()
        shutil.rmtree(runtime)


def alive(pid: int) -> bool:
    """True until the last thread is gone: a leader that is a zombie may still have some, with open files."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().split()[2]
        return state != "Z" or len(list(Path(f"/proc/{pid}/task").iterdir())) > 1
    except (FileNotFoundError, ProcessLookupError):
        return False


def until(condition: Callable[[], Any], what: str, seconds: float = 60) -> Any:
    """Wait for a condition; its value."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"in vain waited until {what}"
        time.sleep(0.01)
    return value

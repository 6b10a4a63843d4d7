"""The thin client: one conversation with the daemon in JSON-RPC. Standard library only."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import devbay
from devbay.connection import connect, error_from, wait_closed
from devbay.errors import WORK_FAILED, DevbayError
from devbay.home import Home

PROTOCOL = "2026-07-28"

_NAMES = (
    "PATH HOME USER LOGNAME SHELL LANG LANGUAGE TERM TZ TMPDIR NO_COLOR CI SSH_AUTH_SOCK SSL_CERT_FILE"
    " SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE NODE_EXTRA_CA_CERTS GIT_SSL_CAINFO PIP_CERT"
    " GIT_SSH GIT_SSH_COMMAND ASDF_DATA_DIR ASDF_DIR CARGO_HOME DOTNET_ROOT FNM_DIR GOROOT JAVA_HOME"
    " MISE_DATA_DIR NVM_DIR PYENV_ROOT RBENV_ROOT RUSTUP_HOME SDKMAN_DIR UV_PYTHON_INSTALL_DIR VOLTA_HOME"
)
ENV_NAMES = frozenset(_NAMES.split())
ENV_PREFIXES = ("DEVBAY_", "DOCKER_", "BUILDKIT_", "BUILDX_", "COMPOSE_", "XDG_", "LC_")

Items = Callable[[dict[str, Any]], None]
Progress = Callable[[str, float | None], None]


def caller_env(env: Mapping[str, str]) -> dict[str, str]:
    """The part of the environment that requests carry (decision 14)."""
    return {
        key: value
        for key, value in env.items()
        if key in ENV_NAMES or key.startswith(ENV_PREFIXES) or key.upper().endswith("_PROXY")
    }


def caller_meta(env: Mapping[str, str], cwd: str) -> dict[str, Any]:
    """The caller's directory and environment as members of a request's `_meta`.

    What is not UTF-8 cannot be said in JSON and is left out.
    """
    known = {key: value for key, value in caller_env(env).items() if _is_text(value)}
    return ({"dev.devbay/cwd": cwd} if _is_text(cwd) else {}) | {"dev.devbay/env": known}


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


class Client:
    """One connection for one command: requests one after another, each with progress.

    `Client(...)` connects, starting the daemon where needed; use it in a `with` block.
    """

    def __init__(
        self,
        home: Home,
        env: Mapping[str, str],
        cwd: str,
        *,
        argv: Sequence[str] | None = None,
        start: bool = True,
    ) -> None:
        self._home = home
        self._link = connect(home, env, argv=argv, start=start)
        self._reader = self._link.makefile("rb")
        self._meta = caller_meta(env, cwd)
        self._last = 0

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()
        self._link.close()

    def tool(
        self, name: str, arguments: Mapping[str, Any], on_progress: Progress | None = None
    ) -> dict[str, Any]:
        """The structured answer of an MCP tool; raises its error as `DevbayError`."""
        envelope = {
            "io.modelcontextprotocol/protocolVersion": PROTOCOL,
            "io.modelcontextprotocol/clientInfo": {"name": "devbay", "version": devbay.__version__},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        params = {"name": name, "arguments": dict(arguments)}
        result = self._request("tools/call", params, envelope, on_progress, None)
        structured: dict[str, Any] = result.get("structuredContent") or {}
        if result.get("isError"):
            code = (result.get("_meta") or {}).get("dev.devbay/exit_code", WORK_FAILED)
            raise error_from({**structured.get("error", {}), "exit_code": code})
        return structured

    def private(
        self,
        method: str,
        params: Mapping[str, Any],
        on_progress: Progress | None = None,
        on_item: Items | None = None,
    ) -> dict[str, Any]:
        """The result of a `devbay/*` method; a stream's items go to `on_item` as they come."""
        return self._request(method, dict(params), {}, on_progress, on_item)

    def until_gone(self, timeout_s: float = 30.0) -> None:
        """After `devbay/stop`: wait until the daemon has let go of its home (its lock is free)."""
        import fcntl

        wait_closed(self._link, time.monotonic() + timeout_s)
        with open(self._home.state_dir / "daemon.lock", "rb") as lock:  # noqa: PTH123
            deadline = time.monotonic() + timeout_s
            while time.monotonic() < deadline:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    time.sleep(0.01)
                else:
                    return
        raise DevbayError("daemon_stuck", "the daemon was told to end but has not", exit_code=WORK_FAILED)

    def _request(
        self,
        method: str,
        params: dict[str, Any],
        envelope: dict[str, Any],
        on_progress: Progress | None,
        on_item: Items | None,
    ) -> dict[str, Any]:
        self._last += 1
        identity = self._last
        meta = {**self._meta, **envelope} | ({"progressToken": identity} if on_progress else {})
        request = {"jsonrpc": "2.0", "id": identity, "method": method, "params": {**params, "_meta": meta}}
        try:
            self._send(request)
            while True:
                message = self._receive()
                if message.get("id", 0) in (identity, None):
                    break  # no id: the daemon could not read the request
                _notify(message, identity, on_progress, on_item)
        except KeyboardInterrupt:
            cancel = {"requestId": identity, "reason": "the user pressed ctrl-c"}
            self._send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel})
            raise
        if "error" in message:
            raise _protocol_error(message["error"])
        result: dict[str, Any] = message["result"]
        return result

    def _send(self, message: dict[str, Any]) -> None:
        try:
            data = json.dumps(message, ensure_ascii=False).encode() + b"\n"
        except UnicodeEncodeError as error:
            raise DevbayError(
                "bad_arguments", "an argument is not valid UTF-8", next="give it in UTF-8"
            ) from error
        try:
            self._link.sendall(data)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise _gone() from error

    def _receive(self) -> dict[str, Any]:
        try:
            line = self._reader.readline()
        except ConnectionResetError as error:
            raise _gone() from error
        if not line.endswith(b"\n"):
            raise _gone()
        message: dict[str, Any] = json.loads(line)
        return message


def _notify(
    message: dict[str, Any], identity: int, on_progress: Progress | None, on_item: Items | None
) -> None:
    params = message.get("params") or {}
    if message.get("method") == "notifications/progress" and on_progress:
        if params.get("progressToken") == identity:
            fraction = params.get("progress") if params.get("total") else None
            on_progress(str(params.get("message", "")), fraction)
    elif message.get("method") == "notifications/devbay/item" and on_item and params["requestId"] == identity:
        on_item(params["item"])


def _protocol_error(error: Mapping[str, Any]) -> DevbayError:
    data = error.get("data")
    if isinstance(data, dict) and "code" in data:
        return error_from({"exit_code": 2, **data})
    return DevbayError("protocol_error", str(error.get("message", error)), exit_code=WORK_FAILED)


def _gone() -> DevbayError:
    return DevbayError(
        "daemon_gone",
        "the devbay daemon ended before it answered",
        next="run the command again; it starts the daemon",
        exit_code=WORK_FAILED,
    )

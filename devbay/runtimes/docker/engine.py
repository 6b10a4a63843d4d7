"""One Docker engine: its client, what kind of engine it is, and its errors as ours.

The `docker` package is imported at the first call; it gives the transport (unix, TCP with TLS, ssh). The
client reconnects by itself: a call after the engine restarted opens a new connection.
"""

from __future__ import annotations

import json
import struct
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from devbay.errors import WORK_FAILED, DevbayError
from devbay.jobs import Job
from devbay.runtimes.docker.contexts import Endpoint
from devbay.runtimes.docker.failures import causes, failure_from_text, unreachable

CHECK_TIMEOUT_S = 2
CALL_TIMEOUT_S = 120
POOL_SIZE = 32
"""Connections kept open: about 16 threads of work, plus streams (logs, events, waits)."""

EngineKind = Literal["rootful", "rootless", "desktop", "userns-remap"]


@dataclass(frozen=True)
class EngineInfo:
    """What an engine is. memory_bytes and cpus are those of its machine, which may be a virtual one.

    limits: memory and CPU limits of containers are applied. init: `Init: true` works.
    """

    kind: EngineKind
    version: str
    os_type: str
    architecture: str
    cgroup_version: str
    storage_driver: str
    cpus: int
    memory_bytes: int
    limits: bool
    init: bool
    root_dir: str


class Engine:
    """A connection to the engine at `endpoint`; safe to use from many threads."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._lock = threading.Lock()
        self._client: Any = None
        self._info: EngineInfo | None = None

    @property
    def client(self) -> Any:
        """The `docker.APIClient`, made at first use. Raises `engine_unreachable` within 2 s.

        Its own methods raise the library's errors: use them inside `errors()`.
        """
        with self._lock:
            if self._client is None:
                with self.errors():
                    self._client = _connect(self.endpoint)
            return self._client

    def check(self) -> None:
        """Raise `engine_unreachable` (within 2 s) or `engine_unsupported` if nothing can be run here."""
        self.call("GET", "/_ping", timeout_s=CHECK_TIMEOUT_S)
        kind = self.info().kind
        if kind == "userns-remap" or self.info().os_type == "windows":
            what = "runs with userns-remap" if kind == "userns-remap" else "runs Windows containers"
            raise DevbayError(
                "engine_unsupported",
                f"the Docker engine at {self.endpoint.host} {what}, which devbay does not support",
                next="use a rootful or rootless engine without userns-remap: `docker context use ...`",
                exit_code=WORK_FAILED,
            )

    def info(self) -> EngineInfo:
        """The engine's class and abilities; asked once, and again after a lost connection."""
        if self._info is None:
            self._info = classify(self.call("GET", "/info"), platform=sys.platform)
        return self._info

    def call(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        body: Any = None,
        data: bytes | None = None,
        doing: str = "",
        timeout_s: float | None = CALL_TIMEOUT_S,
    ) -> Any:
        """One API call; the answer's JSON (None if there is none). Raises the errors of `failures`."""
        with self.errors(doing):
            response = self._send(method, path, params, body, data, timeout_s, stream=False)
            is_json = response.headers.get("Content-Type", "").startswith("application/json")
            return response.json() if is_json and response.content else None

    def head(self, path: str, *, params: Mapping[str, Any], doing: str = "") -> Mapping[str, str] | None:
        """The headers of an answer, None for 404."""
        with self.errors(doing):
            response = self.client.head(self._url(path), params=params, timeout=CALL_TIMEOUT_S)
            if response.status_code == 404:
                return None
            self._raise_for_status(response)
            headers: Mapping[str, str] = response.headers
            return headers

    @contextmanager
    def stream(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        body: Any = None,
        doing: str = "",
        job: Job | None = None,
    ) -> Iterator[Stream]:
        """An answer that is read as it comes, without a time limit; `job` cancelled raises `Cancelled`."""
        with self.errors(doing):
            response = self._send(method, path, params, body, None, None, stream=True)
        stream = Stream(response, lambda: self.errors(doing))
        try:
            with (job or Job()).when_cancelled(stream.close):
                yield stream
                if job is not None:
                    job.check()
        finally:
            response.close()

    @contextmanager
    def errors(self, doing: str = "") -> Iterator[None]:
        """Raise what the library raises inside the block as `DevbayError`."""
        try:
            yield
        except DevbayError:
            raise
        except Exception as error:
            translated = translate(error, self.endpoint, doing=doing)
            if translated is None:
                raise
            if translated.code == "engine_unreachable":
                self._info = None
            raise translated from error

    def close(self) -> None:
        """Close idle connections; the engine may be used again afterwards."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _url(self, path: str) -> str:
        return f"{self.client.base_url}/v{self.client.api_version}{path}"

    def _send(
        self,
        method: str,
        path: str,
        params: Mapping[str, Any] | None,
        body: Any,
        data: bytes | None,
        timeout_s: float | None,
        *,
        stream: bool,
    ) -> Any:
        client = self.client
        response = client.request(
            method, self._url(path), params=params, json=body, data=data, timeout=timeout_s, stream=stream
        )
        self._raise_for_status(response)
        return response

    @staticmethod
    def _raise_for_status(response: Any) -> None:
        if response.status_code >= 400:
            raise EngineRefusal(response.status_code, _explanation(response))


class EngineRefusal(Exception):
    """The engine answered a call with an error."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text}")
        self.status = status
        self.text = text


class Stream:
    """An answer read as it comes. `close` from any thread ends a blocked read, which then yields no more."""

    def __init__(self, response: Any, errors: Callable[[], AbstractContextManager[None]]) -> None:
        self._response = response
        self._errors = errors
        self._closed = False

    def read(self, size: int) -> bytes:
        """`size` bytes, fewer only at the end."""
        return self._guarded(lambda: self._response.raw.read(size)) or b""

    def frames(self) -> Iterator[bytes]:
        """The payloads of a multiplexed stream (stdout and stderr of a container without a terminal).

        Each starts with 8 bytes: the stream (1 stdout, 2 stderr), three zeroes, the size (big endian).
        """
        for _stream, payload in self.labelled_frames():
            yield payload

    def labelled_frames(self) -> Iterator[tuple[int, bytes]]:
        """The same with the number of the stream: 1 stdout, 2 stderr."""
        while len(header := self.read(8)) == 8:
            stream, size = struct.unpack(">BxxxL", header)
            yield stream, self.read(size)

    def documents(self) -> Iterator[Any]:
        """The JSON documents of a stream of them, one a line."""
        rest = b""
        for chunk in self._chunks():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                if line.strip():
                    yield json.loads(line)
        if rest.strip():
            yield json.loads(rest)

    def close(self) -> None:
        """End the stream; the thread that reads it sees its end."""
        from docker.errors import DockerException
        from docker.types import CancellableStream

        self._closed = True
        try:
            CancellableStream(iter(()), self._response).close()
        except (AttributeError, OSError):
            return  # it had ended by itself: there is no socket any more
        except DockerException:
            self._response.close()  # over ssh there is only this

    def _chunks(self) -> Iterator[bytes]:
        chunks = self._response.raw.stream(65536)
        while (chunk := self._guarded(lambda: next(chunks, None))) is not None:
            yield chunk

    def _guarded(self, read: Callable[[], bytes | None]) -> bytes | None:
        """A read whose failure is an end where `close` caused it."""
        try:
            with self._errors():
                return read()
        except DevbayError:
            if self._closed:
                return None
            raise


def translate(error: Exception, endpoint: Endpoint, *, doing: str = "") -> DevbayError | None:
    """A library's error as ours, or None for what is no engine's error (a mistake in the caller)."""
    import requests
    import urllib3
    from docker.errors import APIError, DockerException

    if isinstance(error, EngineRefusal):
        return failure_from_text(error.text, doing=doing, status=error.status)
    if isinstance(error, APIError):
        text = str(error.explanation or error)
        return failure_from_text(text, doing=doing, status=error.status_code)
    transport = (requests.RequestException, urllib3.exceptions.HTTPError, OSError)
    if isinstance(error, DockerException):
        return failure_from_text(str(error), doing=doing)
    if isinstance(error, transport):
        return unreachable(endpoint.host, connection_reason(error), context=endpoint.name, doing=doing)
    return None


def connection_reason(error: BaseException) -> str:
    """Why a connection failed, in a few words."""
    chain = list(causes(error))
    for cause in chain:
        if isinstance(cause, FileNotFoundError):
            return "its socket does not exist"
        if isinstance(cause, PermissionError):
            return "permission denied; this user may not use its socket (is it in the group `docker`?)"
        if isinstance(cause, ConnectionRefusedError):
            return "connection refused"
        if isinstance(cause, TimeoutError):
            return "no answer in time"
    names = {type(cause).__name__ for cause in chain}
    if any("Timeout" in name for name in names):
        return "no answer in time"
    if names & {"ConnectionResetError", "BrokenPipeError", "ProtocolError", "RemoteDisconnected"}:
        return "it closed the connection"
    return str(chain[-1]) or type(chain[-1]).__name__


def classify(info: Mapping[str, Any], *, platform: str) -> EngineInfo:
    """`GET /info` as `EngineInfo`. An engine used from macOS is in a virtual machine: class `desktop`."""
    security = [option.split(",")[0] for option in info.get("SecurityOptions") or []]
    system = str(info.get("OperatingSystem", ""))
    kind: EngineKind = "rootful"
    if "name=userns" in security:
        kind = "userns-remap"
    elif "name=rootless" in security:
        kind = "rootless"
    elif "Docker Desktop" in system or platform == "darwin":
        kind = "desktop"
    return EngineInfo(
        kind=kind,
        version=str(info.get("ServerVersion", "")),
        os_type=str(info.get("OSType", "linux")),
        architecture=str(info.get("Architecture", "")),
        cgroup_version=str(info.get("CgroupVersion", "1")),
        storage_driver=str(info.get("Driver", "")),
        cpus=int(info.get("NCPU", 0)),
        memory_bytes=int(info.get("MemTotal", 0)),
        limits=bool(info.get("MemoryLimit") and info.get("CpuCfsQuota")),
        init=bool(info.get("InitBinary")),
        root_dir=str(info.get("DockerRootDir", "")),
    )


def _connect(endpoint: Endpoint) -> Any:
    import docker
    import requests.adapters
    from docker.constants import DEFAULT_DOCKER_API_VERSION

    tls: Any = False
    if endpoint.tls:
        pair = (endpoint.cert, endpoint.key) if endpoint.cert and endpoint.key else None
        tls = docker.tls.TLSConfig(client_cert=pair, ca_cert=endpoint.ca, verify=endpoint.verify)

    def client_of(version: str, timeout_s: int) -> Any:
        client = docker.APIClient(
            base_url=endpoint.host,
            version=version,
            timeout=timeout_s,
            tls=tls,
            max_pool_size=POOL_SIZE,
            use_ssh_client=endpoint.host.startswith("ssh://"),
        )
        client.headers["Accept-Encoding"] = "identity"  # archives come compressed otherwise, at a price
        # Proxies and CA bundles in the daemon's environment are not the caller's. `version="auto"` would ask
        # before this is set, and fail where REQUESTS_CA_BUNDLE hides the context's own CA.
        client.trust_env = False
        if endpoint.host.startswith("tcp://"):
            # the package applies max_pool_size to unix sockets only
            for scheme in ("http://", "https://"):
                client.mount(scheme, requests.adapters.HTTPAdapter(pool_maxsize=POOL_SIZE))
        return client

    asking = client_of(DEFAULT_DOCKER_API_VERSION, CHECK_TIMEOUT_S)
    client = client_of(asking.version(api_version=False)["ApiVersion"], CALL_TIMEOUT_S)
    asking.close()
    config = Path(endpoint.config_dir) / "config.json"
    if endpoint.config_dir and config.is_file():
        client.reload_config(str(config))
    return client


def _explanation(response: Any) -> str:
    try:
        document = response.json()
    except ValueError:
        return str(response.text)
    return str(document.get("message", document)) if isinstance(document, dict) else str(document)

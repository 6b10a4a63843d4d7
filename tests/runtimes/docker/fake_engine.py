"""The one fake of an engine: answers over a unix socket, so that the client's transport is the real one."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from devbay.runtimes.docker.contexts import Endpoint
from devbay.runtimes.docker.engine import Engine

INFO = {"OSType": "linux", "NCPU": 2, "MemTotal": 8 << 30, "MemoryLimit": True, "CpuCfsQuota": True,
        "SecurityOptions": ["name=seccomp,profile=builtin"], "InitBinary": "docker-init"}  # fmt: skip
Answer = Callable[["Handler"], None]


class FakeEngine:
    """`answers` maps "METHOD /path" (without the version) to a document, (status, document) or a function."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "engine.sock"
        self.answers: dict[str, Any] = {
            "GET /version": {"ApiVersion": "1.45"},
            "GET /_ping": {},
            "GET /info": INFO,
        }
        self.asked: list[tuple[str, dict[str, str], Any]] = []
        self._server: Server | None = None

    @property
    def engine(self) -> Engine:
        return Engine(Endpoint("default", f"unix://{self.path}"))

    def start(self) -> None:
        self.path.unlink(missing_ok=True)
        self._server = Server(str(self.path), Handler)
        self._server.fake = self
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server.drop_connections()
            self._server = None
        self.path.unlink(missing_ok=True)


class Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64
    fake: FakeEngine

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.connections: list[Any] = []

    def process_request(self, request: Any, client_address: Any) -> None:
        self.connections.append(request)
        super().process_request(request, client_address)

    def drop_connections(self) -> None:
        for connection in self.connections:
            try:
                connection.shutdown(2)
            except OSError:
                continue


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def address_string(self) -> str:
        return "unix"

    def log_message(self, *_arguments: Any) -> None:
        return

    def reply(self, document: Any, status: int = 200) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def chunks(self) -> Callable[[bytes], None]:
        """Begin an answer of unknown length; the function writes one chunk of it (empty: the end)."""
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()

        def write(data: bytes) -> None:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
            self.wfile.flush()

        return write

    def _answer(self) -> None:
        parts = urlsplit(self.path)
        path = parts.path.split("/", 2)[2] if parts.path.startswith("/v1.") else parts.path.lstrip("/")
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        size = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(size)
        key = f"{self.command} /{path}"
        fake = self.server.fake
        is_json = self.headers.get("Content-Type") == "application/json"
        fake.asked.append((key, query, json.loads(body) if is_json and body else body))
        answer = fake.answers.get(key, (404, {"message": f"No such container: {path}"}))
        if callable(answer):
            answer(self)
        elif isinstance(answer, tuple):
            self.reply(answer[1], answer[0])
        else:
            self.reply(answer)

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _answer  # noqa: N815

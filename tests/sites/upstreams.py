"""What stands for the services of a bay: an HTTP server with an event stream, and a WebSocket echo."""

import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from websockets.sync.server import ServerConnection, serve


class Handler(BaseHTTPRequestHandler):
    """`/events` is an endless event stream; everything else answers with the request's headers."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        if self.path == "/events":
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            with contextlib.suppress(OSError):
                while True:
                    self.wfile.write(b"data: tick\n\n")
                    time.sleep(0.05)
            return
        body = json.dumps(dict(self.headers)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextlib.contextmanager
def http_upstream() -> Iterator[int]:
    """The port of a running HTTP server."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield server.server_port
    server.shutdown()
    server.server_close()


@contextlib.contextmanager
def echo_upstream() -> Iterator[int]:
    """The port of a running WebSocket echo server."""

    def echo(connection: ServerConnection) -> None:
        for message in connection:
            connection.send(message)

    with serve(echo, "127.0.0.1", 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.socket.getsockname()[1]
        server.shutdown()


@dataclass
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: str


def ask(port: int, host: str, path: str = "/", *, method: str = "GET", **headers: str) -> Answer:
    """One request to the proxy on 127.0.0.1 with this Host."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request(method, path, headers={"Host": host, **headers})
        response = connection.getresponse()
        return Answer(response.status, response.headers, response.read().decode())
    finally:
        connection.close()


@dataclass
class EventStream:
    """Reads `/events` in the background and counts what came."""

    port: int
    host: str
    count: int = 0
    ended: bool = False
    _connection: http.client.HTTPConnection = field(init=False)

    def __post_init__(self) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        self._connection.request("GET", "/events", headers={"Host": self.host})
        self._response = self._connection.getresponse()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        with contextlib.suppress(OSError, ValueError, AttributeError, http.client.HTTPException):
            while self._response.readline():
                self.count += 1
        self.ended = True

    def goes_on(self) -> bool:
        """Whether more comes within two seconds."""
        before, deadline = self.count, time.monotonic() + 2
        while self.count < before + 4 and time.monotonic() < deadline:
            time.sleep(0.02)
        return self.count >= before + 4 and not self.ended

    def close(self) -> None:
        self._connection.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port

"""Ask a server once whether it is up, in its own protocol: what its client programs do, without them."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator
from http import client

LOOPBACK = "127.0.0.1"
TIMEOUT_S = 2.0


@contextlib.contextmanager
def _connected(port: int) -> Iterator[socket.socket]:
    with socket.create_connection((LOOPBACK, port), timeout=TIMEOUT_S) as connection:
        yield connection


def postgres(port: int, user: str) -> str | None:
    """As `pg_isready`: up is what answers a startup message otherwise than `cannot_connect_now` (57P03).

    Startup message and error fields: PostgreSQL documentation, 53.7 Message Formats.
    """
    body = struct.pack("!I", 196608) + b"user\0" + user.encode() + b"\0database\0postgres\0\0"
    try:
        with _connected(port) as connection:
            connection.sendall(struct.pack("!I", len(body) + 4) + body)
            answer = connection.recv(4096)
            if answer[:1] == b"R" and answer[5:9] == bytes(4):  # logged in; before that it would be logged
                connection.sendall(b"X\0\0\0\x04")
    except OSError as error:
        return _refused(port, error)
    if not answer:
        return "the server ended the connection"
    if answer[:1] == b"E" and b"\0C57P03\0" in answer:
        return "the server is starting up or shutting down"
    return None


def redis(port: int, password: str | None, user: str | None = None) -> str | None:
    """`PING`, after `AUTH` where there is a password; `LOADING` is no answer."""
    words = [["AUTH", *([user] if user else []), password]] if password else []
    try:
        with _connected(port) as connection:
            for command in (*words, ["PING"]):
                parts = [word.encode() for word in command]
                connection.sendall(
                    b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts)
                )
                answer = connection.recv(4096)
                if answer.startswith(b"-NOAUTH") and not password:
                    return None  # the server is up, and its client would say so without an error
                if not answer.startswith(b"+"):
                    return (
                        answer.decode("utf-8", "replace").strip("-\r\n") or "the server ended the connection"
                    )
    except OSError as error:
        return _refused(port, error)
    return None


def mysql(port: int) -> str | None:
    """As `mysqladmin ping`: up is what greets with protocol 10, or refuses for a reason of its own."""
    try:
        with _connected(port) as connection:
            answer = connection.recv(4096)
    except OSError as error:
        return _refused(port, error)
    return None if len(answer) > 4 and answer[4] in {0x0A, 0xFF} else "the server does not greet"


def memcached(port: int) -> str | None:
    """`version` of the text protocol."""
    try:
        with _connected(port) as connection:
            connection.sendall(b"version\r\n")
            answer = connection.recv(256)
    except OSError as error:
        return _refused(port, error)
    return None if answer.startswith(b"VERSION") else "the server does not tell its version"


def http(port: int, path: str) -> str | None:
    """A status below 400 on the path."""
    connection = client.HTTPConnection(LOOPBACK, port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", path)
        status = connection.getresponse().status
    except (OSError, client.HTTPException) as error:
        return f"port {port}: {error}"
    finally:
        connection.close()
    return None if status < 400 else f"{path} answers {status}"


def _refused(port: int, error: OSError) -> str:
    return f"port {port}: {error.strerror or error}"

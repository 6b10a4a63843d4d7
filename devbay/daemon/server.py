"""The socket: who may connect, and where each message of a connection goes."""

from __future__ import annotations

import json
import logging
import os
import socket
import struct
import sys
from collections.abc import Mapping
from typing import Any

import anyio
from anyio import to_thread
from anyio.abc import SocketAttribute, SocketStream, TaskGroup

from devbay.daemon.lines import PARSE_ERROR, Refusal, lines, parse
from devbay.daemon.private import PREFIX, serve_private
from devbay.daemon.requests import Requests
from devbay.imports import load
from devbay.tools.registry import PrivateHandler, Registry

logger = logging.getLogger(__name__)


class Server:
    """Serves connections. `private` holds the handlers of `devbay/*` methods by full name."""

    def __init__(self, registry: Registry, requests: Requests) -> None:
        self.registry = registry
        self.requests = requests
        self.private: Mapping[str, PrivateHandler] = {}
        self.connections = 0
        self._mcp: Any = None
        self._mcp_lock = anyio.Lock()

    async def handle(self, stream: SocketStream) -> None:
        """Serve one connection until the peer closes it; its unfinished requests are cancelled then."""
        async with stream:
            uid, pid = peer(stream.extra(SocketAttribute.raw_socket))  # noqa: S610 - not Django's
            if uid != os.getuid():
                logger.warning("refused a connection of uid %s", uid)
                return
            self.connections += 1
            try:
                await Connection(self, stream, pid).run()
            except Exception:
                logger.exception("a connection failed")
            finally:
                self.connections -= 1

    async def mcp(self) -> Any:
        """The MCP module and service (`module`, `service`), imported in a thread at the first use."""
        async with self._mcp_lock:
            if self._mcp is None:
                module = await to_thread.run_sync(load, "devbay.daemon.mcp_service")
                self._mcp = (module, module.McpService(self.registry, self.requests))
        return self._mcp


class Connection:
    """One connection: private methods to their handlers, everything else to the MCP loop."""

    def __init__(self, server: Server, stream: SocketStream, peer_pid: int | None) -> None:
        self._server = server
        self._stream = stream
        self._peer_pid = peer_pid
        self._write_lock = anyio.Lock()
        self._private: dict[str | int, anyio.CancelScope] = {}
        self._inbox: Any = None

    async def run(self) -> None:
        async with anyio.create_task_group() as group:
            async for line in lines(self._stream):
                message = line if isinstance(line, Refusal) else parse(line)
                if isinstance(line, bytes) and not line.strip():
                    continue
                if isinstance(message, Refusal):
                    await self.send(message.as_message())
                else:
                    await self._dispatch(message, group)
            group.cancel_scope.cancel()

    async def send(self, message: dict[str, Any]) -> None:
        """Write one message; a peer that is gone is noticed by the reader, not here."""
        try:
            data = json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
        except UnicodeEncodeError:  # a lone surrogate, from output that was no text
            data = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        async with self._write_lock:
            try:
                await self._stream.send(data)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                logger.debug("dropped a message: the peer is gone")

    async def _dispatch(self, message: dict[str, Any], group: TaskGroup) -> None:
        method = message.get("method", "")
        if method.startswith(PREFIX) and "id" in message:
            group.start_soon(self._serve_private, message)
        elif method.startswith(PREFIX):
            logger.debug("dropped the notification %s", method)
        elif method == "notifications/cancelled" and self._cancel_private(message):
            logger.debug("cancelled a private request")
        else:
            await self._to_mcp(message, group)

    async def _serve_private(self, message: dict[str, Any]) -> None:
        identity = message["id"]
        scope = self._private[identity] = anyio.CancelScope()
        try:
            with scope:
                handler = self._server.private.get(message["method"])
                await serve_private(message, handler, self._server.requests, self._peer_pid, self.send)
        finally:
            if self._private.get(identity) is scope:
                del self._private[identity]

    def _cancel_private(self, message: dict[str, Any]) -> bool:
        identity = (message.get("params") or {}).get("requestId")
        scope = self._private.get(identity) if isinstance(identity, str | int) else None
        if scope is not None:
            scope.cancel()
        return scope is not None

    async def _to_mcp(self, message: dict[str, Any], group: TaskGroup) -> None:
        module, service = await self._server.mcp()
        if self._inbox is None:
            self._inbox, inbox, outbox, replies = module.streams()
            group.start_soon(self._serve_mcp, service, inbox, outbox)
            group.start_soon(self._forward, module, replies)
        typed = module.to_session_message(message, self._peer_pid)
        if isinstance(typed, Refusal):
            if "method" not in message or "id" in message:
                await self.send(typed.as_message())
            return
        try:
            await self._inbox.send(typed)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            error = Refusal(PARSE_ERROR, "this connection's protocol loop has ended", message.get("id"))
            await self.send(error.as_message())

    async def _serve_mcp(self, service: Any, inbox: Any, outbox: Any) -> None:
        try:
            await service.serve(inbox, outbox)
        except Exception:
            logger.exception("the protocol loop of a connection failed")
            await self._stream.aclose()

    async def _forward(self, module: Any, replies: Any) -> None:
        async with replies:
            async for message in replies:
                await self.send(module.to_wire(message))


def peer(raw: socket.socket) -> tuple[int, int | None]:
    """(uid, pid) of the process at the other end, from the kernel."""
    if sys.platform == "darwin":
        # sys/un.h: LOCAL_PEERCRED 1 gives struct xucred (version, uid, ...), LOCAL_PEERPID 2 a pid
        _, uid = struct.unpack_from("II", raw.getsockopt(0, 1, 76))
        return uid, struct.unpack("i", raw.getsockopt(0, 2, 4))[0]
    pid, uid, _ = struct.unpack("iII", raw.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return uid, pid or None

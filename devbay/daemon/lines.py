"""Lines of JSON-RPC on a stream: cut, bounded, parsed, and refused with the protocol's own codes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, NoReturn

import anyio
from anyio.abc import ByteReceiveStream

MAX_LINE = 16 * 1024 * 1024
PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
DEVBAY_ERROR = -32000
"""Code of every `DevbayError` on a private method; `data` carries its fields."""


@dataclass(frozen=True)
class Refusal:
    """A line that is no message: the error to answer it with. `id` is None where none could be read."""

    code: int
    message: str
    id: str | int | None = None

    def as_message(self) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": self.id, "error": {"code": self.code, "message": self.message}}


async def lines(stream: ByteReceiveStream, limit: int = MAX_LINE) -> AsyncIterator[bytes | Refusal]:
    """The stream's lines without their ends; a line longer than `limit` is skipped and given as a Refusal.

    What stands after the last newline is half a message of a peer that died, and is dropped.
    """
    pending = bytearray()
    skipping = False
    while True:
        try:
            chunk = await stream.receive(65536)
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            return
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            pending += chunk[start:end]
            start = end + 1
            if not skipping and len(pending) <= limit:
                yield bytes(pending)
            elif not skipping:
                yield Refusal(INVALID_REQUEST, f"the message is longer than {limit} bytes")
            pending.clear()
            skipping = False
        if not skipping:
            pending += chunk[start:]
        if len(pending) > limit:
            pending.clear()
            skipping = True
            yield Refusal(INVALID_REQUEST, f"the message is longer than {limit} bytes")


def parse(line: bytes) -> dict[str, Any] | Refusal:
    """The message in a line, checked as far as JSON-RPC goes: `jsonrpc`, `id`, `method`, `params`."""
    try:
        message = json.loads(line.decode("utf-8"), parse_constant=_refuse_constant)
        if b"\\u" in line:
            json.dumps(message, ensure_ascii=False).encode("utf-8")
    except UnicodeError:
        return Refusal(PARSE_ERROR, "the message is not valid Unicode")
    except (ValueError, RecursionError) as error:
        return Refusal(PARSE_ERROR, f"the message is not JSON: {str(error)[:200]}")
    if isinstance(message, list):
        return Refusal(INVALID_REQUEST, "batches are not supported; send one message a line")
    if not isinstance(message, dict):
        return Refusal(INVALID_REQUEST, "a message is a JSON object")
    identity = message.get("id")
    known = identity if isinstance(identity, str | int) and not isinstance(identity, bool) else None
    if message.get("jsonrpc") != "2.0":
        return Refusal(INVALID_REQUEST, 'jsonrpc must be "2.0"', known)
    if "id" in message and known is None:
        return Refusal(INVALID_REQUEST, "id must be a string or an integer")
    if "method" in message and not isinstance(message["method"], str):
        return Refusal(INVALID_REQUEST, "method must be a string", known)
    if "method" not in message and not ("id" in message and ("result" in message or "error" in message)):
        return Refusal(INVALID_REQUEST, "the message is no request, notification or response", known)
    if message.get("params", {}) is None:
        del message["params"]
    if "method" in message and not isinstance(message.get("params", {}), dict):
        return Refusal(INVALID_PARAMS, "params must be an object", known)
    return message


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")

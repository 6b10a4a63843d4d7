"""The `devbay/*` methods: what is no tool (streams, approvals, the daemon itself), never listed to agents."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from anyio import from_thread

from devbay.daemon.lines import DEVBAY_ERROR, METHOD_NOT_FOUND
from devbay.daemon.requests import Requests, SendProgress
from devbay.errors import DevbayError
from devbay.jobs import Job
from devbay.tools.registry import PrivateHandler, internal_error

logger = logging.getLogger(__name__)
PREFIX = "devbay/"
ITEM = "notifications/devbay/item"
Send = Callable[[dict[str, Any]], Coroutine[Any, Any, None]]


async def serve_private(
    message: dict[str, Any],
    handler: PrivateHandler | None,
    requests: Requests,
    peer_pid: int | None,
    send: Send,
) -> None:
    """Answer one request. The items of a stream go out as notifications, then an empty result."""
    identity, method, params = message["id"], message["method"], message.get("params") or {}
    if handler is None:
        error = {"code": METHOD_NOT_FOUND, "message": f"there is no method {method[:80]}"}
        await send({"jsonrpc": "2.0", "id": identity, "error": error})
        return

    async def send_item(item: dict[str, Any]) -> None:
        await send({"jsonrpc": "2.0", "method": ITEM, "params": {"requestId": identity, "item": item}})

    def work(job: Job) -> dict[str, Any]:
        result = handler(requests.call(params, peer_pid, job), _own(params))
        if isinstance(result, dict):
            return result
        _pump(result, job, send_item)
        return {}

    try:
        result = await requests.in_thread(work, _progress(params, send))
        answer: dict[str, Any] = {"result": result}
    except DevbayError as error:
        answer = {"error": _wire_error(error)}
    except Exception as error:
        logger.exception("%s failed", method)
        answer = {"error": _wire_error(internal_error(method, error))}
    await send({"jsonrpc": "2.0", "id": identity, **answer})


def _pump(items: Iterator[dict[str, Any]], job: Job, send_item: Send) -> None:
    for item in items:
        job.check()
        from_thread.run(send_item, item)


def _own(params: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in params.items() if key != "_meta"}


def _progress(params: dict[str, Any], send: Send) -> SendProgress | None:
    meta = params.get("_meta")
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    if token is None:
        return None

    async def send_progress(progress: float, total: float | None, message: str) -> None:
        body = {"progressToken": token, "progress": progress, "message": message}
        body |= {} if total is None else {"total": total}
        await send({"jsonrpc": "2.0", "method": "notifications/progress", "params": body})

    return send_progress


def _wire_error(error: DevbayError) -> dict[str, Any]:
    data = error.as_dict() | {"exit_code": error.exit_code}
    return {"code": DEVBAY_ERROR, "message": error.message, "data": data}

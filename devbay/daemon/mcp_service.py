"""The MCP side of a connection, on the `mcp` package. Imported at the first MCP message: it costs 0.7 s."""

from __future__ import annotations

import logging
import time
from typing import Any

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from pydantic import ValidationError

import devbay
from devbay.daemon.lines import INVALID_PARAMS, INVALID_REQUEST, Refusal
from devbay.daemon.requests import Requests
from devbay.jobs import Job
from devbay.tools.registry import Outcome, Registry, Tool, UnknownTool

logger = logging.getLogger(__name__)
EXIT_CODE_KEY = "dev.devbay/exit_code"

INSTRUCTIONS = (
    "devbay gives every branch its own running instance (a bay). Order of work: repo_status; bay_create; "
    "edit files below the bay's `worktree`; bay_run_task for typed test results (while `status: running`, "
    "bay_run_result); bay_up after an edit that needs a restart; bay_logs; bay_destroy when done. "
    "`url` is for code on this machine, `public_url` for a browser. An error has a code and a next step."
)

Inbox = MemoryObjectSendStream[SessionMessage | Exception]


class McpService:
    """One MCP server for all connections; state is keyed on none of them."""

    def __init__(self, registry: Registry, requests: Requests) -> None:
        self._registry = registry
        self._requests = requests
        self._listing = types.ListToolsResult(tools=[_describe(tool) for tool in registry.tools.values()])
        self._server: Server[Any] = Server(
            "devbay",
            version=devbay.__version__,
            instructions=INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
        )
        self._server.middleware.clear()  # OpenTelemetry spans: nobody exports them here

    async def serve(
        self,
        inbox: MemoryObjectReceiveStream[SessionMessage | Exception],
        outbox: MemoryObjectSendStream[SessionMessage],
    ) -> None:
        """Serve one connection, in the era of its first request, until the inbox closes."""
        options = self._server.create_initialization_options()
        await self._server.run(inbox, outbox, options)

    async def _list_tools(
        self, context: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return self._listing

    async def _call_tool(
        self, context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        def work(job: Job) -> Outcome:
            call = self._requests.call(context.params, context.request, job)
            return self._registry.call(params.name, params.arguments or {}, call)

        meta = (context.params or {}).get("_meta") or {}
        wants_progress = meta.get("progressToken") is not None
        try:
            tool = self._registry.get(params.name)
        except UnknownTool as error:
            raise MCPError(INVALID_PARAMS, f"{error.message}; {error.next}", error.as_dict()) from error
        began = time.monotonic()
        outcome = await self._requests.in_thread(
            work, context.session.report_progress if wants_progress else None
        )
        verdict = outcome.text.split(":", 1)[0] if outcome.is_error else "ok"
        level = logging.DEBUG if tool.annotations.read_only and not outcome.is_error else logging.INFO
        logger.log(level, "%s %s in %d ms", params.name, verdict, (time.monotonic() - began) * 1000)
        return _result(outcome)


def to_session_message(message: dict[str, Any], peer_pid: int | None) -> SessionMessage | Refusal:
    """A checked JSON-RPC message as the package wants it, with the peer's process attached."""
    try:
        typed = types.jsonrpc_message_adapter.validate_python(message, by_name=False)
    except ValidationError:
        return Refusal(INVALID_REQUEST, "the message does not follow JSON-RPC 2.0", message.get("id"))
    return SessionMessage(typed, ServerMessageMetadata(request_context=peer_pid))


def to_wire(message: SessionMessage) -> dict[str, Any]:
    """What goes to the socket for a message of the package."""
    return message.message.model_dump(by_alias=True, exclude_unset=True)


def streams() -> tuple[Inbox, Any, Any, Any]:
    """(inbox to write, inbox to read, outbox to write, outbox to read) of one connection."""
    inbox_in, inbox_out = anyio.create_memory_object_stream[SessionMessage | Exception](64)
    outbox_in, outbox_out = anyio.create_memory_object_stream[SessionMessage](64)
    return inbox_in, inbox_out, outbox_in, outbox_out


def _result(outcome: Outcome) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=outcome.text)],
        structured_content=outcome.structured,
        is_error=outcome.is_error,
        _meta={EXIT_CODE_KEY: outcome.exit_code} if outcome.is_error else None,
    )


def _describe(tool: Tool[Any, Any]) -> types.Tool:
    hints = tool.annotations
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema(),
        output_schema=tool.output_schema(),
        annotations=types.ToolAnnotations(
            read_only_hint=hints.read_only,
            destructive_hint=hints.destructive,
            idempotent_hint=hints.idempotent,
            open_world_hint=False,
        ),
    )

"""The typed tool seam: one Tool is a name, two schemas and a function; everything else calls through here.

The MCP service, the command line (over the socket) and the tests call the same `Registry.call`, so they
cannot disagree on arguments, answers or errors.
"""

from __future__ import annotations

import difflib
import errno
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from devbay.answers import Answer
from devbay.errors import WORK_FAILED, WRONG_CALL, DevbayError
from devbay.jobs import Job
from devbay.tools.schemas import input_schema, output_schema

logger = logging.getLogger(__name__)


class Arguments(BaseModel):
    """Base of every tool's arguments: what is not declared is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True)
class Call:
    """Who calls, from where, and on what.

    cwd: the caller's directory. env: the caller's allow-listed environment (`devbay.client`).
    core: the daemon's services. peer_pid: the process at the other end of the socket, None if unknown.
    """

    job: Job
    cwd: Path
    env: Mapping[str, str]
    core: Any
    peer_pid: int | None = None


PrivateHandler = Callable[[Call, dict[str, Any]], "dict[str, Any] | Iterator[dict[str, Any]]"]


class Services(Protocol):
    """What the daemon hosts; `devbay.core.Core` is the real one.

    private: handlers of `devbay/*` methods by full name. A dict is the result; an iterator is a stream.
    """

    private: Mapping[str, PrivateHandler]

    def start(self) -> None:
        """Open the store, take up unfinished work. Must work without an engine."""

    def close(self, *, stop_proxy: bool) -> None:
        """Let go of everything; what runs in containers goes on."""

    def idle(self) -> bool:
        """True if there is no bay and no run, so that nothing needs the daemon."""

    def busy(self) -> list[str]:
        """Names of background work (runs, creations) that a restart would interrupt."""


@dataclass(frozen=True)
class Annotations:
    """Hints of the protocol (`ToolAnnotations`): what a call may do."""

    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False


A = TypeVar("A", bound=BaseModel)
R = TypeVar("R", bound=Answer)


@dataclass(frozen=True)
class Tool(Generic[A, R]):
    """One tool. `text` is the dense form of the answer, for clients that show nothing else."""

    name: str
    title: str
    description: str
    arguments: type[A]
    answer: type[R]
    run: Callable[[Call, A], R]
    text: Callable[[R], str]
    annotations: Annotations = field(default_factory=Annotations)

    def input_schema(self) -> dict[str, Any]:
        return input_schema(self.arguments)

    def output_schema(self) -> dict[str, Any]:
        return output_schema(self.answer)


@dataclass(frozen=True)
class Outcome:
    """How a call ended: `structured` is the answer, or `{"error": {...}}`; exit_code is 0 for an answer."""

    structured: dict[str, Any]
    text: str
    exit_code: int = 0

    @property
    def is_error(self) -> bool:
        return self.exit_code != 0


class UnknownTool(DevbayError):
    """No tool of that name; the protocol wants this as an error of the request, not of a tool."""


class Registry:
    """The tools there are, by name."""

    def __init__(self, tools: Iterable[Tool[Any, Any]]) -> None:
        self.tools: dict[str, Tool[Any, Any]] = {}
        for tool in tools:
            if tool.name in self.tools:
                raise ValueError(f"two tools are named {tool.name}")
            self.tools[tool.name] = tool

    def get(self, name: str) -> Tool[Any, Any]:
        """The tool; raises `unknown_tool` naming near matches."""
        tool = self.tools.get(name)
        if tool is None:
            near = difflib.get_close_matches(name, self.tools, 3, 0.5)
            hint = f"did you mean {' or '.join(near)}?" if near else f"tools: {', '.join(self.tools)}"
            raise UnknownTool("unknown_tool", f"there is no tool {name[:80]!r}", next=hint)
        return tool

    def call(self, name: str, raw: Mapping[str, Any], call: Call) -> Outcome:
        """Check the arguments, run the tool and give its answer or error; raises `UnknownTool` only."""
        tool = self.get(name)
        try:
            answer = tool.run(call, parse_arguments(tool, raw))
            return Outcome(answer.as_json(), tool.text(answer))
        except DevbayError as error:
            return error_outcome(error)
        except Exception as error:
            logger.exception("tool %s failed", name)
            return error_outcome(internal_error(name, error))


def parse_arguments(tool: Tool[A, Any], raw: Mapping[str, Any]) -> A:
    """`raw` as the tool's arguments; raises `bad_arguments` naming each field and what it may be."""
    try:
        return tool.arguments.model_validate(dict(raw))
    except ValidationError as error:
        known = list(tool.arguments.model_fields)
        problems = [_problem(item, known) for item in error.errors(include_url=False, include_context=False)]
        raise DevbayError(
            "bad_arguments",
            f"{tool.name}: {'; '.join(problems)}",
            next=f"arguments of {tool.name}: {_signature(tool.arguments)}",
            exit_code=WRONG_CALL,
        ) from error


def error_outcome(error: DevbayError) -> Outcome:
    """An error in the form every caller gets (decision 18, and the text of decision 19)."""
    text = f"{error.code}: {error.message}"
    if error.next:
        text += f"\nnext: {error.next}"
    return Outcome({"error": error.as_dict()}, text, error.exit_code or WORK_FAILED)


def internal_error(what: str, error: Exception) -> DevbayError:
    """A fault of devbay itself, as callers see it; the traceback is in the daemon's log.

    A disk that takes nothing more can stop any write, and is no fault of devbay.
    """
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
        return DevbayError(
            "disk_failed",
            f"{what}: {error.strerror}" + (f": {error.filename}" if error.filename else ""),
            next="make room, then repeat (`devbay gc --all` removes caches and unused templates)",
            exit_code=WORK_FAILED,
        )
    return DevbayError(
        "internal_error",
        f"{what} failed inside devbay: {type(error).__name__}: {str(error)[:300]}",
        next="the daemon's log has the details (`devbay daemon status` names it)",
        exit_code=WORK_FAILED,
    )


def _problem(item: Any, known: list[str]) -> str:
    where = ".".join(str(part) for part in item["loc"]) or "the arguments"
    if item["type"] == "missing":
        return f"{where!r} is required"
    if item["type"] == "extra_forbidden":
        near = difflib.get_close_matches(where, known, 1, 0.5)
        return f"{where!r} is no argument" + (f", did you mean {near[0]!r}?" if near else "")
    message = item["msg"].removeprefix("Value error, ")
    given = "" if item["type"] == "value_error" else f" (given {repr(item.get('input'))[:60]})"
    return f"{where!r}: {message[:1].lower()}{message[1:]}{given}"


def _signature(arguments: type[BaseModel]) -> str:
    fields = arguments.model_fields
    return ", ".join(name if info.is_required() else f"[{name}]" for name, info in fields.items()) or "none"

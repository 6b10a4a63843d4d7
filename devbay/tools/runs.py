"""Tools about runs: run a task, read its result, read logs."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from devbay.answers import LogsAnswer, RunResult
from devbay.reports import dense_text
from devbay.tasks.history import baseline
from devbay.tools.fields import DEFAULT_WAIT_S, BayArgument, Repo, WaitS
from devbay.tools.registry import Annotations, Arguments, Call, Tool


class BayRunTaskArguments(Arguments):
    bay: BayArgument
    task: Annotated[str, Field(min_length=1, max_length=200, description="A task of devbay.yaml")]
    repo: Repo = None
    args: Annotated[
        list[Annotated[str, Field(max_length=8192)]] | None,
        Field(max_length=256, description="Appended to the task's command, such as one test file"),
    ] = None
    only_failed: Annotated[bool, Field(description="Rerun what failed in the task's last run here")] = False
    compare_to: Annotated[
        str | None,
        Field(max_length=200, description="Bay, run id or `base` (base commit): say what is new and fixed"),
    ] = None
    timeout_s: Annotated[float | None, Field(gt=0, le=86400, description="Replaces the task's limit")] = None
    wait_s: WaitS = DEFAULT_WAIT_S


class BayRunResultArguments(Arguments):
    run: Annotated[str, Field(min_length=1, max_length=100, description="Id from bay_run_task")]
    repo: Repo = None
    wait_s: WaitS = DEFAULT_WAIT_S
    failures_from: Annotated[int, Field(ge=0, description="Skip this many failures")] = 0


class BayLogsArguments(Arguments):
    bay: BayArgument
    repo: Repo = None
    service: Annotated[str | None, Field(description="Default: all services")] = None
    run: Annotated[str | None, Field(description="Output of this run instead of services")] = None
    lines: Annotated[int, Field(ge=1, le=2000, description="At most this many, the newest")] = 100
    since: Annotated[str | None, Field(description="ISO 8601 time, or an age such as 30s, 5m, 2h")] = None
    grep: Annotated[str | None, Field(max_length=500, description="Regular expression to keep lines by")] = (
        None
    )
    cursor: Annotated[str | None, Field(max_length=200, description="Go on after an earlier answer")] = None


def tools(core: Any) -> list[Tool[Any, Any]]:
    def run_task(call: Call, given: BayRunTaskArguments) -> RunResult:
        caller = core.caller(call)
        bay = core.bays.open(caller, given.bay, given.repo)
        core.bays.touch(bay)

        def other(name: str) -> Any:
            return core.bays.open(caller, name, given.repo)

        against = None
        if given.compare_to is not None:
            against = baseline(core.parts.store, bay, given.task, given.compare_to, other)
        return core.runs.start(  # type: ignore[no-any-return]
            caller, bay, given.task, args=tuple(given.args or ()), timeout_s=given.timeout_s,
            wait_s=given.wait_s, only_failed=given.only_failed, against=against,
        )  # fmt: skip

    def run_result(call: Call, given: BayRunResultArguments) -> RunResult:
        return core.runs.result(  # type: ignore[no-any-return]
            core.caller(call), given.run, wait_s=given.wait_s, failures_from=given.failures_from
        )

    def logs(call: Call, given: BayLogsArguments) -> LogsAnswer:
        caller = core.caller(call)
        bay = core.bays.open(caller, given.bay, given.repo)
        return core.logs.read(  # type: ignore[no-any-return]
            bay, service=given.service, run=given.run, lines=given.lines, since=given.since,
            grep=given.grep, cursor=given.cursor,
        )  # fmt: skip

    return [
        Tool(
            name="bay_run_task",
            title="Run a task",
            description="Run tests or checks in a bay instead of running the command yourself. Starts only"
            " the services the task needs; failures come back with file, line and assertion.",
            arguments=BayRunTaskArguments,
            answer=RunResult,
            run=run_task,
            text=dense_text,
        ),
        Tool(
            name="bay_run_result",
            title="Result of a run",
            description="Wait for a run that was still going, or read more of its failures.",
            arguments=BayRunResultArguments,
            answer=RunResult,
            run=run_result,
            text=dense_text,
            annotations=Annotations(read_only=True, idempotent=True),
        ),
        Tool(
            name="bay_logs",
            title="Logs",
            description="Output of a bay's services, or of one run; use grep and lines to ask for less.",
            arguments=BayLogsArguments,
            answer=LogsAnswer,
            run=logs,
            text=_logs_text,
            annotations=Annotations(read_only=True, idempotent=True),
        ),
    ]


def _logs_text(answer: LogsAnswer) -> str:
    several = len({line.service for line in answer.lines}) > 1
    lines = [f"{line.service}: {line.text}" if several else line.text for line in answer.lines]
    if answer.dropped:
        lines.insert(0, f"({answer.dropped} earlier lines not shown)")
    return "\n".join(lines) or "no output"

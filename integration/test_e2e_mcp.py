"""MCP through `devbay mcp`, with the official client, in the old and the new era of the protocol."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from integration.house import COMMAND, House, wait_for
from integration.repositories import TINY

RUNTIMES = ("docker", "host")
TOOLS = {
    "repo_status", "manifest_validate", "bay_create", "bay_list", "bay_status", "bay_up", "bay_rest",
    "bay_run_task", "bay_run_result", "bay_logs", "bay_url", "bay_destroy",
}  # fmt: skip
ERAS = {"new": "2026-07-28", "old": "legacy"}


@pytest.fixture(scope="module")
def repository(make: Callable[..., Path]) -> Path:
    path: Path = make("tiny", "mcp", TINY + '  nap: {run: [sleep, "60"], needs: []}\n')
    return path


@pytest.fixture(params=ERAS)
def talk(request: pytest.FixtureRequest, house: House, repository: Path) -> Callable[..., Any]:
    """`talk(conversation)`: run an async function with a client of this era that stands in the repository."""

    def run(conversation: Callable[[Client], Awaitable[Any]]) -> Any:
        async def main() -> Any:
            server = StdioServerParameters(
                command=COMMAND[0], args=["mcp"], env=house.env, cwd=str(repository)
            )
            async with Client(stdio_client(server), mode=ERAS[request.param]) as client:
                return await conversation(client)

        return anyio.run(main)

    return run


def answer(result: Any) -> dict[str, Any]:
    assert not result.is_error, result.content
    found: dict[str, Any] = result.structured_content
    return found


def test_the_tools_are_listed_with_schemas_and_hints_within_their_budget(talk: Callable[..., Any]):
    async def conversation(client: Client) -> Any:
        return (await client.list_tools()).tools

    tools = talk(conversation)
    assert {tool.name for tool in tools} >= TOOLS
    assert all(tool.output_schema and tool.annotations for tool in tools)
    shown = [
        {
            "name": tool.name,
            "title": tool.title,
            "description": tool.description,
            "inputSchema": tool.input_schema,
        }
        for tool in tools
    ]
    assert len(json.dumps(shown)) < 16_000
    assert len(json.dumps([tool.output_schema for tool in tools])) < 20_000


def test_the_main_job_of_an_agent(talk: Callable[..., Any], house: House):
    async def conversation(client: Client) -> None:
        status = answer(await client.call_tool("repo_status", {}))
        assert (status["ready"], status["tasks"]) == (True, ["hello", "with-web", "nap"])
        bay = answer(await client.call_tool("bay_create", {"name": "agent"}))
        assert bay["state"] == "running"
        run = await client.call_tool("bay_run_task", {"bay": "agent", "task": "with-web"})
        assert answer(run)["status"] == "passed"
        assert len(json.dumps(answer(run))) < 600
        assert "passed" in run.content[0].text
        logs = answer(await client.call_tool("bay_logs", {"bay": "agent", "run": answer(run)["run"]}))
        assert [line["text"] for line in logs["lines"]] == ["tiny"]
        url = answer(await client.call_tool("bay_url", {"bay": "agent"}))
        assert url["url"].startswith("http://127.0.0.1:")
        gone = answer(await client.call_tool("bay_destroy", {"bay": "agent"}))
        assert gone["destroyed"] is True
        assert answer(await client.call_tool("bay_list", {})) == {"bays": []}

    talk(conversation)
    assert house.objects() == []


def test_progress_is_reported_while_a_bay_is_made(talk: Callable[..., Any], house: House, repository: Path):
    async def conversation(client: Client) -> list[str]:
        told: list[str] = []

        async def progress(done: float, total: float | None, message: str | None) -> None:
            told.append(message or "")

        await client.call_tool("bay_create", {"name": "slow"}, progress_callback=progress)
        return told

    told = talk(conversation)
    assert any("web" in message for message in told)
    house.devbay("rm", "slow", cwd=repository)


def test_a_wrong_call_is_an_error_with_a_code_and_what_to_do_next(talk: Callable[..., Any]):
    async def conversation(client: Client) -> None:
        result = await client.call_tool("bay_status", {"bay": "nosuch"})
        assert result.is_error
        assert "unknown_bay" in result.content[0].text
        assert "bay_create" in result.content[0].text
        result = await client.call_tool("bay_create", {"name": "x", "colour": "red"})
        assert result.is_error
        assert "colour" in result.content[0].text

    talk(conversation)


def test_requests_of_one_connection_run_side_by_side(
    talk: Callable[..., Any], house: House, repository: Path
):
    async def conversation(client: Client) -> None:
        await client.call_tool("bay_create", {"name": "busy"})

        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(client.call_tool, "bay_run_task", {"bay": "busy", "task": "nap"})
            with anyio.fail_after(30):  # a nap takes longer
                while len(house.runs()) < 3:
                    await anyio.sleep(0.05)
                assert answer(await client.call_tool("bay_list", {}))["bays"]
            group.cancel_scope.cancel()

    talk(conversation)
    gone = "the runs of the cancelled requests to end"
    wait_for(lambda: not house.runs(everything=True), gone)
    house.devbay("rm", "busy", cwd=repository)


def test_a_restarted_daemon_is_met_again_on_the_same_pipe(talk: Callable[..., Any], house: House):
    async def conversation(client: Client) -> None:
        assert answer(await client.call_tool("bay_list", {})) == {"bays": []}
        await anyio.to_thread.run_sync(house.kill_daemon)
        await anyio.sleep(0.3)  # a request that the dead daemon was sent is answered with an error
        assert answer(await client.call_tool("bay_list", {})) == {"bays": []}

    talk(conversation)


def test_the_pipe_ends_with_its_agent(house: House, repository: Path):
    process = subprocess.Popen(
        [*COMMAND, "mcp"], cwd=repository, env=house.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    process.stdin.close()
    process.wait(timeout=10)
    assert process.returncode == 0
    assert process.stdout is not None
    process.stdout.close()


def test_an_agent_that_is_killed_leaves_no_pipe(house: House, repository: Path):
    script = f'{COMMAND[0]!r} mcp <"$0" >/dev/null & echo $!; wait'
    fifo = house.root / "agent"
    os.mkfifo(fifo)
    agent = subprocess.Popen(
        ["sh", "-c", script.replace("'", '"'), str(fifo)], cwd=repository, env=house.env,
        stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert agent.stdout is not None
    pid = int(agent.stdout.readline())
    writer = os.open(fifo, os.O_WRONLY)
    os.kill(agent.pid, signal.SIGKILL)
    agent.wait(timeout=10)
    os.close(writer)
    wait_for(lambda: not Path(f"/proc/{pid}").exists() or _zombie(pid), "the pipe to end")
    agent.stdout.close()
    fifo.unlink()


def _zombie(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"

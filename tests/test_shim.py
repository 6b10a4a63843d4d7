import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from devbay.shim import Lines
from tests.daemon import fake
from tests.daemon.house import ENVELOPE, House, house, until

INITIALIZE = {
    "jsonrpc": "2.0", "id": 0, "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
    },
}  # fmt: skip
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


class Agent:
    """A client that talks to the pipe as a process."""

    def __init__(self, home: House, cwd: Path, **options: str) -> None:
        self.unread = b""
        code = (
            f"import sys; sys.path.insert(0, {str(fake.ROOT)!r}); from devbay.shim import main\n"
            f"raise SystemExit(main({fake.argv(**options)!r}))"
        )
        self.process = subprocess.Popen(
            [sys.executable, "-c", code], env=home.env, cwd=cwd,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def send(self, message: dict[str, Any] | bytes) -> None:
        assert self.process.stdin
        data = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def receive(self, seconds: float = 20) -> dict[str, Any]:
        assert self.process.stdout
        while b"\n" not in self.unread:
            assert select.select([self.process.stdout], [], [], seconds)[0], "the pipe does not answer"
            chunk = os.read(self.process.stdout.fileno(), 65536)
            assert chunk, "the pipe ended"
            self.unread += chunk
        line, _, self.unread = self.unread.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    def ask(self, message: dict[str, Any] | bytes) -> dict[str, Any]:
        self.send(message)
        return self.receive()

    def call(self, identity: Any, tool: str, arguments: dict[str, Any], **meta: Any) -> None:
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        if meta:
            params["_meta"] = meta
        self.send({"jsonrpc": "2.0", "id": identity, "method": "tools/call", "params": params})

    def start(self) -> None:
        self.ask(INITIALIZE)
        self.send(INITIALIZED)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[House]:
    with house(tmp_path / "user") as found:
        yield found


@pytest.fixture
def agent(home: House, tmp_path: Path) -> Iterator[Agent]:
    agent = Agent(home, tmp_path)
    yield agent
    close(agent)


def close(agent: Agent) -> None:
    agent.process.kill()
    agent.process.wait()
    for stream in (agent.process.stdin, agent.process.stdout, agent.process.stderr):
        assert stream
        with contextlib.suppress(BrokenPipeError):
            stream.close()


def test_an_old_client_gets_its_directory_and_environment_to_the_tools(agent: Agent, tmp_path: Path) -> None:
    agent.start()
    agent.call(1, "echo", {"text": "hi"})
    found = agent.receive()["result"]["structuredContent"]
    assert found["cwd"] == str(tmp_path)
    assert found["env"]["PATH"] == os.environ["PATH"]


def test_a_new_client_keeps_its_own_meta(agent: Agent, tmp_path: Path) -> None:
    agent.call(1, "wait", {"seconds": 0.2}, **ENVELOPE, progressToken="p")
    assert agent.receive()["params"]["progressToken"] == "p"
    while "id" not in (message := agent.receive()):
        pass
    assert message["result"]["structuredContent"]["cwd"] == str(tmp_path)


def test_a_restarted_daemon_is_found_again_and_knows_the_client(agent: Agent, home: House) -> None:
    agent.start()
    for number in range(2):
        pid = home.pid()
        assert pid
        os.kill(pid, signal.SIGKILL)
        until(lambda: home.pid() is None, "the daemon ends")
        agent.call(number + 1, "echo", {"text": "again"})
        answer = agent.receive()
        assert "result" in answer, answer
        assert (answer["id"], answer["result"]["structuredContent"]["text"]) == (number + 1, "again")


def test_a_daemon_that_dies_in_a_request_answers_it_with_an_error(agent: Agent, home: House) -> None:
    agent.start()
    agent.call(1, "wait", {"seconds": 30})
    agent.call("two", "wait", {"seconds": 30})
    time.sleep(0.5)
    os.kill(home.pid() or 0, signal.SIGKILL)
    answers = [agent.receive(), agent.receive()]
    assert {answer["id"] for answer in answers} == {1, "two"}
    assert answers[0]["error"]["data"]["code"] == "daemon_restarted"
    agent.call(3, "echo", {"text": "hi"})
    assert agent.receive()["id"] == 3


def test_a_cancelled_request_is_not_answered_when_the_daemon_dies(agent: Agent, home: House) -> None:
    agent.start()
    agent.call(1, "wait", {"seconds": 30})
    agent.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    agent.call(2, "echo", {"text": "hi"})
    assert agent.receive()["id"] == 2
    os.kill(home.pid() or 0, signal.SIGKILL)
    agent.call(3, "echo", {"text": "hi"})
    assert agent.receive()["id"] == 3


def test_a_daemon_that_cannot_start_is_an_error_and_the_pipe_lives(home: House, tmp_path: Path) -> None:
    home.env["LC_FAKE_FAIL"] = "typed"
    agent = Agent(home, tmp_path)
    try:
        for number in range(2):
            answer = agent.ask({**INITIALIZE, "id": number})
            assert answer["id"] == number
            assert answer["error"]["data"]["code"] == "store_too_new"
            assert "next: upgrade" in answer["error"]["message"]
        agent.send(INITIALIZED)
        agent.send(b"\n")
        assert agent.ask({**INITIALIZE, "id": "x"})["id"] == "x"
        assert agent.process.poll() is None
    finally:
        close(agent)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"garbage\n", -32700),
        (b"\x00\n", -32700),
        (b"[1]\n", -32600),
        (b"[" * 100_000 + b"\n", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"devbay/approve.grant"}\n', -32601),
        (b'{"jsonrpc":"2.0","id":1,"method":"no/such"}\n', -32601),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}\n', -32602),
        (b"x" * (17 * 1024 * 1024) + b"\n", -32600),
    ],
)
def test_bad_lines_get_a_typed_error_and_the_pipe_lives(agent: Agent, line: bytes, code: int) -> None:
    assert agent.ask(line)["error"]["code"] == code
    assert agent.ask(INITIALIZE)["id"] == 0


def test_a_private_method_never_reaches_the_daemon_through_the_pipe(agent: Agent, home: House) -> None:
    assert agent.ask({"jsonrpc": "2.0", "id": 1, "method": "devbay/stop"})["error"]["code"] == -32601
    assert home.pid() is None


def test_the_end_of_stdin_ends_the_pipe(agent: Agent) -> None:
    agent.start()
    assert agent.process.stdin
    agent.process.stdin.close()
    assert agent.process.wait(timeout=5) == 0


def test_requests_piped_in_at_once_are_answered_before_the_end(home: House, tmp_path: Path) -> None:
    home.client().__exit__()
    agent = Agent(home, tmp_path)
    call = {"jsonrpc": "2.0", "id": 7, "method": "tools/list"}
    text = b"".join(json.dumps(message).encode() + b"\n" for message in (INITIALIZE, INITIALIZED, call))
    output, errors = agent.process.communicate(text, timeout=20)
    assert [json.loads(line)["id"] for line in output.splitlines()] == [0, 7]
    assert errors == b""


def test_the_end_of_stdin_cancels_long_work(agent: Agent, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    agent.start()
    agent.call(1, "wait", {"seconds": 30, "mark": str(mark)})
    time.sleep(0.3)
    assert agent.process.stdin
    agent.process.stdin.close()
    until(mark.exists, "the work is cancelled")
    assert agent.process.wait(timeout=5) == 0


def test_a_reader_that_closes_stdout_ends_the_pipe_quietly(agent: Agent) -> None:
    agent.start()
    assert agent.process.stdout and agent.process.stdin and agent.process.stderr
    agent.process.stdout.close()
    assert agent.process.wait(timeout=5) == 0
    assert agent.process.stderr.read() == b""


def test_a_closed_stdin_and_stdout_end_the_pipe_quietly(home: House) -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(fake.ROOT)!r})\n"
        "from devbay.shim import main; raise SystemExit(main())"
    )
    script = f'exec "{sys.executable}" -c "$0" <&- >&-'
    found = subprocess.run(
        ["sh", "-c", script, code], env=home.env, capture_output=True, timeout=10, check=False
    )
    assert found.stderr == b""
    assert found.returncode == 0


def test_answers_larger_than_a_pipe_arrive_whole(agent: Agent) -> None:
    agent.start()
    text = "é" * 2_000_000
    agent.call(1, "echo", {"text": text})
    assert agent.receive()["result"]["structuredContent"]["text"] == text


def test_an_agent_that_writes_before_it_reads_does_not_hang(agent: Agent) -> None:
    agent.start()
    for number in range(50):
        agent.call(number + 1, "echo", {"text": "x" * 100_000})
    assert sorted(agent.receive()["id"] for _ in range(50)) == list(range(1, 51))


def test_the_pipe_is_small(agent: Agent) -> None:
    agent.start()
    status = Path(f"/proc/{agent.process.pid}/status").read_text()
    assert int(status.split("VmRSS:")[1].split()[0]) < 20 * 1024


def test_a_line_above_the_limit_is_reported_once() -> None:
    lines = Lines(10)
    assert lines.feed(b"x" * 11) == [None]
    assert lines.feed(b"x" * 50) == []
    assert lines.feed(b"x\nok\nh") == [b"ok"]
    assert lines.feed(b"alf\n" + b"y" * 11 + b"\nz\n") == [b"half", None, b"z"]


def test_the_command_line_reaches_the_pipe_without_typer(home: House) -> None:
    code = (
        "import sys; sys.argv = ['devbay', 'mcp']\n"
        "from devbay.__main__ import main\n"
        "try: main()\n"
        "except SystemExit as end: print('typer' in sys.modules, end.code, file=sys.stderr)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=fake.ROOT, env=home.env, input="", text=True, capture_output=True,
        timeout=20, check=True,
    )  # fmt: skip
    assert found.stderr == "False 0\n"

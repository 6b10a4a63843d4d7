import json
import os
import socket
import stat
import threading
import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import UNIXSocketStream

from devbay.daemon.requests import Requests
from devbay.daemon.server import Server, peer
from devbay.tools.registry import Registry
from tests.daemon import fake
from tests.daemon.house import ENVELOPE, House, until

INITIALIZE = {
    "jsonrpc": "2.0", "id": 0, "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
    },
}  # fmt: skip
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def modern(identity: Any, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": identity, "method": method, "params": {**params, "_meta": ENVELOPE}}


def tool_error(answer: dict[str, Any]) -> dict[str, Any]:
    assert answer["result"]["isError"] is True
    error: dict[str, Any] = answer["result"]["structuredContent"]["error"]
    return error


def test_the_socket_and_its_folder_are_the_users_own(shared: House) -> None:
    assert stat.S_IMODE(shared.home.socket.stat().st_mode) == 0o600
    assert stat.S_IMODE(shared.home.runtime_dir.stat().st_mode) == 0o700


def test_an_old_client_is_served_after_initialize(shared: House) -> None:
    with shared.link() as link:
        hello = link.ask(INITIALIZE)["result"]
        assert hello["protocolVersion"] == "2025-06-18"
        assert hello["serverInfo"]["name"] == "devbay"
        link.send(INITIALIZED)
        listing = link.ask({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})["result"]["tools"]
        assert {tool["name"] for tool in listing} >= {"echo", "wait"}
        echo = next(tool for tool in listing if tool["name"] == "echo")
        assert echo["annotations"]["readOnlyHint"] is True
        assert echo["inputSchema"]["required"] == ["text"]
        assert "error" in echo["outputSchema"]["properties"]
        call = {"name": "echo", "arguments": {"text": "hi"}}
        answer = link.ask({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call})["result"]
        assert answer["content"] == [{"type": "text", "text": "hi"}]
        assert answer["structuredContent"]["text"] == "hi"
        assert link.ask({"jsonrpc": "2.0", "id": 3, "method": "ping"})["result"] == {}


def test_a_new_client_needs_no_handshake(shared: House) -> None:
    with shared.link() as link:
        assert "2026-07-28" in link.ask(modern(1, "server/discover"))["result"]["supportedVersions"]
        link.call(2, "echo", {"text": "hi"})
        assert link.receive()["result"]["structuredContent"]["text"] == "hi"


def test_an_unknown_version_is_refused_with_the_known_ones(shared: House) -> None:
    meta = {**ENVELOPE, "io.modelcontextprotocol/protocolVersion": "2099-01-01"}
    with shared.link() as link:
        answer = link.ask({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}})
    assert answer["error"]["code"] == -32022
    assert "2026-07-28" in answer["error"]["data"]["supported"]


def test_a_call_carries_the_callers_directory_environment_and_process(shared: House) -> None:
    meta = {"dev.devbay/cwd": "/somewhere", "dev.devbay/env": {"DOCKER_HOST": "tcp://x", "BAD": 7}}
    with shared.link() as link:
        link.call(1, "echo", {"text": "hi"}, **meta)
        found = link.receive()["result"]["structuredContent"]
    assert found["cwd"] == "/somewhere"
    assert found["env"] == {"DOCKER_HOST": "tcp://x"}
    assert found["peer_pid"] == os.getpid()


@pytest.mark.parametrize("cwd", [None, 7, "relative", "/nul\0byte"])
def test_a_callers_directory_that_is_none_becomes_the_root(shared: House, cwd: Any) -> None:
    with shared.link() as link:
        link.call(1, "echo", {"text": "hi"}, **{"dev.devbay/cwd": cwd})
        assert link.receive()["result"]["structuredContent"]["cwd"] == "/"


def test_a_failing_tool_is_a_result_with_code_and_next_step(shared: House) -> None:
    with shared.link() as link:
        link.call(1, "fail", {})
        answer = link.receive()
    assert tool_error(answer) == {
        "code": "refused_dirty", "message": "the bay holds work", "next": "commit it", "files": ["a.py"],
    }  # fmt: skip
    assert answer["result"]["content"][0]["text"] == "refused_dirty: the bay holds work\nnext: commit it"


def test_a_fault_inside_a_tool_is_an_error_and_its_traceback_stays_in_the_log(shared: House) -> None:
    with shared.link() as link:
        link.call(1, "fail", {"how": "bug"})
        answer = link.receive()
    assert tool_error(answer)["code"] == "internal_error"
    assert "Traceback" not in json.dumps(answer)
    assert "Traceback" in shared.log()


def test_wrong_arguments_name_the_field_and_the_near_match(shared: House) -> None:
    with shared.link() as link:
        link.call(1, "echo", {"txet": "hi", "times": "many"})
        error = tool_error(link.receive())
    assert error["code"] == "bad_arguments"
    assert "'text' is required" in error["message"]
    assert "did you mean 'text'" in error["message"]
    assert "'times'" in error["message"]


def test_an_unknown_tool_is_an_error_of_the_request(shared: House) -> None:
    with shared.link() as link:
        link.call(1, "ecko", {})
        error = link.receive()["error"]
    assert error["code"] == -32602
    assert "did you mean echo?" in error["message"]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"garbage\n", -32700),
        (b"\x00\n", -32700),
        (b"[]\n", -32600),
        (b'{"jsonrpc":"1.0","id":9,"method":"tools/list"}\n', -32600),
        (b'{"jsonrpc":"2.0","id":9,"method":"no/such"}\n', -32601),
        (b'{"jsonrpc":"2.0","id":9,"method":"devbay/nothing"}\n', -32601),
        (b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":7}}\n', -32602),
    ],
)
def test_bad_messages_get_a_typed_error_and_the_connection_lives(
    shared: House, line: bytes, code: int
) -> None:
    with shared.link() as link:
        assert link.ask(line)["error"]["code"] == code
        assert link.ask({"jsonrpc": "2.0", "id": 1, "method": "devbay/status"})["result"]["running"]


def test_a_message_of_sixteen_megabytes_is_served_and_a_longer_one_refused(shared: House) -> None:
    text = "x" * (15 * 1024 * 1024)
    with shared.link() as link:
        link.call(1, "echo", {"text": text})
        assert link.receive()["result"]["structuredContent"]["text"] == text
        sender = threading.Thread(target=link.send, args=(b"x" * (17 * 1024 * 1024) + b"\n",))
        sender.start()
        assert link.receive()["error"]["code"] == -32600
        sender.join()
        link.call(2, "echo", {"text": "hi"})
        assert link.receive()["id"] == 2


def test_requests_of_one_connection_run_at_once(shared: House) -> None:
    with shared.link() as link:
        link.call(0, "echo", {"text": "warm"})
        link.receive()
        began = time.monotonic()
        for number in range(20):
            link.call(number, "wait", {"seconds": 0.5})
        link.send({"jsonrpc": "2.0", "id": "quick", "method": "devbay/status"})
        assert link.receive()["id"] == "quick"
        assert {link.receive()["id"] for _ in range(20)} == set(range(20))
        assert time.monotonic() - began < 5


def test_progress_comes_before_the_answer_and_grows(shared: House) -> None:
    with shared.link() as link:
        link.call(1, "wait", {"seconds": 0.3}, progressToken="p")
        seen = []
        while "id" not in (message := link.receive()):
            seen.append(message["params"])
    assert [params["progressToken"] for params in seen] == ["p"] * len(seen)
    assert len(seen) >= 2
    assert [params["progress"] for params in seen] == sorted({params["progress"] for params in seen})
    assert seen[0]["message"] == "step 0"


def test_no_progress_comes_where_none_was_asked_for(shared: House) -> None:
    with shared.link() as link:
        link.call(1, "wait", {"seconds": 0.2})
        assert link.receive()["id"] == 1


def test_a_cancelled_request_stops_its_work_and_is_not_answered(shared: House, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with shared.link() as link:
        link.call(1, "wait", {"seconds": 20, "mark": str(mark)})
        time.sleep(0.2)
        link.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        until(mark.exists, "the work stops")
        link.call(2, "echo", {"text": "hi"})
        assert link.receive()["id"] == 2
    assert mark.read_text() == "cancelled"


def test_a_client_that_vanishes_stops_its_work(shared: House, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    link = shared.link()
    link.call(1, "wait", {"seconds": 20, "mark": str(mark)})
    time.sleep(0.2)
    link.close()
    until(mark.exists, "the work stops")
    assert mark.read_text() == "cancelled"


def test_a_client_that_never_reads_stops_nobody_else(shared: House) -> None:
    with shared.link() as deaf, shared.link() as other:
        for number in range(40):
            deaf.call(number, "echo", {"text": "x" * 100_000})
        other.call(1, "echo", {"text": "hi"})
        assert other.receive()["id"] == 1


def test_a_hundred_connections_are_served_together(shared: House) -> None:
    links = [shared.link() for _ in range(100)]
    for link in links:
        link.call(1, "echo", {"text": "hi"})
    assert all(link.receive()["id"] == 1 for link in links)
    for link in links:
        link.close()


def test_half_a_message_of_a_client_that_died_does_nothing(shared: House) -> None:
    link = shared.link()
    link.send(b'{"jsonrpc":"2.0","id":1,"method":"devbay/st')
    link.close()
    with shared.link() as other:
        assert other.ask({"jsonrpc": "2.0", "id": 1, "method": "devbay/status"})["result"]["running"]


def test_a_private_stream_sends_items_then_a_result(shared: House) -> None:
    with shared.link() as link:
        link.send({"jsonrpc": "2.0", "id": "s", "method": "devbay/count", "params": {"to": 3}})
        items = [link.receive() for _ in range(3)]
        end = link.receive()
    assert [item["params"]["item"]["number"] for item in items] == [0, 1, 2]
    assert {item["params"]["requestId"] for item in items} == {"s"}
    assert end == {"jsonrpc": "2.0", "id": "s", "result": {}}


def test_a_cancelled_stream_closes_its_source(shared: House, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with shared.link() as link:
        params = {"to": 100_000, "slow": True, "mark": str(mark)}
        link.send({"jsonrpc": "2.0", "id": "s", "method": "devbay/count", "params": params})
        link.receive()
        link.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "s"}})
        until(mark.exists, "the stream's source is closed")


def test_a_private_error_carries_its_fields(shared: House) -> None:
    with shared.link() as link:
        params = {"_meta": {"progressToken": 5}}
        progress = link.ask({"jsonrpc": "2.0", "id": 1, "method": "devbay/refuse", "params": params})
        assert progress["params"]["message"] == "thinking"
        error = link.receive()["error"]
    assert error["data"]["code"] == "no_terminal"
    assert error["data"]["exit_code"] == 3


def test_a_fault_in_a_private_method_is_an_error(shared: House) -> None:
    with shared.link() as link:
        answer = link.ask({"jsonrpc": "2.0", "id": 1, "method": "devbay/bug"})
    assert answer["error"]["data"]["code"] == "internal_error"


def test_what_a_library_prints_lands_in_the_log(shared: House) -> None:
    with shared.link() as link:
        link.call(1, "fail", {"how": "print"})
        assert link.receive()["result"]["structuredContent"]["text"] == "printed"
    until(lambda: "a line" in shared.log(), "the log is written")


def test_the_protocol_package_is_loaded_at_the_first_protocol_message(home: House) -> None:
    with home.link() as link:
        before = link.ask({"jsonrpc": "2.0", "id": 1, "method": "devbay/status"})["result"]["memory_mb"]
        link.call(2, "echo", {"text": "hi"})
        link.receive()
        after = link.ask({"jsonrpc": "2.0", "id": 3, "method": "devbay/status"})["result"]["memory_mb"]
    assert after - before > 5


def test_the_kernel_says_who_is_at_the_other_end() -> None:
    left, right = socket.socketpair(socket.AF_UNIX)
    with left, right:
        assert peer(left) == (os.getuid(), os.getpid())


def test_a_connection_of_another_user_is_closed_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("devbay.daemon.server.os.getuid", lambda: 4711)

    async def serve() -> bytes:
        ours, theirs = socket.socketpair(socket.AF_UNIX)
        with ours:
            ours.sendall(b'{"jsonrpc":"2.0","id":1,"method":"devbay/x"}\n')
            server = Server(Registry([]), Requests(fake.FakeCore.__new__(fake.FakeCore)))
            await server.handle(await UNIXSocketStream.from_socket(theirs))
            try:
                return ours.recv(100)
            except ConnectionResetError:
                return b""

    assert anyio.run(serve) == b""

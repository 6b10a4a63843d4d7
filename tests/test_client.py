import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from devbay.client import caller_env
from devbay.connection import connect, daemon_argv
from devbay.errors import DevbayError
from devbay.home import Home
from tests.daemon import fake
from tests.daemon.house import House, house, until


@pytest.fixture
def home(tmp_path: Path) -> Iterator[House]:
    with house(tmp_path / "user") as found:
        yield found


def test_only_the_standard_library_is_imported() -> None:
    code = (
        "import sys; before = set(sys.modules)\n"
        "import devbay.client, devbay.shim\n"
        "names = {name.split('.')[0] for name in set(sys.modules) - before} - {'devbay'}\n"
        "print(*(names - sys.stdlib_module_names))"
    )
    argv = [sys.executable, "-c", code]
    found = subprocess.run(argv, cwd=fake.ROOT, capture_output=True, text=True, check=True)
    assert found.stdout.split() == []


def test_the_environment_that_is_sent_holds_what_matters_and_no_secret() -> None:
    env = {
        "PATH": "/bin", "DOCKER_HOST": "x", "HTTPS_PROXY": "p", "no_proxy": "n", "XDG_RUNTIME_DIR": "/r",
        "DEVBAY_RUNTIME": "docker", "CI": "1", "GITHUB_TOKEN": "secret", "AWS_SECRET_ACCESS_KEY": "secret",
        "PYTHONPATH": "/x", "LD_PRELOAD": "/evil.so",
    }  # fmt: skip
    assert set(caller_env(env)) == {
        "PATH", "DOCKER_HOST", "HTTPS_PROXY", "no_proxy", "XDG_RUNTIME_DIR", "DEVBAY_RUNTIME", "CI",
    }  # fmt: skip


def test_the_daemons_command_ignores_the_folder_and_pythonpath(tmp_path: Path) -> None:
    (tmp_path / "devbay").mkdir()
    (tmp_path / "devbay" / "__init__.py").write_text("raise SystemExit('the wrong devbay')")
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    argv = [*daemon_argv()[:-1], daemon_argv()[-1].replace("main()", "print('right')")]
    found = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert "the wrong devbay" not in found.stdout + found.stderr or "PYTHONPATH" in env
    own = {key: value for key, value in env.items() if key != "PYTHONPATH"}
    found = subprocess.run(argv, cwd=tmp_path, env=own, capture_output=True, text=True, check=True)
    assert found.stdout == "right\n"


def test_a_client_that_may_not_start_the_daemon_says_so(home: House) -> None:
    with pytest.raises(DevbayError) as caught:
        connect(home.home, home.env, start=False)
    assert caught.value.code == "daemon_not_running"


def test_answers_progress_items_and_errors_arrive(home: House) -> None:
    progress: list[tuple[str, float | None]] = []
    items: list[int] = []
    with home.client(cwd="/tmp") as client:
        assert client.tool("echo", {"text": "hi"})["cwd"] == "/tmp"
        client.tool("wait", {"seconds": 0.2}, lambda message, share: progress.append((message, share)))
        assert progress[0][0] == "step 0"
        assert client.private("devbay/count", {"to": 2}, on_item=lambda i: items.append(i["number"])) == {}
        assert items == [0, 1]
        with pytest.raises(DevbayError) as caught:
            client.tool("fail", {})
        assert (caught.value.code, caught.value.exit_code) == ("refused_dirty", 3)
        assert caught.value.data == {"files": ["a.py"]}
        with pytest.raises(DevbayError) as caught:
            client.private("devbay/refuse", {})
        assert (caught.value.code, caught.value.exit_code) == ("no_terminal", 3)
        with pytest.raises(DevbayError) as caught:
            client.tool("nothing", {})
        assert (caught.value.code, caught.value.exit_code) == ("unknown_tool", 2)


def test_ctrl_c_cancels_the_request(home: House, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    code = (
        f"import os, sys; sys.path.insert(0, {str(fake.ROOT)!r})\n"
        "from devbay.client import Client; from devbay.home import Home; from tests.daemon import fake\n"
        "with Client(Home.from_environment(os.environ), os.environ, '/', argv=fake.argv()) as c:\n"
        f"    c.tool('wait', {{'seconds': 20, 'mark': {str(mark)!r}}}, lambda m, f: print(m, flush=True))\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], env=home.env, stdout=subprocess.PIPE)
    assert process.stdout
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    process.wait(timeout=10)
    process.stdout.close()
    until(mark.exists, "the work is cancelled")
    assert mark.read_text() == "cancelled"


def test_what_is_not_utf_8_is_an_error_or_left_out_and_never_a_hang(home: House) -> None:
    home.env["DOCKER_CONFIG"] = "/\udcff"
    with home.client(cwd="/\udcff") as client:
        found = client.tool("echo", {"text": "hi"})
        assert found["cwd"] == "/"
        assert "DOCKER_CONFIG" not in found["env"]
        with pytest.raises(DevbayError) as caught:
            client.tool("echo", {"text": "\udcff"})
        assert (caught.value.code, caught.value.exit_code) == ("bad_arguments", 2)


def test_a_message_the_daemon_cannot_read_is_an_error_not_a_hang(home: House) -> None:
    with home.client() as client, pytest.raises(DevbayError) as caught:
        client.tool("echo", {"text": "x" * (17 * 1024 * 1024)})
    assert "longer than" in caught.value.message


def test_a_socket_path_that_is_too_long_is_said(home: House, tmp_path: Path) -> None:
    env = {**home.env, "XDG_RUNTIME_DIR": str(tmp_path / ("x" * 100))}
    with pytest.raises(DevbayError) as caught:
        connect(Home.from_environment(env), env)
    assert caught.value.code == "socket_path_too_long"
    assert "XDG_RUNTIME_DIR" in caught.value.next


def test_an_interrupted_request_is_cancelled_and_its_connection_goes_on(home: House, tmp_path: Path) -> None:
    mark = tmp_path / "mark"

    def interrupt(message: str, share: float | None) -> None:
        raise KeyboardInterrupt

    with home.client() as client:
        with pytest.raises(KeyboardInterrupt):
            client.tool("wait", {"seconds": 20, "mark": str(mark)}, interrupt)
        until(mark.exists, "the work is cancelled")
        assert client.tool("echo", {"text": "hi"})["text"] == "hi"


def test_a_daemon_that_dies_in_a_request_is_an_error_not_a_hang(home: House) -> None:
    with home.client() as client:
        pid = home.pid()
        assert pid
        threading.Timer(0.3, os.kill, (pid, signal.SIGKILL)).start()
        with pytest.raises(DevbayError) as caught:
            client.tool("wait", {"seconds": 20})
    assert caught.value.code == "daemon_gone"


def test_something_on_the_socket_that_does_not_answer_is_said(
    home: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("devbay.connection.HELLO_TIMEOUT_S", 0.2)
    with socket.socket(socket.AF_UNIX) as deaf:
        deaf.bind(str(home.home.socket))
        deaf.listen()
        with pytest.raises(DevbayError) as caught:
            connect(home.home, home.env)
    assert caught.value.code == "daemon_failed"


def test_starting_takes_no_polling(home: House) -> None:
    began = time.monotonic()
    with home.client() as client:
        assert json.dumps(client.private("devbay/status", {}))
    assert time.monotonic() - began < 5

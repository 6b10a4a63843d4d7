import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from devbay.daemon import lifecycle
from devbay.daemon.lifecycle import newer
from devbay.errors import DevbayError
from tests.daemon import fake
from tests.daemon.house import House, alive, until


def start(home: House, **options: str) -> int:
    home.client(**options).__exit__()
    pid = home.pid()
    assert pid
    return pid


def test_many_clients_at_once_start_one_daemon(home: House) -> None:
    pids: list[int] = []

    def connect() -> None:
        with home.client() as client:
            pids.append(client.private("devbay/status", {})["pid"])

    threads = [threading.Thread(target=connect) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(pids) == 8
    assert len(set(pids)) == 1


def test_many_processes_at_once_start_one_daemon(home: House) -> None:
    code = (
        f"import os, sys; sys.path.insert(0, {str(fake.ROOT)!r})\n"
        "from devbay.client import Client; from devbay.home import Home; from tests.daemon import fake\n"
        "with Client(Home.from_environment(os.environ), os.environ, '/', argv=fake.argv()) as c:\n"
        "    print(c.private('devbay/status', {})['pid'])"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", code], env=home.env, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    assert len({process.communicate(timeout=30)[0] for process in processes}) == 1


def test_a_stale_socket_of_a_killed_daemon_is_replaced(home: House) -> None:
    os.kill(start(home), signal.SIGKILL)
    until(lambda: home.pid() is None, "the daemon ends")
    assert home.home.socket.exists()
    assert start(home)


def test_the_daemon_is_detached_from_terminal_parent_and_folder(home: House) -> None:
    read, write = os.pipe()
    os.set_inheritable(write, True)
    pid = start(home)
    os.close(write)
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    parent, session, terminal = int(fields[1]), int(fields[3]), int(fields[4])
    assert parent != os.getpid()
    assert session != os.getsid(0)
    assert terminal == 0
    assert Path(f"/proc/{pid}/cwd").readlink() == Path("/")
    assert Path(f"/proc/{pid}/fd/0").readlink() == Path(os.devnull)
    assert os.read(read, 1) == b"", "the daemon holds a descriptor of the client that started it"
    os.close(read)


def test_the_daemon_gets_nothing_of_its_starters_session(home: House) -> None:
    home.env |= {"DOCKER_HOST": "tcp://x", "SECRET_TOKEN": "s3cret", "PYTHONPATH": "/evil"}
    pid = start(home)
    environment = Path(f"/proc/{pid}/environ").read_bytes()
    assert b"DEVBAY_HOME" in environment
    for name in (b"DOCKER_HOST", b"SECRET_TOKEN", b"PYTHONPATH"):
        assert name not in environment


def test_a_hangup_does_not_end_it_and_a_term_ends_it_cleanly(home: House) -> None:
    pid = start(home)
    os.kill(pid, signal.SIGHUP)
    time.sleep(0.3)
    with home.client() as client:
        assert client.private("devbay/status", {})["pid"] == pid
    os.kill(pid, signal.SIGTERM)
    until(lambda: not alive(pid), "the daemon ends")
    assert not home.home.socket.exists()
    assert (home.home.state_dir / "closed").read_text() == "False"


def test_a_term_cancels_what_is_running(home: House, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with home.link() as link:
        link.call(1, "wait", {"seconds": 30, "mark": str(mark)})
        until(mark.with_suffix(".started").exists, "the work begins")
        os.kill(home.pid() or 0, signal.SIGTERM)
        until(mark.exists, "the work is cancelled")
    assert mark.read_text() == "cancelled"


def test_stop_ends_the_proxy_too(home: House) -> None:
    with home.client() as client:
        pid = client.private("devbay/stop", {})["pid"]
        client.until_gone()
    until(lambda: not alive(pid), "the daemon ends", 20)
    assert (home.home.state_dir / "closed").read_text() == "True"


def test_an_idle_daemon_ends_and_the_next_client_starts_another(home: House) -> None:
    pid = start(home, idle_s="0.3")
    until(lambda: not alive(pid), "the daemon ends")
    assert start(home) != pid


def test_a_daemon_with_bays_or_clients_does_not_end(home: House) -> None:
    client = home.client(idle_s="0.3")
    time.sleep(1.2)
    assert home.pid()
    (home.home.state_dir / "has-bays").touch()
    client.__exit__()
    time.sleep(1.2)
    assert home.pid()
    (home.home.state_dir / "has-bays").unlink()
    until(lambda: home.pid() is None, "the daemon ends")


def test_an_older_daemon_is_replaced(home: House) -> None:
    old = start(home, version="0.0.1")
    with home.client() as client:
        status = client.private("devbay/status", {})
    assert status["pid"] != old
    assert status["version"] != "0.0.1"


def test_an_older_daemon_finishes_its_runs_first(home: House) -> None:
    old = start(home, version="0.0.1")
    busy = home.home.state_dir / "busy"
    busy.write_text("run-1")
    with home.client() as client:
        assert client.private("devbay/status", {})["pid"] == old
    assert alive(old)
    busy.unlink()
    until(lambda: not alive(old), "the old daemon leaves")
    assert start(home) != old


def test_a_newer_daemon_serves_an_older_client(home: House) -> None:
    pid = start(home, version="99.0.0")
    with home.client() as client:
        assert client.private("devbay/status", {})["pid"] == pid


@pytest.mark.parametrize(
    ("theirs", "ours", "expected"),
    [("0.2.0", "0.1.9", True), ("0.10.0", "0.9.0", True), ("0.1.0", "0.1.0", False),
     ("0.1", "0.2", False), ("", "0.1.0", False), ("garbage", "0.1.0", False)],
)  # fmt: skip
def test_versions_are_compared_by_their_numbers(theirs: str, ours: str, expected: bool) -> None:
    assert newer(theirs, ours) is expected


def test_the_socket_comes_back_when_a_cleaner_removed_it(
    home: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = start(home)
    home.home.socket.unlink()
    with home.client() as client:
        assert client.private("devbay/status", {})["pid"] == pid


def test_a_start_that_fails_tells_its_own_error(home: House) -> None:
    home.env["LC_FAKE_FAIL"] = "typed"
    with pytest.raises(DevbayError) as caught:
        home.client()
    assert (caught.value.code, caught.value.next) == ("store_too_new", "upgrade")


def test_a_start_that_crashes_shows_the_end_of_the_log(home: House) -> None:
    home.env["LC_FAKE_FAIL"] = "the-store-is-on-fire"
    with pytest.raises(DevbayError) as caught:
        home.client()
    assert caught.value.code == "daemon_failed"
    assert "the-store-is-on-fire" in caught.value.message
    assert "daemon.log" in caught.value.next


def test_a_program_that_does_not_exist_is_said(home: House) -> None:
    from devbay.connection import start_daemon

    with pytest.raises(DevbayError) as caught:
        start_daemon(home.home, ["/no/such/python"], home.env)
    assert "/no/such/python" in caught.value.message


def test_a_holder_of_the_lock_that_does_not_answer_is_named(
    home: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "LOCK_WAIT_S", 0.1)
    with lifecycle.only_one(home.home), pytest.raises(DevbayError) as caught:
        lifecycle.only_one(home.home).__enter__()
    assert caught.value.code == "daemon_stuck"
    assert str(os.getpid()) in caught.value.message


def test_files_of_the_daemon_are_private(home: House) -> None:
    start(home)
    for name in ("daemon.lock", "logs/daemon.log"):
        assert stat.S_IMODE((home.home.state_dir / name).stat().st_mode) == 0o600


def test_the_log_rotates_and_stderr_follows_it(tmp_path: Path) -> None:
    code = (
        "import logging, os, sys\n"
        f"sys.path.insert(0, {str(fake.ROOT)!r})\n"
        "from devbay.daemon import lifecycle; from devbay.home import Home\n"
        "lifecycle.LOG_BYTES = 2000\n"
        "lifecycle.open_log(Home.from_environment(os.environ))\n"
        "for number in range(300): logging.getLogger('x').info('line %d', number)\n"
        "os.write(2, b'from a library\\n')\n"
    )
    env = {"DEVBAY_HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"]}
    subprocess.run([sys.executable, "-c", code], env=env, check=True)
    logs = tmp_path / "home" / "logs"
    names = {path.name for path in logs.iterdir()}
    assert names == {"daemon.log", "daemon.log.1", "daemon.log.2", "daemon.log.3"}
    assert "from a library" in (logs / "daemon.log").read_text()


def test_nothing_listens_where_no_daemon_is(home: House) -> None:
    assert not lifecycle.answers(home.home)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(home.home.socket))
        listener.listen()
        assert lifecycle.answers(home.home)

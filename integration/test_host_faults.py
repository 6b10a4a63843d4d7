"""What goes wrong on a machine without containers: wild processes, taken ports, killed keepers, a reboot."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from devbay.runtimes.host.keptstate import KeptState, read_state
from devbay.runtimes.host.place import Place
from integration import leftovers
from integration.house import House, wait_for
from integration.repositories import TINY

RUNTIMES = ("host",)
SLEEP = str(secrets.randbelow(10**6) + 86400)
"""Seconds that no other test's process sleeps."""
WILD = f"""\
import os, subprocess, sys
{{preparation}}
subprocess.Popen(["sleep", "{SLEEP}"], start_new_session=True, env={{{{"PATH": os.environ["PATH"]}}}})
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp("sleep", ["sleep", "{SLEEP}"])
    os._exit(0)
os.wait()
print("started", flush=True)
"""
"""Leaves two processes in sessions of their own, one of them without the environment that marks it."""
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
SERVE = """\
import http.server, os, sys, time
while sys.argv[1:] and not os.path.exists(sys.argv[1]):
    time.sleep(0.05)
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"the service itself")
http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Answer).serve_forever()
"""
SERVICE = """\
version: 1
project: faults
services:
  web:
    image: python:3
    start: [python, {words}]
    port: 8080
    restart: "{restart}"
    health: {health}
tasks:
  hello: {{image: "python:3", run: [echo, hello], needs: []}}
"""
WITH_DATABASE = TINY.replace(
    "services:\n",
    "services:\n  db:\n    image: redis:7\n    start: [redis-server, --appendonly, 'yes']\n    port: 6379\n"
    "    health: {cmd: [redis-cli, ping]}\n",
).replace("    port: 8080\n", "    port: 8080\n    primary: true\n")
SQL = ("env", "PGPASSWORD=word", "psql", "-h", "127.0.0.1", "-U", "postgres", "-qAt")
WITH_POSTGRES = """\
version: 1
project: power
services:
  db:
    image: postgres:17
    env: {POSTGRES_PASSWORD: word}
    port: 5432
    health: {cmd: [pg_isready, -U, postgres]}
tasks: {}
"""
FILES = {
    "leaves.py": WILD.format(preparation="") + "import time; time.sleep(9999)\n",
    "daemonises.py": WILD.format(preparation=""),
    "stubborn.py": WILD.format(preparation=STUBBORN) + "import time\nwhile True: time.sleep(9999)\n",
    "serve.py": SERVE,
}


def manifest(words: str, *, health: str = "{process: true}", restart: str = "no") -> str:
    return SERVICE.format(words=words, health=health, restart=restart)


@pytest.fixture
def bay(
    house: House, make: Callable[..., Path], request: pytest.FixtureRequest
) -> Iterator[Callable[..., Path]]:
    """`bay(words, ...)`: a repository whose only service runs these words, and which may make bays."""
    made: list[Path] = []

    def repository(words: str, **more: str) -> Path:
        path = make("tiny", secrets.token_hex(4), manifest(words, **more), **FILES)
        made.append(path)
        return path

    yield repository
    for path in made:
        house.devbay("rm", "one", "--force", cwd=path, code=None)


def sleepers() -> list[int]:
    """Processes that `WILD` left."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and leftovers.alive(int(entry.name)):
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[:2] == [b"sleep", SLEEP.encode()]:
                found.append(int(entry.name))
    return found


def service(info: dict[str, Any], name: str = "web") -> dict[str, Any]:
    return next(each for each in info["services"] if each["name"] == name)


def folder_of(house: House, bay: str, name: str = "web") -> Path:
    return Place.of(house.home).service(bay, name)


def kept(house: House, bay: str, name: str = "web") -> KeptState:
    found = read_state(folder_of(house, bay, name))
    assert found is not None
    return found


def asked(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5) as answer:
        return str(answer.read().decode())


def test_a_service_that_daemonises_is_over_with_all_that_it_left(house: House, bay: Callable[..., Path]):
    path = bay("daemonises.py")
    house.devbay("new", "one", cwd=path, code=None)  # on a busy machine it is seen to run first
    web = wait_for(
        lambda: (one := service(house.json("status", "one", cwd=path)))["state"] == "failed" and one,
        "its end to be seen",
    )
    assert web["exit_code"] == 0
    assert web["reason"]
    wait_for(lambda: not sleepers(), "its processes to be gone")
    assert "started" in house.devbay("logs", "one", "web", cwd=path).out


def test_what_a_service_leaves_ends_with_it(house: House, bay: Callable[..., Path]):
    path = bay("leaves.py")
    house.devbay("new", "one", cwd=path)
    wait_for(lambda: len(sleepers()) == 2, "the children")
    house.devbay("cool", "one", cwd=path)
    assert (sleepers(), house.running()) == ([], {})


def test_a_service_that_ignores_being_asked_to_end_is_ended(house: House, bay: Callable[..., Path]):
    path = bay("stubborn.py")
    info = house.json("new", "one", cwd=path)
    wait_for(lambda: len(sleepers()) == 2, "the children")
    house.devbay("cool", "one", cwd=path)
    assert (sleepers(), house.running(), marked(house)) == ([], {}, [])
    house.devbay("rm", "one", cwd=path)
    assert house.objects(info["id"]) == []


def test_what_a_service_leaves_ends_when_it_crashes(house: House, bay: Callable[..., Path]):
    path = bay("leaves.py")
    house.devbay("new", "one", cwd=path)
    wait_for(lambda: len(sleepers()) == 2, "the children")
    house.kill("web")
    wait_for(lambda: not sleepers(), "the children to end")
    web = service(house.json("status", "one", cwd=path))
    assert (web["state"], web["exit_code"]) == ("failed", 137)


def test_a_service_whose_restart_is_wanted_comes_back_and_says_how_often(
    house: House, bay: Callable[..., Path]
):
    path = bay("serve.py", health="{http: /}", restart="on-failure")
    house.devbay("new", "one", cwd=path)
    before = house.running()
    house.kill("web")
    wait_for(lambda: house.running().get("web") not in (None, before["web"]), "another process")
    found = wait_for(
        lambda: (web := service(house.json("status", "one", cwd=path)))["health"] == "healthy" and web,
        "the service to be healthy again",
    )
    assert found["restarts"] == 1


def test_a_listener_that_took_the_port_is_never_taken_for_the_service(house: House, bay: Callable[..., Path]):
    """The port is free when it is given, and held by another process before the service binds it."""
    path = bay("serve.py, go", health="{http: /, timeout: 15s}")
    going = house.start("new", "one", "--json", cwd=path)
    port = wait_for(lambda: _given(house), "the service to start")
    script = FILES["serve.py"].replace("the service itself", "another")
    other = subprocess.Popen([sys.executable, "-c", script], env={**os.environ, "PORT": str(port)})
    try:
        wait_for(lambda: _listens(port), "the other process to listen")
        (path / ".devbay/bays/one/go").touch()
        said, _ = going.communicate(timeout=60)
        web = service(json.loads(said))
        if web["health"] == "healthy":
            assert web["ports"]["port"] != port
            assert asked(web["ports"]["port"]) == "the service itself"
        else:
            assert f"port {port}" in web["reason"]
        assert asked(port) == "another", "it was spared"
    finally:
        other.kill()
        other.wait()


def test_a_service_that_never_listens_is_not_healthy_by_another_listener(
    house: House, bay: Callable[..., Path]
):
    """Whoever takes each port that the service is given answers its probe, and is not the service."""
    path = bay("serve.py, never", health="{http: /, timeout: 4s}")
    going = house.start("new", "one", "--json", cwd=path)
    script = FILES["serve.py"].replace("the service itself", "another")
    others: dict[int, subprocess.Popen[bytes]] = {}
    try:
        while going.poll() is None:
            port = _given(house)
            if port and port not in others:
                others[port] = subprocess.Popen(
                    [sys.executable, "-c", script], env={**os.environ, "PORT": str(port)}
                )
            time.sleep(0.02)
        said, _ = going.communicate(timeout=60)
        web = service(json.loads(said))
        assert going.returncode == 1
        assert web["health"] == "unhealthy"
        assert others, "nobody took a port"
        assert any(str(port) in web["reason"] for port in (*others, web["ports"]["port"])), web["reason"]
        assert [other.poll() for other in others.values()] == [None] * len(others), "they were spared"
    finally:
        for other in others.values():
            other.kill()
            other.wait()


def _given(house: House) -> int | None:
    """The port that the service's process was told, if it runs."""
    pid = house.running().get("web", "").split(" ")[0]
    try:
        words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0") if pid else []
    except OSError:
        return None
    return next((int(word[5:]) for word in words if word.startswith(b"PORT=")), None)


def test_a_port_taken_while_its_bay_was_cold_is_replaced_and_that_is_said(
    house: House, bay: Callable[..., Path]
):
    path = bay("serve.py", health="{http: /}")
    port = service(house.json("new", "one", cwd=path))["ports"]["port"]
    house.devbay("cool", "one", cwd=path)
    script = FILES["serve.py"].replace("the service itself", "another")
    other = subprocess.Popen([sys.executable, "-c", script], env={**os.environ, "PORT": str(port)})
    try:
        wait_for(lambda: _listens(port), "the other process to listen")
        info = house.json("up", "one", cwd=path)
        web = service(info)
        assert (web["health"], web["ports"]["port"] != port) == ("healthy", True)
        assert asked(web["ports"]["port"]) == "the service itself"
        assert asked(port) == "another", "it was spared"
        assert [text for text in info["warnings"] if f"port {port}" in text and "another process" in text]
    finally:
        other.kill()
        other.wait()


def _listens(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def test_a_service_that_listens_elsewhere_is_told_where(house: House, bay: Callable[..., Path]):
    path = bay("-m, http.server, '0', -b, 127.0.0.1", health="{http: /, timeout: 2s}")
    web = service(house.json("new", "one", cwd=path, code=1))
    assert web["health"] == "unhealthy"
    assert "listens on" in web["reason"]
    assert str(web["ports"]["port"]) in web["reason"]


def test_a_killed_keeper_takes_its_service_with_it_and_up_makes_one_again(
    house: House, bay: Callable[..., Path]
):
    path = bay("serve.py", health="{http: /}")
    info = house.json("new", "one", cwd=path)
    before = kept(house, info["id"])
    os.kill(before.keeper, signal.SIGKILL)
    wait_for(lambda: service(house.json("status", "one", cwd=path))["state"] != "running", "it to be seen")
    assert service(house.json("status", "one", cwd=path))["reason"] == "its keeper was killed"
    web = service(house.json("up", "one", cwd=path))
    assert web["health"] == "healthy"
    assert before.pid is not None and not leftovers.alive(before.pid)
    assert asked(web["ports"]["port"]) == "the service itself"
    pids = {pid for pid, name, _ in leftovers.kept(house.home.id, info["id"]) if name == "web"}
    keeper = kept(house, info["id"])
    assert pids <= _tree(keeper.keeper), "nothing runs twice"


def test_what_a_killed_keeper_kept_is_ended_by_destroying_too(house: House, bay: Callable[..., Path]):
    path = bay("stubborn.py")
    info = house.json("new", "one", cwd=path)
    wait_for(lambda: len(sleepers()) == 2, "the children")
    os.kill(kept(house, info["id"]).keeper, signal.SIGKILL)
    house.devbay("rm", "one", cwd=path)
    left = sleepers()
    for pid in left:
        _kill(pid)
    # one that took off its mark and whose parents are gone is known by its namespace or group alone
    alone = "no namespaces" in info["isolation"] and "setrlimit" in info["isolation"]
    assert len(left) <= alone
    assert house.objects(info["id"]) == []


def _tree(root: int) -> set[int]:
    """A process and all below it."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found, new = set(), {root}
    while new:
        found |= new
        new = {pid for pid, parent in parents.items() if parent in new} - found
    return found


def test_a_killed_daemon_finds_its_services_again_and_starts_none_twice(
    house: House, bay: Callable[..., Path]
):
    path = bay("serve.py", health="{http: /}")
    info = house.json("new", "one", cwd=path)
    before = house.running()
    house.kill_daemon()
    assert asked(service(info)["ports"]["port"]) == "the service itself"
    after = house.json("status", "one", cwd=path)
    assert (after["state"], service(after)["health"]) == ("running", "healthy")
    house.devbay("up", "one", cwd=path)
    assert house.running() == before
    house.kill("web")  # it is followed again too
    wait_for(
        lambda: service(house.json("status", "one", cwd=path))["state"] == "failed", "its end to be seen"
    )


def test_after_a_reboot_the_status_says_so_and_up_brings_everything_back(
    house: House, make: Callable[..., Path]
):
    """Every process is gone and the sockets with them; the state files are of another boot."""
    path = make("tiny", "reboot", WITH_DATABASE)
    info = house.json("new", "one", cwd=path)
    assert told(info, "SET word kept") == "+OK"
    reboot(house, info)
    seen = house.json("status", "one", cwd=path)
    assert seen["state"] == "failed"
    assert {each["state"] for each in seen["services"]} == {"failed"}
    assert {each["reason"] for each in seen["services"]} == {"the machine was restarted"}
    after = house.json("up", "one", cwd=path)
    assert (after["state"], after["id"]) == ("running", info["id"])
    assert {each["health"] for each in after["services"]} == {"healthy"}
    assert told(after, "GET word").endswith("kept")
    house.devbay("rm", "one", cwd=path)
    assert house.objects(info["id"]) == []


def test_a_database_that_lost_power_has_its_rows_after_the_reboot(house: House, make: Callable[..., Path]):
    """Postgres left its lock file, which names a process id that another program may have by now."""
    path = make("tiny", "power", WITH_POSTGRES)
    info = house.json("new", "one", cwd=path)
    sql = ("exec", "one", "db", "--", *SQL, "-p", str(service(info, "db")["ports"]["port"]), "-c")
    house.devbay(*sql, "CREATE TABLE t AS SELECT 4711 AS word", cwd=path)
    (lock,) = Place.of(house.home).data(info["id"], "db").rglob("postmaster.pid")
    reboot(house, info)
    foreign = subprocess.Popen(["sleep", "600"])
    try:
        lock.write_text("\n".join([str(foreign.pid), *lock.read_text().split("\n")[1:]]))
        assert service(house.json("status", "one", cwd=path), "db")["reason"] == "the machine was restarted"
        assert house.json("up", "one", cwd=path)["state"] == "running"
        assert house.devbay(*sql, "SELECT word FROM t", cwd=path).out == "4711\n"
        house.devbay("rm", "one", cwd=path)
        assert house.objects(info["id"]) == []
        assert foreign.poll() is None
    finally:
        foreign.kill()
        foreign.wait()


def reboot(house: House, info: dict[str, Any]) -> None:
    """End every process of a house at once, and have its files as another boot finds them."""
    folders = [folder_of(house, info["id"], each["name"]) for each in info["services"]]
    house.kill_daemon()
    for pid in [*(kept(house, info["id"], folder.name).keeper for folder in folders), *marked(house)]:
        _kill(pid)
    wait_for(lambda: not marked(house), "every process to be dead")
    shutil.rmtree(house.runtime)
    house.runtime.mkdir(mode=0o700)
    for folder in folders:
        file = folder / "state.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), "boot": "another"}))


def marked(house: House) -> list[int]:
    return [pid for pid, _, _ in leftovers.kept(house.home.id) if leftovers.alive(pid)]


def told(info: dict[str, Any], words: str) -> str:
    """What the database answers."""
    with socket.create_connection(("127.0.0.1", service(info, "db")["ports"]["port"]), timeout=5) as db:
        db.sendall(f"{words}\r\n".encode())
        return db.recv(4096).decode().strip()


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def test_a_process_that_got_a_services_old_id_is_spared(house: House, bay: Callable[..., Path]):
    path = bay("serve.py", health="{http: /}")
    info = house.json("new", "one", cwd=path)
    state = kept(house, info["id"])
    os.kill(state.keeper, signal.SIGKILL)
    foreign = subprocess.Popen(["sleep", "600"])
    try:
        started = int(Path(f"/proc/{foreign.pid}/stat").read_text().rpartition(")")[2].split()[19])
        wait_for(
            lambda: service(house.json("status", "one", cwd=path))["state"] != "running", "it to be seen"
        )
        state_file = folder_of(house, info["id"]) / "state.json"
        told = json.loads(state_file.read_text())
        told |= {"state": "running", "pid": foreign.pid, "started": started, "keeper": foreign.pid}
        state_file.write_text(json.dumps(told))
        assert service(house.json("status", "one", cwd=path))["state"] != "running"
        ran = house.devbay("exec", "one", "--", "true", cwd=path, code=None)
        assert ran.code
        assert house.json("up", "one", cwd=path)["state"] == "running"
        house.devbay("rm", "one", cwd=path)
        assert foreign.poll() is None
    finally:
        foreign.kill()
        foreign.wait()

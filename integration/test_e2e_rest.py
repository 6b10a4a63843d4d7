"""Rest and change: cool, freeze and thaw keep data and order; restart; an edited manifest; a bad one."""

from __future__ import annotations

import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from integration.house import House, docker, wait_for

RUNTIMES = ("docker", "host")
MANIFEST = """\
version: 1
project: rest
services:
  db:
    image: redis:7
    start: [redis-server, --save, "", --appendonly, "yes"]
    port: 6379
    health: {cmd: [redis-cli, ping]}
  web:
    image: python:3.13-slim
    start: [sh, -c, "python ask.py ping && exec python -m http.server 8080 -b 0.0.0.0 -d www || exit 9"]
    port: 8080
    needs: [db]
    primary: true
    health: {http: /}
    env: {GREETING: first, DB_HOST: "${bay.db.host}", DB_PORT: "${bay.db.port}"}
tasks:
  get: {in: web, run: [python, ask.py, get, word], needs: [db]}
  set: {in: web, run: [python, ask.py, set, word, kept], needs: [db]}
  greeting: {in: web, run: [python, -c, "import os; print(os.environ['GREETING'])"], needs: []}
"""
ASK = """\
import os, socket, sys

words = [word.encode() for word in sys.argv[1:]]
with socket.create_connection((os.environ["DB_HOST"], int(os.environ["DB_PORT"])), timeout=3) as db:
    db.sendall(b"*%d\\r\\n" % len(words) + b"".join(b"$%d\\r\\n%s\\r\\n" % (len(w), w) for w in words))
    answer = db.recv(4096)
sys.stdout.write("" if answer.startswith(b"$-1") else answer.decode().split("\\r\\n", 1)[-1].strip())
sys.exit(answer.startswith(b"-"))
"""
MORE = """\
  more:
    image: python:3.13-slim
    start: [sleep, "99"]
    health: {process: true}
"""


@pytest.fixture(scope="module")
def repository(make: Callable[..., Path], house: House) -> Path:
    path: Path = make("tiny", "rest", MANIFEST, **{"ask.py": ASK})
    house.devbay("new", "one", cwd=path)
    house.devbay("run", "one", "set", cwd=path)
    return path


def states(house: House, repository: Path) -> dict[str, str]:
    info = house.json("status", "one", cwd=repository)
    return {each["name"]: each["state"] for each in info["services"]} | {"bay": info["state"]}


def word(house: House, repository: Path) -> str:
    run = house.json("run", "one", "get", cwd=repository)["run"]
    lines = house.json("logs", "one", "--run", run, cwd=repository)["lines"]
    return str(lines[0]["text"])


def web(house: House, repository: Path) -> dict[str, Any]:
    info = house.json("status", "one", cwd=repository)
    found: dict[str, Any] = next(each for each in info["services"] if each["name"] == "web")
    return found


def test_a_cooled_bay_uses_no_memory_and_comes_back_with_its_data(house: House, repository: Path):
    port = web(house, repository)["ports"]["port"]
    info = house.json("cool", "one", cwd=repository)
    assert info["state"] == "cold"
    assert house.running() == {}
    assert (Path(info["worktree"]) / "devbay.yaml").is_file()
    info = house.json("thaw", "one", cwd=repository)
    assert info["state"] == "running"
    assert word(house, repository) == "kept"
    assert web(house, repository)["ports"]["port"] == port, "ports are stable per bay"


def test_a_cooled_bay_gives_its_network_back(house: House, repository: Path):
    house.devbay("cool", "one", cwd=repository)
    assert [each for each in house.objects() if each.startswith("network")] == []
    house.devbay("thaw", "one", cwd=repository)


def test_thaw_starts_what_is_needed_before_what_needs_it(house: House, repository: Path):
    """The web service ends with 9 when the database does not answer as it starts."""
    house.devbay("cool", "one", cwd=repository)
    info = house.json("thaw", "one", cwd=repository)
    assert info["state"] == "running"
    assert web(house, repository).get("restarts", 0) == 0


def test_a_frozen_bay_is_paused_and_thawed_where_it_was(house: House, repository: Path):
    before = house.running()
    info = house.json("freeze", "one", cwd=repository)
    assert info["state"] == "frozen"
    assert {each["state"] for each in info["services"]} == {"paused"}
    assert house.json("thaw", "one", cwd=repository)["state"] == "running"
    assert house.running() == before


def test_a_task_in_a_frozen_bay_thaws_what_it_needs(house: House, repository: Path):
    house.devbay("freeze", "one", cwd=repository)
    assert word(house, repository) == "kept"
    house.devbay("thaw", "one", cwd=repository)


def test_restart_restarts_what_is_named_and_nothing_else(house: House, repository: Path):
    before = house.running()
    house.devbay("restart", "one", "web", cwd=repository)
    after = house.running()
    assert after["db"] == before["db"]
    assert after["web"] != before["web"]


def test_up_applies_an_edited_manifest_and_keeps_what_did_not_change(house: House, repository: Path):
    worktree = Path(house.json("status", "one", cwd=repository)["worktree"])
    manifest = worktree / "devbay.yaml"
    before = house.running()["db"]
    manifest.write_text(manifest.read_text().replace("GREETING: first", "GREETING: second"))
    house.devbay("up", "one", cwd=repository)
    ran = house.devbay("exec", "one", "web", "--", "sh", "-c", "echo $GREETING", cwd=repository)
    assert ran.out.strip() == "second"
    assert house.running()["db"] == before
    assert word(house, repository) == "kept"


def test_a_service_that_left_the_manifest_is_removed_by_up(house: House, repository: Path):
    worktree = Path(house.json("status", "one", cwd=repository)["worktree"])
    manifest = worktree / "devbay.yaml"
    before = manifest.read_text()
    manifest.write_text(before.replace("tasks:", MORE + "tasks:"))
    house.approve(repository)
    house.devbay("up", "one", cwd=repository)
    assert "more" in house.running()
    manifest.write_text(before)
    house.devbay("up", "one", cwd=repository)
    assert "more" not in house.running()


def test_an_invalid_manifest_changes_nothing_and_is_said(house: House, repository: Path):
    worktree = Path(house.json("status", "one", cwd=repository)["worktree"])
    manifest = worktree / "devbay.yaml"
    before = manifest.read_text()
    manifest.write_text(before.replace("project: rest", "project: rest\nportt: 3"))
    try:
        error = house.devbay("up", "one", "--json", cwd=repository, code=1).error
        assert error["code"] == "invalid_manifest"
        assert "portt" in error["message"]
        assert sorted(house.running()) == ["db", "web"]
    finally:
        manifest.write_text(before)


def test_a_service_that_died_is_seen_with_its_exit_code_and_started_again_by_up(
    house: House, repository: Path
):
    house.kill("web")
    wait_for(lambda: "web" not in house.running(), "the service to be gone")
    info = house.json("status", "one", cwd=repository)
    assert info["state"] in ("degraded", "failed")
    found = web(house, repository)
    assert (found["state"], found["exit_code"]) == ("failed", 137)
    assert "web" in info["reason"]
    house.devbay("up", "one", cwd=repository)
    assert web(house, repository)["health"] == "healthy"
    with urllib.request.urlopen(web(house, repository)["url"], timeout=5) as answer:
        assert answer.read() == b"tiny\n"


def test_a_container_removed_by_hand_is_made_again_with_its_data(house: House, repository: Path):
    if house.runtime_name == "host":
        pytest.skip("there are no containers")
    (name,) = house.containers("label=dev.devbay.service=db")
    docker("rm", "-f", name)
    house.devbay("up", "one", cwd=repository)
    assert word(house, repository) == "kept"


def test_a_bay_made_without_booting_boots_with_up(house: House, repository: Path):
    info = house.json("new", "later", "--no-boot", cwd=repository)
    assert info["state"] == "cold"
    assert house.json("up", "later", cwd=repository)["state"] == "running"
    house.devbay("rm", "later", cwd=repository)


def test_two_bays_do_not_share_data(house: House, repository: Path):
    house.devbay("new", "two", cwd=repository)
    run = house.json("run", "two", "get", cwd=repository)["run"]
    lines = house.json("logs", "two", "--run", run, cwd=repository)["lines"]
    assert [line["text"] for line in lines if line["text"]] == []
    house.devbay("rm", "two", cwd=repository)


def test_exec_runs_in_the_running_service(house: House, repository: Path):
    ran = house.devbay("exec", "one", "--", "python", "ask.py", "get", "word", cwd=repository)
    assert ran.out.strip() == "kept"
    assert house.devbay("exec", "one", "--", "sh", "-c", "exit 5", cwd=repository, code=5)

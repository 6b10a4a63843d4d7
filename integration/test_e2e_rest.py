"""Rest and change: cool, freeze and thaw keep data and order; restart; an edited manifest; a bad one."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from integration.house import House, docker

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
    image: busybox:1.37
    start: [sh, -c, "echo PING | nc -w 3 db 6379 | grep -q PONG || exit 9; exec httpd -f -p 8080 -h www"]
    port: 8080
    needs: [db]
    primary: true
    health: {http: /}
    env: {GREETING: first}
tasks:
  get: {image: "redis:7", run: [redis-cli, -h, db, get, word], needs: [db]}
  set: {image: "redis:7", run: [redis-cli, -h, db, set, word, kept], needs: [db]}
"""
MORE = """\
  more:
    image: busybox:1.37
    start: [sleep, "99"]
    health: {process: true}
"""


@pytest.fixture(scope="module")
def repository(make: Callable[..., Path], house: House) -> Path:
    path: Path = make("tiny", "rest", MANIFEST)
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
    assert house.containers(everything=False) == []
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
    before = docker("ps", "-q", "--filter", f"label=dev.devbay.home={house.home.id}").split()
    assert house.json("freeze", "one", cwd=repository)["state"] == "frozen"
    assert len(house.containers("status=paused")) == 2
    assert house.json("thaw", "one", cwd=repository)["state"] == "running"
    assert docker("ps", "-q", "--filter", f"label=dev.devbay.home={house.home.id}").split() == before


def test_a_task_in_a_frozen_bay_thaws_what_it_needs(house: House, repository: Path):
    house.devbay("freeze", "one", cwd=repository)
    assert word(house, repository) == "kept"
    house.devbay("thaw", "one", cwd=repository)


def test_restart_restarts_what_is_named_and_nothing_else(house: House, repository: Path):
    def started() -> dict[str, str]:
        names = house.containers(everything=False)
        return {
            name.rsplit("-", 1)[1]: docker("inspect", "-f", "{{.State.StartedAt}}", name) for name in names
        }

    before = started()
    house.devbay("restart", "one", "web", cwd=repository)
    after = started()
    assert after["db"] == before["db"]
    assert after["web"] != before["web"]


def test_up_applies_an_edited_manifest_and_keeps_what_did_not_change(house: House, repository: Path):
    worktree = Path(house.json("status", "one", cwd=repository)["worktree"])
    manifest = worktree / "devbay.yaml"
    database = house.containers("label=dev.devbay.service=db")
    before = docker("inspect", "-f", "{{.Id}}", *database)
    manifest.write_text(manifest.read_text().replace("GREETING: first", "GREETING: second"))
    house.devbay("up", "one", cwd=repository)
    (name,) = house.containers("label=dev.devbay.service=web")
    assert "GREETING=second" in json.loads(docker("inspect", "-f", "{{json .Config.Env}}", name))
    assert docker("inspect", "-f", "{{.Id}}", *database) == before
    assert word(house, repository) == "kept"


def test_a_service_that_left_the_manifest_is_removed_by_up(house: House, repository: Path):
    worktree = Path(house.json("status", "one", cwd=repository)["worktree"])
    manifest = worktree / "devbay.yaml"
    before = manifest.read_text()
    manifest.write_text(before.replace("tasks:", MORE + "tasks:"))
    house.devbay("up", "one", cwd=repository)
    assert len(house.containers("label=dev.devbay.service=more")) == 1
    manifest.write_text(before)
    house.devbay("up", "one", cwd=repository)
    assert house.containers("label=dev.devbay.service=more") == []


def test_an_invalid_manifest_changes_nothing_and_is_said(house: House, repository: Path):
    worktree = Path(house.json("status", "one", cwd=repository)["worktree"])
    manifest = worktree / "devbay.yaml"
    before = manifest.read_text()
    manifest.write_text(before.replace("project: rest", "project: rest\nportt: 3"))
    try:
        error = house.devbay("up", "one", "--json", cwd=repository, code=1).error
        assert error["code"] == "invalid_manifest"
        assert "portt" in error["message"]
        assert len(house.containers(everything=False)) == 2
    finally:
        manifest.write_text(before)


def test_a_service_that_died_is_seen_with_its_exit_code_and_started_again_by_up(
    house: House, repository: Path
):
    (name,) = house.containers("label=dev.devbay.service=web")
    docker("kill", name)
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
    ran = house.devbay("exec", "one", "db", "--", "redis-cli", "get", "word", cwd=repository)
    assert ran.out.strip() == "kept"
    assert house.devbay("exec", "one", "--", "sh", "-c", "exit 5", cwd=repository, code=5)

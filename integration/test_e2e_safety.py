"""Approvals end to end, and secrets that are seen nowhere."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.conftest import maker
from integration.house import House, docker
from integration.person import approve, approve_all
from integration.repositories import TINY

SECRET = "s3cr3t-value-of-the-shop-0815"
WITH_SECRET = TINY.replace(
    "  helper:\n",
    "  teller:\n    image: busybox:1.37\n"
    '    start: [sh, -c, "echo the key is $KEY; echo also $KEY >&2; sleep 999"]\n'
    '    env: {KEY: "${secret:shop/key}"}\n    health: {process: true}\n  helper:\n',
).replace("  web:\n    image", "  web:\n    primary: true\n    image") + (
    '  tell:\n    run: [sh, -c, "echo $KEY | tee $DEVBAY_RUN_DIR/k; exit 1"]\n'
    "    needs: [teller]\n    in: teller\n"
)
WITH_SOCKET = TINY.replace("  helper:\n", "  helper:\n    docker_socket: true\n").replace(
    "  web:\n    image", "  web:\n    primary: true\n    image"
)


@pytest.fixture
def make_own(own_house: House) -> Callable[..., Path]:
    return maker(own_house)


def test_the_engines_socket_waits_for_a_person_and_the_rest_runs(
    own_house: House, make_own: Callable[..., Path]
):
    repository = make_own("tiny", "r", WITH_SOCKET)
    ran = own_house.devbay("new", "one", "--json", cwd=repository, code=3)
    info = ran.json
    states = {each["name"]: each for each in info["services"]}
    assert info["state"] == "degraded"
    assert info["pending_approvals"]
    assert (states["helper"]["state"], states["helper"]["reason"]) == ("waiting", "approval_required")
    assert states["web"]["health"] == "healthy"
    assert own_house.containers("label=dev.devbay.service=helper") == []

    code, shown = approve(own_house, repository, "n\n")
    assert code == 3
    assert "socket" in shown
    approve_all(own_house, repository)
    assert own_house.json("up", "one", cwd=repository)["state"] == "running"
    (name,) = own_house.containers("label=dev.devbay.service=helper")
    assert "docker.sock" in docker("inspect", "-f", "{{json .HostConfig.Binds}}{{json .Mounts}}", name)
    assert own_house.devbay("approve", cwd=repository).out.strip() == "nothing waits for approval"


def test_approve_without_a_terminal_changes_nothing_and_exits_with_3(
    own_house: House, make_own: Callable[..., Path]
):
    repository = make_own("tiny", "r", WITH_SOCKET)
    assert own_house.devbay("approve", "--json", cwd=repository, code=3).error["items"]
    assert own_house.devbay("approve", "--json", cwd=repository, code=3).error["items"]


def test_an_agent_cannot_approve_even_at_a_terminal(own_house: House, make_own: Callable[..., Path]):
    repository = make_own("tiny", "r", WITH_SOCKET)
    code, shown = approve(own_house, repository, "y\n", marked=True)
    assert code == 3
    assert "person" in shown
    assert own_house.devbay("approve", "--json", cwd=repository, code=3).error["items"]


def test_a_run_that_needs_an_approval_starts_nothing(own_house: House, make_own: Callable[..., Path]):
    repository = make_own("tiny", "r", WITH_SECRET)
    own_house.devbay("new", "one", "--no-boot", cwd=repository, code=None)
    result = own_house.json("run", "one", "tell", cwd=repository, code=3)
    assert (result["status"], result["reason"]) == ("error", "approval_required")
    assert own_house.containers() == []


def test_a_secret_reaches_its_service_and_is_shown_nowhere(make_own: Callable[..., Path], own_house: House):
    repository = make_own("tiny", "r", WITH_SECRET)
    with_secret = {"DEVBAY_SECRET_SHOP_KEY": SECRET}
    own_house.devbay("new", "one", cwd=repository, code=3, env=with_secret)
    approve_all(own_house, repository)

    ran = own_house.devbay("up", "one", "--json", cwd=repository, env=with_secret)
    assert ran.json["state"] == "running"
    said = ran.out + ran.err
    (name,) = own_house.containers("label=dev.devbay.service=teller")
    assert SECRET in docker("logs", name), "the service itself has it"

    logs = own_house.devbay("logs", "one", "teller", cwd=repository)
    assert "the key is" in logs.out
    ran = own_house.devbay("run", "one", "tell", "--json", cwd=repository, code=1, env=with_secret)
    said += logs.out + ran.out + ran.err
    shows = "status one", "ls", "approve", f"logs one --run {ran.json['run']}", "rm one --dry-run"
    for words in shows:
        found = own_house.devbay(*words.split(), "--json", cwd=repository, code=None)
        said += found.out + found.err
    own_house.kill_daemon()
    said += own_house.devbay("logs", "one", "teller", cwd=repository).out
    assert SECRET not in said

    for path in own_house.home.state_dir.rglob("*"):
        if path.is_file() and "out" not in path.parts:
            assert SECRET.encode() not in path.read_bytes(), f"the secret stands in {path}"
    own_house.devbay("rm", "one", "--force", cwd=repository)


def test_a_missing_secret_is_said_with_the_ways_to_give_it(own_house: House, make_own: Callable[..., Path]):
    repository = make_own("tiny", "r", WITH_SECRET)
    own_house.devbay("new", "one", "--no-boot", cwd=repository, code=None)
    approve_all(own_house, repository)
    ran = own_house.devbay("up", "one", "--json", cwd=repository, code=None)
    assert ran.code in (1, 3)
    assert "DEVBAY_SECRET_SHOP_KEY" in json.dumps(ran.json) or "shop/key" in json.dumps(ran.json)


def test_the_daemons_socket_is_the_users_alone(own_house: House):
    own_house.devbay("ls")
    assert own_house.home.socket.stat().st_mode & 0o777 == 0o600
    assert own_house.home.socket.parent.stat().st_mode & 0o777 == 0o700


def test_a_container_cannot_rewrite_what_git_on_the_host_reads(
    own_house: House, make_own: Callable[..., Path]
):
    manifest = TINY + (
        '  attack:\n    run: [sh, -c, "echo gitdir: /tmp > .git; rm -f .git; mv .git x"]\n    needs: []\n'
    )
    repository = make_own("tiny", "r", manifest)
    info = own_house.json("new", "one", "--no-boot", cwd=repository)
    pointer = Path(info["worktree"]) / ".git"
    before = pointer.read_text()
    own_house.devbay("run", "one", "attack", cwd=repository, code=None)
    assert pointer.read_text() == before
    assert re.fullmatch(r"gitdir: .+\n", before)

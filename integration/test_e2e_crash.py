"""A daemon killed at any moment: afterwards `ls` is right, everything can be removed, nothing is left."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from integration import leftovers
from integration.conftest import maker
from integration.house import House, wait_for
from integration.repositories import TINY, git

RUNTIMES = ("docker", "host")
SLOW = TINY.replace("    health: {process: true}", "    health: {log: never, timeout: 60s}").replace(
    "tasks:\n", 'tasks:\n  nap:\n    run: [sh, -c, "echo said; sleep 60"]\n    needs: []\n'
)


@pytest.fixture
def make_own(own_house: House) -> Callable[..., Path]:
    return maker(own_house)


def test_killed_while_a_bay_is_created(own_house: House, make_own: Callable[..., Path]):
    repository = make_own("tiny", "r", SLOW)
    going = own_house.start("new", "half", cwd=repository)
    wait_for(own_house.running, "a service of the bay")
    own_house.kill_daemon()
    _, said = going.communicate(timeout=30)
    assert going.returncode != 0
    assert "daemon" in said
    (bay,) = own_house.json("ls", cwd=repository)["bays"]
    assert bay["name"] == "half"
    assert bay["state"] in ("degraded", "starting", "failed", "running", "cold")
    own_house.devbay("gc", cwd=repository)
    assert own_house.json("ls", cwd=repository)["bays"], "gc never removes a bay"
    own_house.devbay("rm", "half", cwd=repository)
    assert own_house.objects() == []
    assert git(repository, "worktree", "list").count("\n") == 0
    assert git(repository, "branch", "--format=%(refname:short)") == "main"


@pytest.mark.parametrize(
    "moment", [0.1, *(pytest.param(each, marks=pytest.mark.full) for each in (0.02, 0.25, 0.5, 1.0))]
)
def test_killed_at_any_moment_of_creating(own_house: House, make_own: Callable[..., Path], moment: float):
    repository = make_own("tiny", "r")
    own_house.devbay("ls", cwd=repository)
    going = own_house.start("new", "half", cwd=repository)
    wait_for(lambda: (repository / ".devbay").exists() or going.poll() is not None, "the command to begin")
    time.sleep(moment)
    own_house.kill_daemon()
    going.communicate(timeout=30)
    bays = own_house.json("ls", cwd=repository)["bays"]
    for bay in bays:
        own_house.devbay("status", bay["name"], cwd=repository)
        own_house.devbay("rm", bay["name"], cwd=repository)
    own_house.devbay("gc", "--all", cwd=repository)
    assert own_house.objects() == []
    assert git(repository, "worktree", "list").count("\n") == 0
    assert git(repository, "branch", "--format=%(refname:short)") == "main"


def test_killed_during_a_run(own_house: House, make_own: Callable[..., Path]):
    repository = make_own("tiny", "r", SLOW)
    own_house.devbay("new", "one", "--no-boot", cwd=repository)
    with own_house.client(repository) as client:
        run = client.tool("bay_run_task", {"bay": "one", "task": "nap", "wait_s": 1.5})["run"]
    wait_for(own_house.runs, "the run to have a process")
    own_house.kill_daemon()
    with own_house.client(repository) as client:
        result = wait_for(
            lambda: (
                (found := client.tool("bay_run_result", {"run": run, "wait_s": 0}))["status"] == "lost"
                and found
            ),
            "the run to be known as lost",
        )
        assert result["reason"] == "daemon_restarted"
    assert "said" in Path(result["log"]).read_text()
    wait_for(lambda: not own_house.runs(), "the run's processes to go")
    assert own_house.json("run", "one", "hello", cwd=repository)["status"] == "passed"


def test_killed_while_a_bay_is_destroyed(own_house: House, make_own: Callable[..., Path]):
    repository = make_own("tiny", "r")
    own_house.devbay("new", "one", cwd=repository)
    going = own_house.start("rm", "one", cwd=repository)
    wait_for(
        lambda: len(own_house.running()) < 2 or going.poll() is not None,
        "destroying to begin",
        pause_s=0.01,
    )
    own_house.kill_daemon()
    going.communicate(timeout=30)
    bays = own_house.json("ls", cwd=repository)["bays"]
    if bays:
        assert bays[0]["state"] == "destroying"
        assert bays[0]["reason"]
        own_house.devbay("rm", "one", cwd=repository)
    assert own_house.objects() == []
    assert git(repository, "worktree", "list").count("\n") == 0


def test_services_go_on_while_the_daemon_is_dead_and_are_known_again(
    own_house: House, make_own: Callable[..., Path]
):
    repository = make_own("tiny", "r")
    before = own_house.json("new", "one", cwd=repository)
    own_house.kill_daemon()
    assert sorted(own_house.running()) == ["helper", "web"]
    as_it_was = own_house.running()
    after = own_house.json("status", "one", cwd=repository)
    assert (after["state"], after["public_url"]) == ("running", before["public_url"])
    assert {each["health"] for each in after["services"]} == {"healthy"}
    assert own_house.running() == as_it_was, "adopted, not started a second time"


@pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, marks=pytest.mark.full), signal.SIGKILL])
def test_a_create_ends_with_its_command_and_leaves_a_bay_that_can_be_seen_and_removed(
    own_house: House, make_own: Callable[..., Path], number: signal.Signals
):
    repository = make_own("tiny", "r", SLOW)
    going = own_house.start("new", "half", cwd=repository)
    wait_for(own_house.running, "a service of the bay")
    going.send_signal(number)
    going.communicate(timeout=30)
    assert going.returncode not in (0, None)
    wait_for(lambda: not own_house.running(), "what it started to be stopped")
    for bay in own_house.json("ls", cwd=repository)["bays"]:
        own_house.devbay("rm", bay["name"], cwd=repository)
    assert own_house.objects() == []


def test_two_daemons_never_serve_one_home(own_house: House, make_own: Callable[..., Path]):
    repository = make_own("tiny", "r")
    going = [own_house.start("ls", "--json", cwd=repository) for _ in range(4)]
    for each in going:
        _, said = each.communicate(timeout=30)
        assert each.returncode == 0, said
    daemons = [pid for pid, argv in leftovers.processes(own_house.root) if "devbay.daemon" in argv]
    assert daemons == [own_house.daemon_pid()]

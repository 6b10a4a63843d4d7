"""Several callers at once: bays do not meet, and one of two that want the same gets a clear answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from integration.house import House, Ran
from integration.repositories import TINY, git

RUNTIMES = ("docker", "host")
NAMES = ("one", "two", "three", "four")


@pytest.fixture
def repository(make: Callable[..., Path], request: pytest.FixtureRequest) -> Path:
    path: Path = make("tiny", request.node.name)
    return path


def all_at_once(house: House, repository: Path, *commands: tuple[str, ...]) -> list[Ran]:
    """Start every command before any has ended."""
    going = [house.start(*words, cwd=repository) for words in commands]
    ended = [each.communicate(timeout=120) for each in going]
    return [
        Ran(words, each.returncode, *texts) for words, each, texts in zip(commands, going, ended, strict=True)
    ]


def ports(info: dict[str, Any]) -> list[int]:
    return [port for each in info["services"] for port in each.get("ports", {}).values()]


def test_bays_made_at_once_run_side_by_side_and_go_at_once(house: House, repository: Path):
    made = all_at_once(house, repository, *(("new", name, "--json") for name in NAMES))
    infos = [ran.json for ran in made if ran.code == 0]
    assert [info["state"] for info in infos] == ["running"] * 4, [str(ran) for ran in made]
    taken = [port for info in infos for port in ports(info)]
    assert len(taken) == len(set(taken)) == 4
    assert len({info["public_url"] for info in infos}) == 4
    gone = all_at_once(house, repository, *(("rm", name) for name in NAMES))
    assert [ran.code for ran in gone] == [0] * 4, [str(ran) for ran in gone]
    assert [each for info in infos for each in house.objects(info["id"])] == []
    assert git(repository, "worktree", "list").count("\n") == 0
    assert git(repository, "branch", "--format=%(refname:short)") == "main"


def test_of_two_that_make_the_same_bay_one_makes_it(house: House, repository: Path):
    made = all_at_once(house, repository, *[("new", "same", "--json")] * 2)
    assert sorted(ran.code for ran in made) == [0, 2], [str(ran) for ran in made]
    (refused,) = [ran for ran in made if ran.code]
    assert refused.error["code"] == "bay_exists"
    assert house.json("status", "same", cwd=repository)["state"] == "running"
    house.devbay("rm", "same", cwd=repository)


def test_runs_that_need_a_cold_service_start_it_once(house: House, repository: Path):
    house.devbay("new", "cold", "--no-boot", cwd=repository)
    runs = all_at_once(house, repository, *[("run", "cold", "with-web", "--json")] * 3)
    assert [ran.json["status"] for ran in runs] == ["passed"] * 3, [str(ran) for ran in runs]
    assert [ran.json.get("started_services", []) for ran in runs].count(["web"]) == 1
    house.devbay("rm", "cold", cwd=repository)


def test_of_two_that_remove_the_same_bay_none_breaks(house: House, repository: Path):
    bay = house.json("new", "once", cwd=repository)["id"]
    gone = all_at_once(house, repository, *[("rm", "once", "--json")] * 2)
    codes = sorted(ran.code for ran in gone)
    assert codes[0] == 0, [str(ran) for ran in gone]
    for ran in gone:
        assert ran.code == 0 or ran.error["code"] in ("unknown_bay", "busy"), str(ran)
    assert house.objects(bay) == []


def test_two_projects_run_side_by_side_and_names_say_which(house: House, make: Callable[..., Path]):
    shop, blog = (
        make("tiny", name, TINY.replace("project: tiny", f"project: {name}")) for name in ("shop", "blog")
    )
    infos = [house.json("new", "main-bay", cwd=each) for each in (shop, blog)]
    assert [info["public_url"].split("/")[2].split(".")[0] for info in infos] == [
        "main-bay--shop", "main-bay--blog",
    ]  # fmt: skip
    error = house.devbay("status", "main-bay", "--json", cwd=house.root, code=2).error
    assert error["code"] == "ambiguous_bay"
    assert house.json("status", "main-bay--blog", cwd=house.root)["id"] == infos[1]["id"]
    for each in (shop, blog):
        house.devbay("rm", "main-bay", cwd=each)

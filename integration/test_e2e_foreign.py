"""A repository that devbay did not ship: Node, Redis and nginx, with a manifest written by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from integration.house import House
from integration.repositories import FOREIGN, git


@pytest.fixture(scope="module")
def repository(make: Callable[..., Path]) -> Path:
    path: Path = make("copied_from", "guestbook", FOREIGN)
    return path


@pytest.fixture(scope="module")
def bays(house: House, repository: Path) -> list[dict[str, Any]]:
    return [house.json("new", name, cwd=repository, timeout=300) for name in ("one", "two")]


def test_two_bays_run_side_by_side(bays: list[dict[str, Any]]):
    for info in bays:
        assert info["state"] == "running"
        assert {each["name"]: each["health"] for each in info["services"]} == {
            "cache": "healthy", "app": "healthy", "proxy": "healthy",
        }  # fmt: skip


def test_an_entry_of_one_is_not_in_the_other(bays: list[dict[str, Any]], page: Any):
    page.goto(bays[0]["public_url"])
    page.fill("input", "from one")
    page.click("button")
    page.wait_for_selector("li")
    assert page.inner_text("li") == "from one"
    page.goto(bays[1]["public_url"])
    assert page.query_selector("li") is None


def test_a_strict_cookie_stays_in_its_bay(bays: list[dict[str, Any]], page: Any):
    page.goto(bays[0]["public_url"])
    first = page.inner_text("#seen")
    page.goto(bays[1]["public_url"])
    assert page.inner_text("#seen") != first
    page.goto(bays[0]["public_url"])
    assert page.inner_text("#seen") == first


def test_a_file_mounted_into_a_proxy_is_in_force(bays: list[dict[str, Any]], page: Any):
    page.goto(bays[0]["public_url"] + "/about")
    assert "served by nginx" in page.content()


def test_its_own_tests_run_with_nodes_junit(house: House, repository: Path, bays: list[dict[str, Any]]):
    result = house.json("run", "one", "unit", cwd=repository)
    assert (result["status"], result["counts"]["passed"]) == ("passed", 2)
    broken = Path(bays[0]["worktree"]) / "app/page.js"
    broken.write_text(broken.read_text().replace('"<": "&lt;"', '"<": "<"'))
    result = house.json("run", "one", "unit", cwd=repository, code=1)
    (failure,) = result["failures"]
    assert failure["name"] == "markup in an entry is shown as text"
    assert failure["file"] == "app/page.test.js"
    assert "&lt;b&gt;" in failure["message"]
    git(Path(bays[0]["worktree"]), "checkout", "-q", "app/page.js")


def test_installed_packages_are_not_in_the_users_checkout(repository: Path, bays: list[dict[str, Any]]):
    assert not (repository / "node_modules").exists()
    for info in bays:
        owner = repository.stat().st_uid
        assert all(path.lstat().st_uid == owner for path in Path(info["worktree"]).rglob("*"))


def test_destroying_both_leaves_nothing(house: House, repository: Path, bays: list[dict[str, Any]]):
    for info in bays:
        house.devbay("rm", info["name"], cwd=repository)
    assert house.objects() == []
    assert git(repository, "worktree", "list").count("\n") == 0

"""Approvals over the daemon's private methods, on its real parts: what is listed, granted, and to whom."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from devbay import demo
from devbay.bays.parts import bay_id
from devbay.core import Core
from devbay.daemon import methods
from devbay.errors import DevbayError
from devbay.home import Home
from devbay.jobs import Job
from devbay.store import BayRecord
from devbay.tasks.run import pending_for
from devbay.tools.registry import Call
from tests.worktrees.repos import git

TEXT = """
version: 1
project: shop
services:
  db: {image: "postgres:16", port: 5432, health: {cmd: [pg_isready]}}
  web: {image: "node:22", start: [sh, dev.sh], health: {process: true}}
tasks:
  own: {in: host, run: [make, check], needs: []}
  unit: {in: web, run: [x], needs: []}
"""


class House:
    """A daemon's core on a home of its own, and one repository."""

    def __init__(self, root: Path) -> None:
        self.env = {
            "DEVBAY_HOME": str(root / "home"),
            "XDG_RUNTIME_DIR": str(root / "run"),
            "HOME": str(root),
        }
        self.env |= {"DEVBAY_RUNTIME": "host", "PATH": "/usr/bin:/bin"}
        self.core = Core(Home.from_environment(self.env))
        self.folder = root / "shop"
        self.folder.mkdir()
        git(self.folder, "init", "-q", "-b", "main")
        self.write("devbay.yaml", TEXT)
        self.write("dev.sh", "echo 1\n")
        self.write("Makefile", "check:\n\ttrue\nother:\n\tfalse\n")

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def call(
        self, method: str, folder: Path | None = None, env: dict[str, str] | None = None, **params: Any
    ) -> Any:
        who = Call(Job(), folder or self.folder, {**self.env, **(env or {})}, self.core, 1)
        return self.core.private[f"devbay/{method}"](who, params)

    def items(self, **given: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.call("approve.list", **given)["items"]
        return found

    def paths(self, **given: Any) -> list[str]:
        return [each["path"] for each in self.items(**given)]

    def grant_all(self) -> None:
        for item in self.items():
            self.call("approve.grant", key=item["key"])

    def bay(self, name: str, runtime: str) -> BayRecord:
        """A bay with a copy of the checkout's files."""
        caller = self.core.caller(Call(Job(), self.folder, self.env, self.core, 1))
        found, store = self.core.bays.repository(caller, None), self.core.parts.store
        store.claim_repository(found.id, str(found.common_dir), str(self.folder), "shop")
        worktree = self.folder.with_name(name)
        shutil.copytree(self.folder, worktree, ignore=shutil.ignore_patterns(".git"))
        at = "2026-01-01T00:00:00Z"
        record = BayRecord(
            bay_id("h", found.id, name), found.id, name, "shop", f"{name}--shop", str(worktree), runtime,
            "ready", at, at,
        )  # fmt: skip
        self.core.parts.store.add_bay(record)
        return record


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    monkeypatch.setattr(methods, "may_grant", lambda *_: None)
    made = House(tmp_path)
    yield made
    made.core.close(stop_proxy=False)


def test_on_a_machine_without_an_engine_a_checkout_asks_for_what_would_run_there(house: House) -> None:
    assert house.paths() == ["services/web", "tasks/own", "tasks/unit"]
    assert house.paths(env={"DEVBAY_RUNTIME": "docker"}) == ["tasks/own"]


def test_a_manifest_that_names_its_runtime_decides_where_the_caller_does_not(house: House) -> None:
    house.write("devbay.yaml", TEXT.replace("project: shop", "project: shop\nruntime: host"))
    assert "services/web" in house.paths(env={"DEVBAY_RUNTIME": ""})
    house.write("devbay.yaml", TEXT.replace("project: shop", "project: shop\nruntime: docker"))
    assert "services/web" not in house.paths(env={"DEVBAY_RUNTIME": "auto"})


def test_what_was_granted_waits_no_more_until_its_script_changes(house: House) -> None:
    house.grant_all()
    assert house.items() == []
    house.write("devbay.yaml", f"# a comment\n{TEXT}")
    assert house.items() == []
    house.write("dev.sh", "echo 2\n")
    assert house.paths() == ["services/web"]


def test_a_grant_is_for_what_was_shown(house: House) -> None:
    shown = next(each for each in house.items() if each["path"] == "services/web")
    house.write("dev.sh", "evil\n")
    with pytest.raises(DevbayError) as refused:
        house.call("approve.grant", key=shown["key"])
    assert refused.value.code == "nothing_pending"


def test_bays_ask_by_the_runtime_they_were_made_with(house: House) -> None:
    house.bay("one", "host")
    house.bay("two", "docker")
    env = {"DEVBAY_RUNTIME": "docker"}
    found = {each["path"]: each.get("bay") for each in house.items(env=env)}
    assert found == {"tasks/own": None, "services/web": "one", "tasks/unit": "one"}


def test_a_bay_holds_back_the_services_that_wait(house: House) -> None:
    host = house.core.opened(house.bay("one", "host"))
    assert host.blocked == {"web": "approval_required"}
    docker = house.core.opened(house.bay("two", "docker"))
    assert (docker.blocked, [each.path for each in docker.pending]) == ({}, ["tasks/own"])
    house.grant_all()
    assert house.core.opened(host.record).blocked == {}


def test_a_run_waits_for_its_own_approvals_and_those_of_its_image(house: House) -> None:
    host = house.core.opened(house.bay("one", "host"))
    assert pending_for(host, "unit") == ["web: runs on this machine", "task unit: runs on this machine"]
    docker = house.core.opened(house.bay("two", "docker"))
    assert pending_for(docker, "own") == ["task own: runs on this machine"]
    assert pending_for(docker, "unit", ["--x=1"]) == []


def test_arguments_do_not_carry_a_run_past_its_approval(house: House) -> None:
    bay = house.core.opened(house.bay("two", "docker"))
    house.grant_all()
    with pytest.raises(DevbayError) as refused:
        pending_for(bay, "own", ["other"])
    assert (refused.value.code, refused.value.exit_code) == ("arguments_not_covered", 3)


def test_what_is_shown_moves_no_terminal(house: House) -> None:
    house.write("dev.sh", "echo \x1b[1A\x1b[2K safe \u202e\n")
    house.write("devbay.yaml", TEXT.replace("[sh, dev.sh]", '[sh, dev.sh, "\\e]0;x\\a"]'))
    text = str([list(each.values()) for each in house.items()])
    assert "\\u{1b}" in house.items()[0]["detail"]
    assert not any(character in text for character in "\x1b\x07\u202e")


@pytest.fixture
def shop(house: House, tmp_path: Path) -> Path:
    return demo.make_repository(tmp_path / "demo/shop")


def test_nobody_is_asked_about_the_demo_as_it_is_shipped(house: House, shop: Path) -> None:
    assert house.paths(folder=shop)
    granted = house.call("approve.demo", folder=shop)["granted"]
    assert granted
    assert house.items(folder=shop) == []


@pytest.mark.parametrize("name", ["devbay.yaml", "shop/web.py", "requirements.txt"])
def test_a_changed_demo_is_anybodys_repository(house: House, shop: Path, name: str) -> None:
    path = shop / name
    path.write_text(f"{path.read_text()}\n")
    with pytest.raises(DevbayError) as refused:
        house.call("approve.demo", folder=shop)
    assert (refused.value.code, refused.value.exit_code) == ("not_the_demo", 3)
    assert house.paths(folder=shop)


def test_another_repository_is_not_the_demo(house: House) -> None:
    git(house.folder, "add", "-A")
    git(house.folder, "-c", "user.name=t", "-c", "user.email=t@t.invalid", "commit", "-qm", "x")
    with pytest.raises(DevbayError, match="not the demo"):
        house.call("approve.demo")


def test_the_demo_asks_for_nothing_but_what_its_trust_covers(house: House, shop: Path) -> None:
    assert {each["kind"] for each in house.items(folder=shop)} == {"host"}

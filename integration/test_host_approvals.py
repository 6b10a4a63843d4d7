"""What runs on this machine itself runs only after a person saw it, and again after it changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from integration.house import House
from integration.person import approve, approve_all
from integration.repositories import tiny

RUNTIMES = ("host",)
MANIFEST = """\
version: 1
project: asked
services:
  web:
    image: python:3
    install: [sh, scripts/install.sh]
    install_inputs: [scripts/install.sh]
    start: [sh, scripts/serve.sh]
    port: 8080
    health: {http: /}
tasks:
  check: {image: "python:3", run: [sh, scripts/check.sh], needs: []}
"""
SERVE = "exec python -m http.server $PORT -b 127.0.0.1\n"


@pytest.fixture
def repository(own_house: House) -> Path:
    """Every script leaves a file in the worktree when it runs."""
    files = {
        "scripts/install.sh": "touch installed\n",
        "scripts/serve.sh": f"touch served\n{SERVE}",
        "scripts/check.sh": "touch checked\n",
    }
    return unseen(own_house, "asked", files)


def unseen(house: House, name: str, files: dict[str, str]) -> Path:
    path = tiny(house.root / "repositories" / name, MANIFEST, **files)
    house.repositories.append(path)
    return path


def states(info: dict[str, Any]) -> list[tuple[str, str]]:
    return [(each["state"], each.get("reason", "")) for each in info["services"]]


def test_nothing_of_a_repository_runs_before_a_person_saw_it(own_house: House, repository: Path):
    info = own_house.json("new", "one", cwd=repository, code=3)
    assert states(info) == [("waiting", "approval_required")]
    result = own_house.json("run", "one", "check", cwd=repository, code=3)
    assert (result["status"], result["reason"]) == ("error", "approval_required")
    assert own_house.running() == {}
    made = {path.name for path in Path(info["worktree"]).iterdir()}
    assert made.isdisjoint({"installed", "served", "checked"})

    shown = approve_all(own_house, repository)
    for words in ("sh scripts/install.sh", "sh scripts/serve.sh", "sh scripts/check.sh"):
        assert words in shown
    assert own_house.json("up", "one", cwd=repository)["state"] == "running"
    assert own_house.json("run", "one", "check", cwd=repository)["status"] == "passed"


def test_what_was_refused_stays_refused_and_the_rest_runs(own_house: House, repository: Path):
    own_house.devbay("new", "one", "--no-boot", cwd=repository, code=None)
    code, shown = approve(own_house, repository, "n\ny\n")
    assert code == 3
    assert "approved 1 of 2" in shown
    assert states(own_house.json("up", "one", cwd=repository, code=3)) == [("waiting", "approval_required")]
    assert own_house.json("run", "one", "check", cwd=repository)["status"] == "passed"


def test_a_script_that_changed_waits_again_and_what_runs_goes_on(own_house: House, repository: Path):
    own_house.devbay("new", "one", "--no-boot", cwd=repository, code=None)
    approve_all(own_house, repository)
    info = own_house.json("up", "one", cwd=repository)
    before = own_house.running()
    scripts = Path(info["worktree"]) / "scripts"
    (scripts / "serve.sh").write_text(f"touch other\n{SERVE}")
    (scripts / "check.sh").write_text("touch other\n")

    info = own_house.json("status", "one", cwd=repository)
    assert len(info["pending_approvals"]) == 2
    assert own_house.running() == before, "what was approved goes on"
    result = own_house.json("run", "one", "check", cwd=repository, code=3)
    assert result["reason"] == "approval_required"
    own_house.devbay("restart", "one", "web", cwd=repository, code=3)
    assert not (scripts.parent / "other").exists()

    approve_all(own_house, repository)
    own_house.devbay("restart", "one", "web", cwd=repository)
    assert (scripts.parent / "other").exists()


def test_an_approval_holds_for_every_bay_of_the_repository_and_no_other(own_house: House, repository: Path):
    own_house.devbay("new", "one", "--no-boot", cwd=repository, code=None)
    approve_all(own_house, repository)
    assert own_house.json("new", "two", cwd=repository)["state"] == "running"
    files = {
        path.relative_to(repository).as_posix(): path.read_text()
        for path in (repository / "scripts").iterdir()
    }
    other = unseen(own_house, "copied", files)
    assert states(own_house.json("new", "one", cwd=other, code=3)) == [("waiting", "approval_required")]


def test_an_agent_cannot_approve_what_runs_on_this_machine(own_house: House, repository: Path):
    own_house.devbay("new", "one", "--no-boot", cwd=repository, code=None)
    code, shown = approve(own_house, repository, "y\ny\n", marked=True)
    assert code == 3
    assert "not_a_person" in shown
    assert own_house.devbay("approve", "--json", cwd=repository, code=3).error["items"]

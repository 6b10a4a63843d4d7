"""What a bay says of its installs, and what becomes of their templates."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.house import House, docker

MANIFEST = """\
version: 1
project: install
services:
  web:
    image: busybox:1.37
    install: [sh, -c, "touch deps/kept lost; echo install > /bin/tool"]
    install_inputs: [lock]
    volumes: [deps]
    start: [sleep, "999"]
    port: 8080
    health: {process: true}
    env: {SITE: "${bay.web.public_host}"}
tasks: {}
"""


@pytest.fixture(scope="module")
def repository(make: Callable[..., Path], house: House) -> Path:
    path: Path = make("tiny", "install", MANIFEST, lock="1\n")
    house.devbay("new", "one", cwd=path)
    return path


def templates(house: House) -> list[str]:
    found = docker("volume", "ls", "-q", "--filter", f"label=dev.devbay.home={house.home.id}")
    return [name for name in found.split() if "-template-" in name]


def edit(house: House, repository: Path, old: str, new: str) -> None:
    manifest = Path(house.json("status", "one", cwd=repository)["worktree"]) / "devbay.yaml"
    manifest.write_text(manifest.read_text().replace(old, new))


def test_what_an_install_could_not_keep_is_a_warning_until_it_is_corrected(house: House, repository: Path):
    warnings = house.json("status", "one", cwd=repository)["warnings"]
    assert len(warnings) == 2
    assert all(warning.startswith("web: ") for warning in warnings)
    assert "wrote lost" in warnings[0]
    assert "ran without SITE" in warnings[1]
    edit(house, repository, "kept lost", "kept")
    warnings = house.json("up", "one", cwd=repository)["warnings"]
    assert [warning.rpartition(" ran ")[2][:12] for warning in warnings] == ["without SITE"]


def test_a_service_that_lost_its_install_lets_its_template_go(house: House, repository: Path):
    assert templates(house)
    edit(house, repository, "    install: [", "    #install: [")
    edit(house, repository, "    install_inputs", "    #install_inputs")
    info = house.json("up", "one", cwd=repository)
    assert (info["state"], info["warnings"]) == ("running", [])
    house.devbay("gc", "--all", cwd=repository)
    assert templates(house) == []


def test_gc_lets_the_templates_of_a_forgotten_bay_go(house: House, repository: Path):
    edit(house, repository, "    #install", "    install")
    house.devbay("up", "one", cwd=repository)
    house.devbay("gc", "--all", cwd=repository)
    assert templates(house), "a bay's templates are never removed"
    house.devbay("rm", "one", "--force", cwd=repository)
    key = "SELECT key FROM templates LIMIT 1"
    with sqlite3.connect(house.home.store) as store:
        store.execute(f"INSERT INTO holders VALUES ('gone/web/k', ({key}), 'gone')")
    house.devbay("gc", "--all", cwd=repository)
    assert templates(house) == []

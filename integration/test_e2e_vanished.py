"""What a bay's files look like to other users, and a bay whose repository has gone."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Callable
from pathlib import Path

from integration.conftest import maker
from integration.house import House

RUNTIMES = ("docker", "host")


def test_files_of_a_bay_can_be_read_by_the_users_of_its_services(house: House) -> None:
    repository = maker(house)("tiny", "modes")
    worktree = Path(house.json("new", "modes", "--no-boot", cwd=repository)["worktree"])
    assert stat.S_IMODE((worktree / "devbay.yaml").stat().st_mode) == 0o644
    assert stat.S_IMODE(worktree.stat().st_mode) == 0o755
    house.devbay("rm", "modes", cwd=repository)


def test_a_bay_whose_repository_is_gone_is_removed_with_all_it_has(house: House) -> None:
    make: Callable[..., Path] = maker(house)
    repository = make("tiny", "gone")
    identity = house.json("new", "gone", cwd=repository)["id"]
    shutil.rmtree(repository)
    house.repositories.remove(repository)
    house.devbay("rm", identity, cwd=house.root)
    assert house.objects(identity) == []
    assert house.json("ls", "--all", cwd=house.root)["bays"] == []

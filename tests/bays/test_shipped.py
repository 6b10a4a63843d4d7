"""A repository counts as devbay's own only if every file of it is, committed and on disk."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from devbay.bays.shipped import difference
from devbay.worktrees import Repository
from tests.worktrees.repos import git


@pytest.fixture
def shipped(tmp_path: Path) -> Path:
    folder = tmp_path / "shipped"
    (folder / "src/__pycache__").mkdir(parents=True)
    (folder / "devbay.yaml").write_text("version: 1\nproject: a\n")
    (folder / "src/a.py").write_text("print()\n")
    (folder / "src/__pycache__/a.pyc").write_bytes(b"x")
    return folder


@pytest.fixture
def checkout(tmp_path: Path, shipped: Path) -> Path:
    folder = tmp_path / "checkout"
    shutil.copytree(shipped, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / ".git-ignored").mkdir()
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, *AUTHOR, "commit", "-q", "-m", "x")
    return folder


AUTHOR = ("-c", "user.name=t", "-c", "user.email=t@t.invalid", "-c", "commit.gpgsign=false")


def differs(checkout: Path, shipped: Path) -> str | None:
    return difference(Repository.discover(checkout), shipped)


def test_a_copy_is_no_different(checkout: Path, shipped: Path) -> None:
    assert differs(checkout, shipped) is None
    (checkout / "untracked").write_text("x")
    assert differs(checkout, shipped) is None


def edit(checkout: Path) -> None:
    (checkout / "src/a.py").write_text("print(1)\n")


def extend(checkout: Path) -> None:
    (checkout / "src/a.py").write_text("print()\n\n")


def remove(checkout: Path) -> None:
    (checkout / "src/a.py").unlink()


def link(checkout: Path) -> None:
    (checkout / "src/a.py").rename(checkout / "b.py")
    (checkout / "src/a.py").symlink_to("../b.py")


def stage(checkout: Path) -> None:
    (checkout / "more.py").write_text("x")
    git(checkout, "add", "more.py")


def stage_edit(checkout: Path) -> None:
    edit(checkout)
    git(checkout, "add", "-A")
    (checkout / "src/a.py").write_text("print()\n")


def commit_edit(checkout: Path) -> None:
    """The file on disk is as shipped, what a new bay would get is not."""
    edit(checkout)
    git(checkout, *AUTHOR, "commit", "-qam", "x")
    (checkout / "src/a.py").write_text("print()\n")
    git(checkout, "add", "-A")


def commit_more(checkout: Path) -> None:
    stage(checkout)
    git(checkout, *AUTHOR, "commit", "-qm", "x")
    git(checkout, "rm", "-q", "--cached", "more.py")


def commit_link(checkout: Path) -> None:
    (checkout / "more").symlink_to("src/a.py")
    git(checkout, "add", "more")


@pytest.mark.parametrize(
    "change", [edit, extend, remove, link, stage, stage_edit, commit_edit, commit_more, commit_link]
)
def test_any_change_is_a_difference(checkout: Path, shipped: Path, change: Callable[[Path], None]) -> None:
    change(checkout)
    assert differs(checkout, shipped) is not None


def test_a_file_that_is_shipped_and_not_there_is_a_difference(checkout: Path, shipped: Path) -> None:
    (shipped / "new").write_text("x")
    assert differs(checkout, shipped) == "new is not committed as it was shipped"

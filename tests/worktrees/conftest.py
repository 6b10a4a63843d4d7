"""Real git repositories, made fresh for each test, and a home without the user's configuration."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from devbay.worktrees import Repository, create_worktree, worktree_path
from tests.worktrees.repos import Made, commit, git

GIT_CONFIG = """
[user]
    name = A Person
    email = person@example.invalid
[init]
    defaultBranch = main
[protocol "file"]
    allow = always
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / ".gitconfig").write_text(GIT_CONFIG)
    monkeypatch.setenv("HOME", str(folder))
    for name in [name for name in os.environ if name.startswith(("GIT_", "XDG_"))]:
        monkeypatch.delenv(name)
    return folder


@pytest.fixture
def main(tmp_path: Path) -> Path:
    """A repository with one commit, in a path with a space and an accent."""
    folder = tmp_path / "my repo é"
    folder.mkdir()
    git(folder, "init", "-q")
    commit(folder, a_txt="a\n", _gitignore=".env\n*.log\nbuild/\n")
    return folder


@pytest.fixture
def super_main(tmp_path: Path, main: Path) -> Path:
    """The repository with a submodule `libs/sub`, which has a submodule `deep` itself."""
    deep, sub = tmp_path / "deep-source", tmp_path / "sub-source"
    for folder in (deep, sub):
        folder.mkdir()
        git(folder, "init", "-q")
        commit(folder, s_txt="s\n")
    git(sub, "submodule", "--quiet", "add", str(deep), "deep")
    git(sub, "commit", "-q", "-m", "deep")
    git(main, "submodule", "--quiet", "add", str(sub), "libs/sub")
    git(main, "submodule", "--quiet", "update", "--init", "--recursive")
    git(main, "commit", "-q", "-m", "libs")
    return main


@pytest.fixture
def bay() -> Callable[..., Made]:
    """Makes a bay on a repository."""

    def make(main: Path, name: str = "one", **options: str) -> Made:
        repository = Repository.discover(main)
        path = worktree_path(repository, name, "inside")
        branch = options.pop("branch", name)
        return Made(repository, create_worktree(repository, path=path, branch=branch, **options))

    return make

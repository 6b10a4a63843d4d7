"""What a worktree holds now: commit, branch, changed and untracked files, submodules each by itself."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from devbay.worktrees import beneath
from devbay.worktrees.git import Git, git_failed, split_nul
from devbay.worktrees.submodules import GITLINK, gitlinks

STATUS = (
    "status", "--porcelain=v1", "-z", "--no-renames", "--no-ahead-behind", "--untracked-files=all",
    "--ignore-submodules=all",
)  # fmt: skip
STATUS_LIMIT_S = 120.0


@dataclass(frozen=True)
class TreeState:
    """commit: None before the first. branch: None if HEAD is detached. dirty: changed or untracked files."""

    commit: str | None
    branch: str | None
    dirty: bool


@dataclass(frozen=True)
class Changes:
    """Paths relative to the worktree: tracked files that differ from HEAD, and untracked ones not ignored.

    A path that ends in a slash is an untracked folder with a repository of its own.
    """

    changed: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()


def worktree_state(worktree: Path, git_dir: Path, submodules: Mapping[str, Path]) -> TreeState:
    """Commit, branch and dirtiness of a worktree; raises `git_failed` if it is no worktree any more."""
    git = Git(git_dir, worktree)
    ref = git.try_line("symbolic-ref", "--quiet", "HEAD")
    found = changes(worktree, git_dir, submodules, hidden=False)
    return TreeState(
        commit=git.try_line("rev-parse", "--verify", "--quiet", "HEAD^{commit}"),
        branch=ref.removeprefix("refs/heads/") if ref else None,
        dirty=bool(found.changed or found.untracked),
    )


def untracked_files(worktree: Path, git_dir: Path) -> list[str]:
    """Untracked files that are not ignored, relative to the worktree."""
    args = ("ls-files", "--others", "--exclude-standard", "-z")
    return Git(git_dir, worktree).records(*args)


def changes(worktree: Path, git_dir: Path, submodules: Mapping[str, Path], *, hidden: bool = True) -> Changes:
    """Everything in the worktree that no commit holds, in submodules too.

    hidden: also look behind `assume-unchanged` and `skip-worktree`, at repositories added as they are, and
    into submodules that are not initialised, at the cost of listing the index.
    """
    changed, untracked = _own_changes(worktree, git_dir, hidden=hidden)
    if submodules or hidden:
        changed += _moved_submodules(worktree, git_dir, submodules)
    if hidden:
        untracked += _in_empty_submodules(worktree, git_dir, submodules)
    for path, own in submodules.items():
        if beneath.kind(worktree, path) != stat.S_IFDIR:
            continue  # deleted or replaced: told as a change of the submodule itself
        inside = _own_changes(worktree / path, own, hidden=hidden)
        changed += [f"{path}/{entry}" for entry in inside[0]]
        untracked += [f"{path}/{entry}" for entry in inside[1]]
    return Changes(tuple(sorted(set(changed))), tuple(sorted(set(untracked))))


def _own_changes(worktree: Path, git_dir: Path, *, hidden: bool) -> tuple[list[str], list[str]]:
    git = Git(git_dir, worktree)
    flagged = _flagged(git) if hidden else []
    if not flagged:
        return _status(git, {})
    folder = Path(tempfile.mkdtemp(prefix="devbay-index-"))
    try:
        env = {"GIT_INDEX_FILE": str(folder / "index")}
        # with its time, by which git knows entries that may have changed in the same tick
        shutil.copy2(git_dir / "index", folder / "index")
        listed = b"".join(os.fsencode(path) + b"\0" for path in flagged)
        for flag in ("--no-assume-unchanged", "--no-skip-worktree"):
            git.out("update-index", flag, "-z", "--stdin", stdin=listed, env=env)
        return _status(git, env)
    finally:
        shutil.rmtree(folder)


def _flagged(git: Git) -> list[str]:
    """Files in the work tree whose changes the index was told not to look for."""
    found = []
    for entry in git.records("ls-files", "-v", "-z"):
        tag, path = entry[0], entry[2:]
        if (tag == "S" or tag.islower()) and beneath.kind(git.work_tree or Path(), path) is not None:
            found.append(path)
    return found


def _status(git: Git, env: dict[str, str]) -> tuple[list[str], list[str]]:
    outcome = git.run(*STATUS, env=env, timeout_s=STATUS_LIMIT_S)
    if outcome.code != 0 and "filter" in outcome.err:
        # A required filter (Git LFS) that is not installed: compare what is stored.
        outcome = git.run(*STATUS, env=env, timeout_s=STATUS_LIMIT_S, filters=False)
    if outcome.code != 0:
        raise git_failed(STATUS, outcome)
    changed: list[str] = []
    untracked: list[str] = []
    for entry in split_nul(outcome.out):
        (untracked if entry.startswith("??") else changed).append(entry[3:])
    return changed, untracked


def _moved_submodules(worktree: Path, git_dir: Path, submodules: Mapping[str, Path]) -> list[str]:
    """Submodules whose commit is not the one that HEAD records; `--ignore-submodules=all` hides them."""
    git = Git(git_dir, worktree)
    moved = []
    staged = git.run(
        "diff-index", "--cached", "--raw", "-z", "--no-renames", "--ignore-submodules=none", "HEAD"
    )
    fields = split_nul(staged.out) if staged.code == 0 else []
    for meta, path in zip(fields[::2], fields[1::2], strict=True):
        if GITLINK in meta[1:].split(" ")[:2]:
            moved.append(path)
    if submodules:
        recorded = {link.path: link.commit for link in gitlinks(git)}
        for path, commit in recorded.items():
            if (own := submodules.get(path)) is not None:
                now = Git(own).try_line("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
                if now != commit or beneath.kind(worktree, path) != stat.S_IFDIR:
                    moved.append(path)
            inner = {
                inside.removeprefix(f"{path}/"): place
                for inside, place in submodules.items()
                if inside.startswith(f"{path}/")
            }
            if own is not None and inner and beneath.kind(worktree, path) == stat.S_IFDIR:
                moved += [f"{path}/{entry}" for entry in _moved_submodules(worktree / path, own, inner)]
    return moved


def _in_empty_submodules(worktree: Path, git_dir: Path, submodules: Mapping[str, Path]) -> list[str]:
    """Folders of submodules that are not initialised and yet hold something; git looks past them."""
    found = []
    for link in gitlinks(Git(git_dir, worktree)):
        if link.path in submodules:
            continue
        try:
            with beneath.parent_of(worktree, f"{link.path}/.") as (folder, name):
                below = os.open(name, beneath.DIRECTORY, dir_fd=folder)
        except OSError as error:
            if error.errno in beneath.NOT_THERE:
                continue
            raise
        try:
            if os.listdir(below):  # noqa: PTH208 - a descriptor
                found.append(f"{link.path}/")
        finally:
            os.close(below)
    return found

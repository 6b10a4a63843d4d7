"""What a destroy would lose: files that no commit holds, commits that no branch holds (decisions 4 and 6)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from devbay.worktrees import beneath
from devbay.worktrees.git import Git, common_dir_of
from devbay.worktrees.repository import Repository
from devbay.worktrees.state import changes
from devbay.worktrees.submodules import BASE_REF, linked_below

HELD = ("--branches", "--tags", "--remotes")
SHOWN = "--format=%h %s"


@dataclass(frozen=True)
class OwnWork:
    """Paths relative to the worktree. `excepted` may go (to the trash); the others are somebody's work."""

    changed: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()
    changed_includes: tuple[str, ...] = ()
    excepted: tuple[str, ...] = ()

    @property
    def any(self) -> bool:
        return bool(self.changed or self.untracked or self.changed_includes)


def own_work(
    worktree: Path,
    git_dir: Path,
    submodules: Mapping[str, Path],
    *,
    report_paths: Iterable[str] = (),
    includes: Mapping[str, str] | None = None,
    run_files: Mapping[str, str] | None = None,
) -> OwnWork:
    """The work in a worktree, recursively.

    report_paths: files (or folders) that the manifest declares as reports. includes: copied include files
    to their sha256. run_files: files that appeared during a run to their sha256 at its end. Raises
    `git_failed` if git cannot tell.
    """
    includes, run_files = includes or {}, run_files or {}
    reports = [report.strip("/") for report in report_paths]
    found = changes(worktree, git_dir, submodules)
    excepted: set[str] = set()
    changed = []
    for path in found.changed:
        if _is_report(path, reports):
            excepted.add(path)
        else:
            changed.append(path)
    untracked = []
    for path in found.untracked:
        if _is_report(path, reports) or (
            path in run_files and beneath.digest(worktree, path) == run_files[path]
        ):
            excepted.add(path)
        elif path not in includes:  # an include file is judged by its content, below
            untracked.append(path)
    return OwnWork(
        tuple(changed),
        tuple(untracked),
        tuple(sorted(path for path, copied in includes.items() if _changed(worktree, path, copied))),
        tuple(sorted(excepted)),
    )


def _is_report(path: str, reports: Iterable[str]) -> bool:
    return any(path == report or path.startswith(f"{report}/") for report in reports)


def _changed(worktree: Path, path: str, copied: str) -> bool:
    return beneath.kind(worktree, path) is not None and beneath.digest(worktree, path) != copied


def commits_of_own(repository: Repository, branch: str) -> list[str]:
    """`<short id> <subject>` of commits on a branch that no other branch, tag or remote-tracking ref holds.

    A symbolic ref to the branch is no other branch. Newest first; empty if there is no such branch.
    """
    own = f"refs/heads/{branch}"
    if not repository.has_branch(branch):
        return []
    listing = repository.git.line(
        "for-each-ref", "--format=%(refname)%00%(symref)", "refs/heads", "refs/tags", "refs/remotes"
    )
    refs = [line.split("\0") for line in listing.splitlines()]
    others = [f"^{ref}" for ref, target in refs if own not in (ref, target)]
    wanted = "\n".join([own, *others]) + "\n"
    listed = repository.git.line("log", SHOWN, "--stdin", stdin=os.fsencode(wanted))
    return listed.splitlines()


IN_PROGRESS = {
    "rebase-merge": "a rebase is in progress",
    "rebase-apply": "a rebase or `git am` is in progress",
    "MERGE_HEAD": "a merge is in progress",
    "MERGE_AUTOSTASH": "a merge holds stashed changes",
    "CHERRY_PICK_HEAD": "a cherry-pick is in progress",
    "REVERT_HEAD": "a revert is in progress",
    "BISECT_LOG": "a bisect is in progress",
    "refs/worktree": "it has references of its own (refs/worktree)",
}
"""What in a git directory holds work that no file and no branch shows (gitrepository-layout(5))."""


def in_progress(git_dir: Path) -> list[str]:
    """Operations of git that were begun in the worktree and not finished, in words."""
    return [said for name, said in IN_PROGRESS.items() if _holds(git_dir / name)]


def _holds(path: Path) -> bool:
    return any(path.iterdir()) if path.is_dir() else path.exists()


def unheld_commits(worktree: Path, git_dir: Path) -> list[str]:
    """`<short id> <subject>` of commits that only a detached HEAD of this worktree holds, submodules too."""
    found = Git(git_dir)
    commits = [] if found.try_line("symbolic-ref", "--quiet", "HEAD") else _unheld(found)
    for path, own in sorted(linked_below(common_dir_of(git_dir), worktree).items()):
        commits += [f"{commit} (in {path})" for commit in _unheld(Git(own))]
    return commits


def _unheld(git: Git) -> list[str]:
    # The commit a bay's submodule started from may be on no ref at all: it was recorded by the repository.
    base = git.try_line("rev-parse", "--verify", "--quiet", BASE_REF)
    return git.line("log", SHOWN, "HEAD", "--not", *HELD, *([base] if base else []), "--").splitlines()

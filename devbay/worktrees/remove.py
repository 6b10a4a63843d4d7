"""Removing a worktree and its branch: only what is proven to be devbay's, in an order to be resumed.

The checks for a user's work are the caller's (`dirty`); here everything is forced.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from devbay.errors import PERSON_NEEDED, DevbayError
from devbay.worktrees import beneath
from devbay.worktrees.dirty import commits_of_own
from devbay.worktrees.record import (
    Record,
    all_records,
    folder_of,
    forget_record,
    load_record,
    repository_lock,
    save_record,
    scratch_logs,
)
from devbay.worktrees.repository import Repository, registration
from devbay.worktrees.submodules import linked_below, module_dirs

RETIRED = "retired-"


def remove_worktree(repository: Repository, path: Path, *, force: bool = False) -> bool:
    """Remove a linked worktree and its registration; False if there is nothing of devbay's to remove.

    A folder that cannot be proven to be this repository's worktree stays. force: also if the user locked the
    worktree. Raises `worktree_locked`, `main_checkout`, `worktree_not_removed` (with `left`: path to
    reason); it may be repeated until it succeeds.
    """
    if path in (repository.main_worktree, repository.common_dir):
        raise DevbayError("main_checkout", f"{path} is the repository itself and is never removed")
    common = repository.common_dir
    with beneath.disk_errors(f"removing {path}"), repository_lock(common):
        record = load_record(common, path)
        git_dir = registration(common, path)
        if git_dir is not None and not force and (reason := _locked(git_dir)) is not None:
            raise DevbayError(
                "worktree_locked",
                f"{path} was locked{f' ({reason})' if reason else ''}",
                next=f"git worktree unlock {path}",
                exit_code=PERSON_NEEDED,
            )
        if record is None and git_dir is None:
            return False
        if not _is_ours(path, git_dir, record):
            # Somebody's own folder at the same path: git's entry for what was there goes, the folder stays.
            _retire_all(repository, path, git_dir)
            forget_record(common, path)
            return False
        if record is not None and record.state != "creating":
            record = save_record(common, record, state="removing")
        take_away(repository, path, record)
        forget_record(common, path)
        return True


def lock_reason(repository: Repository, path: Path) -> str | None:
    """The reason of a lock that the user put on a worktree (may be empty); None if it is not locked."""
    git_dir = registration(repository.common_dir, path)
    return None if git_dir is None else _locked(git_dir)


def take_away(repository: Repository, path: Path, record: Record | None) -> None:
    """Delete a worktree's folder, then its registrations; the caller holds the lock.

    Raises `path_taken` if the folder is not the worktree, `worktree_not_removed`.
    """
    git_dir = registration(repository.common_dir, path)
    if os.path.lexists(path):
        if _is_ours(path, git_dir, record):
            _remove_folder(path)
        elif record is not None and record.inode is None and path.is_dir() and not any(path.iterdir()):
            path.rmdir()  # a crash between making the folder and noting which it is
        else:
            raise DevbayError(
                "path_taken",
                f"{path} is not the folder that devbay made there",
                next="move it away",
                path=str(path),
            )
    _retire_all(repository, path, git_dir)


def delete_branch(repository: Repository, branch: str, *, created_branch: bool) -> bool:
    """Delete a branch that devbay made, if it has no commits of its own and no checkout has it.

    Checked under the lock, and deleted only at the commit that was checked. False if it was kept.
    """
    if not created_branch:
        return False
    with repository_lock(repository.common_dir):
        commit = repository.branch_commit(branch)
        if commit is None or commits_of_own(repository, branch):
            return False
        return delete_ref(repository, branch, commit)


def delete_ref(repository: Repository, branch: str, expected: str) -> bool:
    """Delete a branch if it is at `expected` and no checkout has it, with its configuration."""
    if repository.branch_commit(branch) != expected or repository.branch_checked_out_at(branch) is not None:
        return False
    if repository.git.run("update-ref", "-d", f"refs/heads/{branch}", expected).code != 0:
        return False
    repository.git.run("config", "--local", "--remove-section", f"branch.{branch}")  # there may be none
    return True


def prune(repository: Repository) -> list[str]:
    """Finish what a crash left: removals begun, folders deleted by hand, parts already retired.

    Half-made worktrees stay for whoever repeats or removes them. Returns the paths that are gone now. git's
    own stale entries, of checkouts that devbay did not make, are left to `git worktree prune`.
    """
    common, gone = repository.common_dir, []
    with beneath.disk_errors(f"tidying {common}"), repository_lock(common):
        _sweep_retired(common)
        for record in all_records(common):
            path = Path(record.path)
            if record.state == "removing" or (record.state == "made" and not os.path.lexists(path)):
                git_dir = registration(common, path)
                if not os.path.lexists(path) or _is_ours(path, git_dir, record):
                    take_away(repository, path, record)
                else:
                    _retire_all(repository, path, git_dir)
                forget_record(common, path)
                gone.append(record.path)
    return gone


def _is_ours(path: Path, git_dir: Path | None, record: Record | None) -> bool:
    """Whether the folder is devbay's: the very folder it made, or one that names its registration itself."""
    if not os.path.lexists(path):
        return True
    if not stat.S_ISDIR(path.lstat().st_mode) or Path(os.path.realpath(path.parent)) != path.parent:
        return False
    if record is not None and record.owns(path):
        return True
    link = beneath.read_text(path, ".git", limit=8192)
    return git_dir is not None and link is not None and link.strip() == f"gitdir: {git_dir}"


def _locked(git_dir: Path) -> str | None:
    """The reason of the user's lock, or None; git's own lock while it makes a worktree does not count."""
    reason = beneath.read_text(git_dir, "locked", limit=8192)
    return None if reason is None or reason.strip() == "initializing" else reason.strip()


def _remove_folder(path: Path) -> None:
    left = beneath.remove_tree(path)
    if left:
        shown = "; ".join(f"{place}: {reason}" for place, reason in list(left.items())[:5])
        raise DevbayError(
            "worktree_not_removed",
            f"{len(left)} entries of {path} could not be removed: {shown}",
            next="remove them (files of another user need that user or root), then repeat",
            exit_code=1,
            left=left,
        )


def _retire_all(repository: Repository, path: Path, git_dir: Path | None) -> None:
    """Take the registrations of a worktree and its submodules out of git's sight, then delete them."""
    for own in [*linked_below(repository.common_dir, path).values(), *([git_dir] if git_dir else [])]:
        beneath.remove_tree(scratch_logs(own))
        # A rename happens or does not: git never sees half an entry.
        own.replace(folder_of(repository.common_dir) / f"{RETIRED}{own.name}-{own.stat().st_ino}")
    for shared in [repository.common_dir, *module_dirs(repository.common_dir)]:
        listing = shared / "worktrees"
        if listing.is_dir() and not any(listing.iterdir()):
            listing.rmdir()
    _sweep_retired(repository.common_dir)


def _sweep_retired(common_dir: Path) -> None:
    for folder in folder_of(common_dir).glob(f"{RETIRED}*"):
        left = beneath.remove_tree(folder)
        if left:
            raise DevbayError(
                "worktree_not_removed",
                f"{folder}: {next(iter(left.values()))}",
                next=f"remove {folder}",
                exit_code=1,
                left=left,
            )

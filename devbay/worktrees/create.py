"""Making a bay's worktree on a new or existing branch, and adopting a checkout that is there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from devbay.errors import DevbayError
from devbay.jobs import Job
from devbay.worktrees import beneath
from devbay.worktrees.git import LONG, Git, git_failed
from devbay.worktrees.place import prepare_parent
from devbay.worktrees.record import Record, forget_record, load_record, repository_lock, save_record
from devbay.worktrees.remove import delete_ref, take_away
from devbay.worktrees.repository import Repository, registration, well_formed
from devbay.worktrees.submodules import add_submodules, submodules


@dataclass(frozen=True)
class Created:
    """A worktree ready for use. base_commit: where it starts. branch: None if an adopted HEAD is detached."""

    path: Path
    git_dir: Path
    branch: str | None
    created_branch: bool
    base_commit: str
    submodules: Mapping[str, Path] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Start:
    """How a branch comes to be: as it is, at a commit, or tracking a remote's."""

    commit: str
    exists: bool
    tracks: str | None = None


def create_worktree(
    repository: Repository, *, path: Path, branch: str, start: str | None = None, job: Job | None = None
) -> Created:
    """Make a worktree of `branch` at `path` (from `worktree_path`).

    The branch is used if it exists, tracks the remote's if only a remote has it, and else is new at `start`
    (default: the caller's HEAD). Repeating after a crash at any point finishes or redoes it; repeating
    after success returns the same. Raises `bad_branch`, `branch_checked_out` (with `path`), `branch_exists`,
    `ambiguous_branch`, `no_commits`, `unknown_ref`, `path_taken`, `git_failed`, `disk_failed`.
    """
    if not well_formed(repository.git, branch):
        raise DevbayError(
            "bad_branch", f"{branch[:80]!r} cannot name a branch", next="choose a name such as 'login-fix'"
        )
    common = repository.common_dir
    with beneath.disk_errors(f"making {path}"), repository_lock(common):
        record = load_record(common, path)
        if record is not None and record.state == "made" and _is_whole(common, record, branch):
            return _created(record)
        if record is not None and record.state == "made" and os.path.lexists(path):
            raise _path_taken(path, f"a worktree of branch {record.branch!r}")
        if record is not None:
            undo(repository, record)
        _check_free(repository, path, branch)
        begin = _plan_branch(repository, branch, start)
        prepare_parent(repository, path)
        record = save_record(common, Record(str(path), "creating", branch, not begin.exists, begin.commit))
        try:
            return _created(_make(repository, record, begin, job))
        except BaseException as error:
            try:
                undo(repository, record)
            except DevbayError as left:
                error.add_note(f"and it could not be undone: {left.message}")
            raise


def adopt_worktree(repository: Repository, path: Path) -> Created:
    """Take an existing checkout (main or linked) of the repository as it is; raises `not_a_checkout`."""
    path = Path(os.path.realpath(path))
    if path == repository.main_worktree:
        git_dir: Path | None = repository.common_dir
    else:
        git_dir = registration(repository.common_dir, path)
    if git_dir is None or not path.is_dir():
        raise DevbayError("not_a_checkout", f"{path} is no checkout of {repository.common_dir}")
    git = Git(git_dir, path)
    commit = git.try_line("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    if commit is None:
        raise DevbayError("no_commits", f"{path} has no commit yet", next="git commit")
    ref = git.try_line("symbolic-ref", "--quiet", "HEAD")
    branch = ref.removeprefix("refs/heads/") if ref else None
    return Created(path, git_dir, branch, False, commit, submodules(path, git_dir))


def undo(repository: Repository, record: Record) -> None:
    """Take back what making a worktree left half done; the caller holds the lock.

    Nobody can have worked in it: `create_worktree` had not returned. Raises `path_taken` if the folder there
    is not the one that devbay made.
    """
    common, path = repository.common_dir, Path(record.path)
    take_away(repository, path, record)
    if record.state == "creating" and record.created_branch:
        # Only where it still is where it was made: else somebody has taken it over.
        delete_ref(repository, record.branch, record.base_commit)
    forget_record(common, path)


def _check_free(repository: Repository, path: Path, branch: str) -> None:
    held = repository.branch_checked_out_at(branch)
    if held is not None:
        gone = not held.exists()
        raise DevbayError(
            "branch_checked_out",
            f"branch {branch!r} is checked out at {held}" + (", which is gone" if gone else ""),
            next="git worktree prune" if gone else "adopt that checkout, or choose another branch",
            path=str(held),
        )
    if os.path.lexists(path) and (path.is_symlink() or not path.is_dir() or any(path.iterdir())):
        raise _path_taken(path, "not devbay's")


def _path_taken(path: Path, what: str) -> DevbayError:
    return DevbayError(
        "path_taken",
        f"{path} exists and is {what}",
        next="move it away, or choose another name",
        path=str(path),
    )


def _plan_branch(repository: Repository, branch: str, start: str | None) -> Start:
    wanted = repository.resolve(start) if start is not None else None
    commit = repository.branch_commit(branch)
    if commit is not None:
        if wanted not in (None, commit):
            raise DevbayError(
                "branch_exists",
                f"branch {branch!r} exists and is not at {start!r}",
                next="leave the start out to use the branch as it is, or choose another branch",
            )
        return Start(commit, exists=True)
    if wanted is not None:
        return Start(wanted, exists=False)
    remote = repository.remote_branches(branch)
    if len(remote) > 1:
        default = repository.git.try_line("config", "checkout.defaultRemote")
        remote = {r: c for r, c in remote.items() if r == f"refs/remotes/{default}/{branch}"} or remote
    if len(remote) > 1:
        raise DevbayError(
            "ambiguous_branch",
            f"several remotes have a branch {branch!r}",
            next="pass from_branch",
            candidates=[ref.removeprefix("refs/remotes/") for ref in remote],
        )
    if remote:
        ref, commit = next(iter(remote.items()))
        return Start(commit, exists=False, tracks=ref)
    return Start(repository.head_commit(), exists=False)


def _make(repository: Repository, record: Record, begin: Start, job: Job | None) -> Record:
    common, path = repository.common_dir, Path(record.path)
    path.mkdir(exist_ok=True)
    made = path.lstat()
    record = save_record(common, record, inode=(made.st_dev, made.st_ino))
    if not begin.exists:
        _make_branch(repository, record.branch, begin)
    added = repository.git.run(
        "worktree", "add", "--no-checkout", "--", str(path), record.branch, timeout_s=LONG, job=job
    )
    if added.code != 0:
        raise git_failed(("worktree", "add"), added)
    git_dir = registration(common, path)
    if git_dir is None:
        raise DevbayError("git_failed", f"git did not register {path}", exit_code=1)
    warnings = _check_out(Git(git_dir, path), job)
    below, said = add_submodules(path, git_dir, job=job)
    return save_record(
        common,
        record,
        state="made",
        git_dir=str(git_dir),
        submodules={place: str(own) for place, own in below.items()},
        warnings=warnings + said,
    )


def _make_branch(repository: Repository, branch: str, begin: Start) -> None:
    git = repository.git
    if begin.tracks is not None and git.run("branch", "--track", "--", branch, begin.tracks).code == 0:
        return
    # An empty old value: the ref must not exist.
    made = git.run(
        "update-ref", "-m", "branch: Created by devbay", "--create-reflog", f"refs/heads/{branch}",
        begin.commit, "",
    )  # fmt: skip
    if made.code != 0:
        raise DevbayError(
            "bad_branch",
            f"branch {branch!r} cannot be made: {made.err.strip()}",
            next="choose another branch name",
        )


def _check_out(git: Git, job: Job | None) -> list[str]:
    """Fill the worktree; the user's own filters run as they would for `git worktree add`."""
    args = ("reset", "--hard", "--quiet", "--no-recurse-submodules")
    done = git.run(*args, timeout_s=LONG, network=True, job=job)
    if done.code == 0:
        return []
    if "filter" not in done.err:
        raise git_failed(args, done)
    git.out(*args, timeout_s=LONG, network=True, filters=False, job=job)
    first = done.err.strip().splitlines()[0] if done.err.strip() else "no message"
    return [f"a filter failed, so its files are as git stores them (Git LFS: pointers): {first[:200]}"]


def _is_whole(common: Path, record: Record, branch: str) -> bool:
    path = Path(record.path)
    return record.branch == branch and record.owns(path) and registration(common, path) is not None


def _created(record: Record) -> Created:
    return Created(
        Path(record.path),
        Path(record.git_dir),
        record.branch,
        record.created_branch,
        record.base_commit,
        {path: Path(own) for path, own in record.submodules.items()},
        tuple(record.warnings),
    )

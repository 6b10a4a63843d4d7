"""Destroying a bay: refuse before anything is touched, remove by label, drop the record last."""

from __future__ import annotations

import logging
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from devbay.answers import DestroyAnswer
from devbay.bays.create import is_throwaway
from devbay.bays.parts import Bay
from devbay.errors import PERSON_NEEDED, DevbayError
from devbay.jobs import Job
from devbay.worktrees import (
    OwnWork,
    Repository,
    commits_of_own,
    delete_branch,
    in_progress,
    lock_reason,
    own_work,
    remove_worktree,
    to_trash,
    unheld_commits,
)
from devbay.worktrees.remove import delete_ref

logger = logging.getLogger(__name__)


@dataclass
class Findings:
    """What destroying would lose (`blockers`), throw away with a copy (`trashed`), and keep."""

    blockers: list[str] = field(default_factory=list)
    trashed: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    own_commits: list[str] = field(default_factory=list)
    gone: bool = False


def examine(bay: Bay) -> Findings:
    """Look, touch nothing. An adopted checkout and its branch are always kept."""
    record, found = bay.record, Findings()
    worktree = Path(record.worktree)
    if record.adopted:
        found.kept = [f"worktree {worktree} (adopted)", f"branch {record.branch} (adopted)"]
        return found
    found.gone = not worktree.is_dir() or not record.git_dir
    repository = _repository(bay)
    if repository is None:
        if not found.gone:
            found.blockers.append("its repository is gone, so what is in the worktree cannot be told")
            found.kept.append(f"worktree {worktree} (its repository is gone; remove it by hand)")
        return found
    if not found.gone:
        _look(bay, worktree, found)
    if record.branch:
        found.own_commits = commits_of_own(repository, record.branch)
        if not record.created_branch:
            found.kept.append(f"branch {record.branch} (it was there before the bay)")
        elif found.own_commits:
            count = len(found.own_commits)
            found.kept.append(f"branch {record.branch} ({count} commit{'s' * (count != 1)} of its own)")
    return found


def _look(bay: Bay, worktree: Path, found: Findings) -> None:
    """Work in the worktree. Where git cannot tell, all of it counts as work."""
    reason = lock_reason(bay.repository, worktree)
    if reason is not None:
        found.blockers.append(f"locked with git worktree lock{f': {reason}' if reason else ''}")
    try:
        work = _own_work(bay, worktree)
        unheld = unheld_commits(worktree, Path(bay.record.git_dir))
    except DevbayError as error:
        found.blockers.append(f"what is in it cannot be told: {error.message}")
        found.trashed = sorted(each.name for each in worktree.iterdir() if each.name != ".git")
        return
    found.blockers += [
        *(f"changed: {shown(path)}" for path in work.changed),
        *(f"untracked: {shown(path)}" for path in work.untracked),
        *(f"changed since it was copied: {shown(path)}" for path in work.changed_includes),
        *(f"commit on no branch: {shown(commit)}" for commit in unheld),
        *in_progress(Path(bay.record.git_dir)),
    ]
    found.trashed = [*work.excepted, *work.changed, *work.untracked, *work.changed_includes]


def _repository(bay: Bay) -> Repository | None:
    """The bay's repository, or None if it is not there any more."""
    try:
        return bay.repository
    except DevbayError as error:
        if error.code != "not_a_repository":
            raise
        return None


def shown(text: str) -> str:
    """A path as text: bytes that are no UTF-8 are replaced."""
    return os.fsencode(text).decode("utf-8", "replace")


def destroy(bay: Bay, *, force: bool, job: Job) -> DestroyAnswer:
    """Remove everything of the bay; the caller holds its lock and has dealt with active runs.

    Raises `refused_dirty` (exit 3) with `blockers` before anything is touched; with `force` what they name
    goes to the trash. Repeating after a crash goes on where it stopped.
    """
    record = bay.record
    worktree = Path(record.worktree)
    found = examine(bay)
    if found.blockers and not force:
        raise refused(bay, found)
    engine_there = _engine_answers(bay)
    bay.update(phase="destroying", reason="")
    bay.parts.health.forget(record.id)
    try:
        bay.parts.proxy.withdraw(record.site)
    except DevbayError as error:  # the wish is stored; the next call to the proxy carries it out
        logger.warning("withdrawing %s: %s", record.site, error.message)
    removed: list[str] = []
    if engine_there:
        job.progress("removing what runs, with its data")
        removed += bay.runtime.teardown(bay.ref, job)
    if record.runtime != "host":  # tasks `in: host` have run beside the bay's containers
        removed += bay.on_this_machine.teardown(bay.ref, job)
    trash = None
    repository = _repository(bay)
    if not record.adopted and repository is not None:
        if not found.gone and not is_throwaway(record):
            trash = _rescue(bay, worktree)
        job.progress("removing the worktree")
        if remove_worktree(repository, worktree, force=force):
            removed.append(f"worktree {worktree}")
        if record.branch and _drop_branch(bay, repository, record.branch):
            removed.append(f"branch {record.branch}")
    _forget(bay)
    answer = DestroyAnswer(
        bay=record.name, runtime=record.runtime, destroyed=True, removed=removed, kept=found.kept
    )
    return answer.model_copy(update={"trash": str(trash)}) if trash else answer


def _drop_branch(bay: Bay, repository: Repository, branch: str) -> bool:
    """Delete the bay's branch unless it holds work; that of a bay that was only tried holds none."""
    if is_throwaway(bay.record) and bay.record.created_branch:
        commit = repository.branch_commit(branch)
        return commit is not None and delete_ref(repository, branch, commit)
    return delete_branch(repository, branch, created_branch=bay.record.created_branch)


def _rescue(bay: Bay, worktree: Path) -> Path | None:
    """Put into the trash what is in the worktree now: it may have been written since it was examined."""
    now = Findings()
    _look(bay, worktree, now)
    if not now.trashed and not now.blockers:
        return None
    git_dir = Path(bay.record.git_dir)
    return to_trash(bay.parts.home.trash, bay.record.id, worktree, now.trashed, git_dir=git_dir)


def dry_run(bay: Bay) -> DestroyAnswer:
    """What `destroy` would remove, keep and refuse on."""
    record, found = bay.record, examine(bay)
    removed = bay.runtime.inventory(bay.ref) if _engine_answers(bay) else []
    if not record.adopted and _repository(bay) is not None:
        removed.append(f"worktree {record.worktree}")
        if record.created_branch and not found.own_commits:
            removed.append(f"branch {record.branch}")
    fields = {
        "bay": record.name, "runtime": record.runtime, "destroyed": False, "dry_run": True,
        "removed": removed, "kept": found.kept,
    }  # fmt: skip
    if found.blockers:
        fields["blockers"] = found.blockers
    return DestroyAnswer.model_validate(fields)


def refused(bay: Bay, found: Findings) -> DevbayError:
    """The error of a destroy that would lose work."""
    first = "; ".join(found.blockers[:10])
    more = f" and {len(found.blockers) - 10} more" if len(found.blockers) > 10 else ""
    return DevbayError(
        "refused_dirty",
        f"bay {bay.record.name!r} holds work that would be lost: {first}{more}; nothing was touched",
        next="commit it, or pass force (what is lost goes to the trash for seven days)",
        exit_code=PERSON_NEEDED,
        blockers=found.blockers,
    )


def _own_work(bay: Bay, worktree: Path) -> OwnWork:
    record = bay.record
    loaded = bay.loaded_or_none()
    manifest = loaded.manifest if loaded is not None else None
    reports = [
        task.report.path
        for task in (manifest.tasks.values() if manifest else ())
        if task.report not in {None, "auto"} and not isinstance(task.report, str) and task.report
    ]
    return own_work(
        worktree,
        Path(record.git_dir),
        {path: Path(git_dir) for path, git_dir in record.submodules.items()},
        report_paths=[path for path in reports if not path.startswith("${run.dir}/")],
        includes=record.includes,
        run_files=bay.parts.store.run_files(record.id),
    )


def _engine_answers(bay: Bay) -> bool:
    """Whether the engine can be asked; raises if it cannot although the bay may have something on it."""
    try:
        bay.runtime.check()
    except DevbayError:
        if bay.record.wanted != "none" or bay.parts.store.runs(bay.record.id):
            raise
        return False
    return True


def _forget(bay: Bay) -> None:
    """Drop what devbay remembers: run folders first, the record last. Finished runs stay as history."""
    for run in bay.parts.store.runs(bay.record.id):
        folder = Path(run.folder)
        if folder.parent == bay.parts.home.runs and folder.is_dir() and not folder.is_symlink():
            shutil.rmtree(folder, ignore_errors=True)
    bay.parts.scrub.forget(bay.record.id)
    bay.parts.store.forget_bay(bay.record.id)

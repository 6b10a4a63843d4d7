"""Making a bay: its record first, then worktree, submodules and include files; undone if it is unusable."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from devbay.bays.parts import Bay, Parts, bay_id, now
from devbay.errors import WORK_FAILED, DevbayError
from devbay.jobs import Job
from devbay.manifest import Manifest, load, parse
from devbay.manifest.load import NAMES
from devbay.names import bay_name_for_branch, check_bay_name, name_problem, site_label
from devbay.store import BayRecord
from devbay.worktrees import (
    Repository,
    adopt_worktree,
    copy_includes,
    create_worktree,
    delete_branch,
    remove_worktree,
    worktree_path,
)

THROWAWAY = "devbay-verify-"
"""How the names of bays start that are made to try a manifest. No caller may give such a name."""


@dataclass(frozen=True)
class Request:
    """What a caller asked for. Either `name` or `branch` is given.

    yaml: a manifest that is put into the worktree, uncommitted; the name is then one of `THROWAWAY`.
    """

    name: str | None = None
    branch: str | None = None
    start: str | None = None
    alias: str | None = None
    adopt: bool = False
    yaml: str | None = None


def is_throwaway(record: BayRecord) -> bool:
    """Whether the bay was made to try a manifest: nobody works in it, and nothing in it is kept."""
    return record.name.startswith(THROWAWAY)


def reserve(parts: Parts, repository: Repository, request: Request, env: Mapping[str, str]) -> BayRecord:
    """Check the request and write the bay's record (phase `creating`); nothing else is touched.

    Raises `bad_name`, `bay_exists`, `no_manifest`, `invalid_manifest`, `branch_checked_out`.
    """
    known = parts.store.bays(repository.id)
    taken = {r.name for r in known} | {r.alias for r in known if r.alias}
    if not request.name and not request.branch:
        raise DevbayError("bad_arguments", "neither `name` nor `branch` was given", next="give a name")
    name = check_bay_name(request.name) if request.name else bay_name_for_branch(request.branch or "", taken)
    branch = request.branch or name
    if name.startswith(THROWAWAY) and request.yaml is None:
        text = f"names that start with {THROWAWAY!r} are those of bays that devbay makes and removes itself"
        raise DevbayError("bad_name", text, next="choose a name such as 'login-fix'")
    if name in taken:
        raise DevbayError(
            "bay_exists",
            f"there is already a bay {name!r} in this repository",
            next=f"use it (bay_status bay={name!r}), or choose another name",
        )
    if request.alias is not None and (problem := name_problem(request.alias)):
        raise DevbayError("bad_name", f"the alias {request.alias[:60]!r} {problem}", next="choose another")
    if request.alias is not None and (request.alias in taken or request.alias == name):
        raise DevbayError("bay_exists", f"{request.alias!r} already names a bay here", next="choose another")
    manifest = manifest_of(repository) if request.yaml is None else parse(request.yaml).require()
    project = manifest.project
    # a repository that was removed holds no name, and what it was granted is no other's at its place
    vanished = [each.id for each in parts.store.repositories() if not Path(each.common_dir).exists()]
    parts.store.forget_repositories(vanished)
    claim = parts.store.repository(repository.id)
    if claim is not None and request.yaml is not None:
        claimed = claim  # what is only tried renames nothing
    else:
        main = str(repository.main_worktree) if repository.main_worktree else None
        claimed = parts.store.claim_repository(repository.id, str(repository.common_dir), main, project)
    path, adopted = _place(parts, repository, name, branch, request)
    runtime, engine = parts.runtimes.choose(env, manifest.runtime)
    moment = now()
    record = BayRecord(
        id=bay_id(parts.home.id, repository.id, name),
        repository=repository.id,
        name=name,
        alias=request.alias,
        project=claimed.shared_name,
        site=site_label(name, claimed.shared_name),
        branch=branch,
        created_branch=not adopted and not repository.has_branch(branch),
        worktree=str(path),
        adopted=adopted,
        phase="creating",
        runtime=runtime,
        engine=engine,
        created_at=moment,
        last_used_at=moment,
    )
    parts.store.add_bay(record)
    return record


def build(parts: Parts, record: BayRecord, request: Request, env: Mapping[str, str], job: Job) -> Bay:
    """Make the worktree of a reserved bay and fill it; a failure unwinds it and is raised."""
    bay = Bay(parts, record, env)
    try:
        _fill(bay, request.start, job)
        if request.yaml is not None:
            put_manifest(Path(record.worktree), request.yaml)
        runtime, engine = parts.runtimes.choose(env, bay.manifest.runtime)  # this branch may say another one
        bay.update(phase="ready", runtime=runtime, engine=engine)
    except Exception:
        unwind(bay)
        raise
    return bay


def unwind(bay: Bay) -> None:
    """Remove what creating made: nothing of the user's can be in it yet. An adopted checkout stays."""
    record = bay.record
    bay.parts.store.update_bay(record.id, phase="destroying")
    if not record.adopted:
        remove_worktree(bay.repository, Path(record.worktree), force=True)
        if record.branch and record.created_branch:
            delete_branch(bay.repository, record.branch, created_branch=True)
    bay.parts.scrub.forget(record.id)
    bay.parts.store.forget_bay(record.id)


def _fill(bay: Bay, start: str | None, job: Job) -> None:
    record, repository = bay.record, bay.repository
    path = Path(record.worktree)
    job.progress(f"making the worktree on {record.branch}")
    if record.adopted:
        created = adopt_worktree(repository, path)
    else:
        branch = record.branch or record.name
        created = create_worktree(repository, path=path, branch=branch, start=start, job=job)
    bay.update(
        branch=created.branch,
        created_branch=created.created_branch and record.created_branch,
        base_commit=created.base_commit,
        git_dir=str(created.git_dir),
        submodules={inner: str(git_dir) for inner, git_dir in created.submodules.items()},
        warnings=[*record.warnings, *created.warnings],
    )
    job.check()
    main = repository.main_worktree
    if main is not None and not record.adopted:
        copied = copy_includes(main, path, git_dir=repository.common_dir)
        bay.update(includes=copied)
        bay.know_includes()


def manifest_of(repository: Repository) -> Manifest:
    """The manifest of the caller's checkout, else the main one's."""
    try:
        return load(repository.toplevel).require()
    except DevbayError as error:
        if error.code != "no_manifest" or repository.main_worktree is None:
            raise
    return load(repository.main_worktree).require()


def put_manifest(worktree: Path, text: str) -> None:
    """Put a manifest in the place of the worktree's own. A link there is replaced, not followed."""
    path = next((worktree / name for name in NAMES if os.path.lexists(worktree / name)), worktree / NAMES[0])
    try:
        path.unlink(missing_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        text = f"{path} cannot be written: {error.strerror}"
        raise DevbayError("disk_failed", text, next="check its folder", exit_code=WORK_FAILED) from error


def _place(
    parts: Parts, repository: Repository, name: str, branch: str, request: Request
) -> tuple[Path, bool]:
    """Where the worktree is or will be, and whether it is an adopted checkout."""
    held = repository.branch_checked_out_at(branch)
    if held is None:
        if request.adopt:
            raise DevbayError(
                "nothing_to_adopt",
                f"no checkout has branch {branch!r}",
                next="leave `adopt` out to make a worktree for it",
            )
        mode = parts.home.config.get("worktrees", "inside")
        return worktree_path(repository, name, mode, central=parts.home.state_dir / "worktrees"), False
    owner = next((r for r in parts.store.bays() if Path(r.worktree) == held), None)
    if owner is not None:
        raise DevbayError(
            "bay_exists",
            f"branch {branch!r} is checked out by the bay {owner.name!r}",
            next=f"use that bay, or give another branch (bay_create name={name!r} branch=...)",
        )
    if not request.adopt:
        raise DevbayError(
            "branch_checked_out",
            f"branch {branch!r} is checked out at {held}",
            next="pass adopt to use that checkout as the bay, or choose another branch",
            path=str(held),
        )
    return held, True

"""Collecting what belongs to no bay: objects of unknown bays, old trash, run folders nobody remembers."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

from devbay.bays.parts import Parts
from devbay.errors import DevbayError
from devbay.jobs import Job
from devbay.runtimes.base import BayRef
from devbay.worktrees import Repository, prune, sweep

logger = logging.getLogger(__name__)


def collect(parts: Parts, env: dict[str, str], job: Job, *, everything: bool) -> list[str]:
    """Remove leftovers on every engine that is known; with `everything` also caches and templates unused,
    among them those that only bays held which the store has forgotten.

    Never a bay or its data. Returns `<kind> <name>` of each. Raises `engine_unreachable` if the caller's
    engine does not answer; engines of other bays that do not are skipped.
    """
    parts.runtimes.check(env)
    removed = sweep_home(parts) + _prune_worktrees(parts)
    for record in parts.store.bays():
        parts.runtimes.for_bay(record.runtime, record.engine, env)
    mine = parts.runtimes.choose(env)
    parts.store.release_unknown_holders()
    for runtime in parts.runtimes.all():
        try:
            # looked for in this order, since a bay that is being made has its record before its objects
            present = runtime.bays_with_objects(parts.home.id)
            for bay in sorted(present - {record.id for record in parts.store.bays()}):
                removed += runtime.teardown(BayRef(bay, parts.home.id, "", "", ""), job)
            removed += runtime.collect(parts.home.id, job, everything=everything)
        except DevbayError:
            if runtime.key == parts.runtimes.for_bay(*mine, env).key:
                raise
            logger.info("%s is not asked: it does not answer", runtime.name)
    return removed


def _prune_worktrees(parts: Parts) -> list[str]:
    """What killed creations and removals left in repositories that are still there."""
    gone: list[str] = []
    for known in parts.store.repositories():
        try:
            gone += prune(Repository.from_record(Path(known.common_dir), known.main_worktree))
        except DevbayError as error:
            logger.info("%s: %s", known.common_dir, error.message)
    return [f"worktree {path}" for path in gone]


def sweep_home(parts: Parts) -> list[str]:
    """Remove trash older than seven days, and folders of runs that the store does not know."""
    removed = [f"trash {path.name}" for path in sweep(parts.home.trash)]
    folder = parts.home.runs
    known = {run.folder for run in parts.store.runs()}
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if str(path) not in known and path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
            removed.append(f"run folder {path.name}")
    return removed

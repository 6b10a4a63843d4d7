"""The trash: what a destroy takes away is kept for seven days, outside the repository."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable
from pathlib import Path

from devbay.home import private_dir
from devbay.worktrees import beneath
from devbay.worktrees.dirty import HELD
from devbay.worktrees.git import LONG, Git, common_dir_of
from devbay.worktrees.submodules import BASE_REF, linked_below

KEPT_DAYS = 7
STAMP = "%Y%m%dT%H%M%SZ"
STAGED = "staged.patch"
FOLDER = re.compile(r".+-(\d{8}T\d{6}Z)")


def to_trash(
    trash: Path,
    bay: str,
    worktree: Path,
    paths: Iterable[str],
    *,
    git_dir: Path | None = None,
    now: datetime.datetime | None = None,
) -> Path | None:
    """Keep `paths` (relative to the worktree) in `<trash>/<bay>-<UTC time>/`; None if nothing was there.

    With `git_dir` also what no file shows: commits that only a detached HEAD holds, as `<path>.bundle` (to
    be fetched from with git), and what is staged, as `staged.patch` (for `git apply --cached`). Links are
    kept as links, special files are left out. The worktree is unchanged.
    Raises `disk_failed`.
    """
    moment = (now or datetime.datetime.now(datetime.UTC)).strftime(STAMP)
    folder = trash / f"{bay}-{moment}"
    kept = False
    with beneath.disk_errors(f"saving files of {worktree} in {folder}"):
        for path in paths:
            if beneath.kind(worktree, path) is not None:
                private_dir(trash)
                private_dir(folder)
                kept |= beneath.save(worktree, path, folder)
    if git_dir is not None:
        staged = Git(git_dir, worktree).run("diff", "--cached", "--binary", "--no-ext-diff", "--no-textconv")
        if staged.code == 0 and staged.out:
            private_dir(trash)
            (private_dir(folder) / STAGED).write_bytes(staged.out)
            kept = True
        detached = [] if Git(git_dir).try_line("symbolic-ref", "--quiet", "HEAD") else [("HEAD", git_dir)]
        for path, own in [*detached, *linked_below(common_dir_of(git_dir), worktree).items()]:
            private_dir(trash)
            private_dir(folder)
            kept |= _bundle(Git(own), folder / f"{path.replace('/', '-')}.bundle")
    if not kept and folder.is_dir():
        folder.rmdir()
    return folder if kept else None


def _bundle(git: Git, file: Path) -> bool:
    base = git.try_line("rev-parse", "--verify", "--quiet", BASE_REF)
    revisions = ["HEAD", "--not", *HELD, *([base] if base else [])]
    if not git.line("rev-list", "--max-count=1", *revisions):
        return False
    git.out("bundle", "create", "--quiet", str(file), *revisions, timeout_s=LONG)
    return True


def sweep(
    trash: Path, *, older_than_days: int = KEPT_DAYS, now: datetime.datetime | None = None
) -> list[Path]:
    """Delete what has been in the trash for longer; returns what is gone. Foreign entries stay."""
    moment = now or datetime.datetime.now(datetime.UTC)
    gone: list[Path] = []
    if not trash.is_dir():
        return gone
    for folder in sorted(trash.iterdir()):
        named = FOLDER.fullmatch(folder.name)
        if named is None or folder.is_symlink() or not folder.is_dir():
            continue
        put = datetime.datetime.strptime(named[1], STAMP).replace(tzinfo=datetime.UTC)
        if moment - put > datetime.timedelta(days=older_than_days) and not beneath.remove_tree(folder):
            gone.append(folder)
    return gone

"""Which repository and which bay a caller means."""

from __future__ import annotations

import difflib
import os
import threading
from dataclasses import dataclass
from pathlib import Path

from devbay.errors import DevbayError
from devbay.store import BayRecord, Store
from devbay.worktrees import Repository


@dataclass(frozen=True)
class _Known:
    """A repository that was found from a folder, and what its `.git` was then."""

    repository: Repository
    mark: tuple[int, int]


class Discovery:
    """Finds repositories, and asks git again only if something on the way has changed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._known: dict[Path, _Known] = {}

    def find(self, cwd: Path, repo: str | None) -> Repository:
        """The repository that holds `repo` (relative to `cwd`), or `cwd`; raises `not_a_repository`."""
        path = cwd / Path(repo).expanduser() if repo else cwd
        if not path.is_dir():
            raise DevbayError(
                "not_a_repository",
                f"{path} is no folder",
                next="pass `repo`, a path inside a git repository",
            )
        with self._lock:
            known = self._known.get(path)
        if known is not None and known.mark == _mark(path, known.repository.toplevel):
            return known.repository
        commons = {record.id: Path(record.common_dir) for record in self._store.repositories()}
        bays = {Path(r.worktree): commons[r.repository] for r in self._store.bays() if not r.adopted}
        found = Repository.discover(path, bays)
        mark = _mark(path, found.toplevel)
        if mark is not None:
            with self._lock:
                self._known[path] = _Known(found, mark)
        return found


def _mark(path: Path, toplevel: Path) -> tuple[int, int] | None:
    """Identity of the checkout's `.git`; None if a nearer one has appeared between it and `path`."""
    try:
        found = os.lstat(toplevel / ".git")
        below = Path(os.path.realpath(path)).relative_to(toplevel).parts
    except (OSError, ValueError):
        return None
    for depth in range(1, len(below) + 1):
        if os.path.lexists(toplevel.joinpath(*below[:depth], ".git")):
            return None
    return (found.st_ino, found.st_mtime_ns)


def find_bay(store: Store, bay: str, *, repository: str | None) -> BayRecord:
    """A bay by name, alias, `<bay>--<project>` or id.

    Plain names and aliases are looked up in the caller's repository; outside any repository in all of
    them. Raises `unknown_bay` with near matches, `ambiguous_bay` with the candidates.
    """
    everywhere = store.bays()
    exact = [r for r in everywhere if bay in {r.id, r.site, _full(r)}]
    near = [r for r in everywhere if repository is None or r.repository == repository]
    named = [r for r in near if bay in {r.name, r.alias}]
    found = named or exact
    if len(found) == 1:
        return found[0]
    if len(found) > 1:
        candidates = [_full(r) for r in found]
        raise DevbayError(
            "ambiguous_bay",
            f"{bay!r} fits several bays: {', '.join(candidates)}",
            next="use one of these names, or pass `repo`",
            candidates=candidates,
        )
    names = sorted({r.name for r in near} | {_full(r) for r in everywhere})
    close = difflib.get_close_matches(bay, names, n=3, cutoff=0.5)
    if close:
        hint = f"did you mean {' or '.join(close)}?"
    elif near:
        hint = f"there are: {', '.join(r.name for r in near[:20])}"
    else:
        hint = "there are no bays here yet"
    raise DevbayError(
        "unknown_bay",
        f"no bay {bay[:80]!r}; {hint}",
        next="bay_list, or bay_create to make one",
        candidates=close,
    )


def _full(record: BayRecord) -> str:
    return f"{record.name}--{record.project}"

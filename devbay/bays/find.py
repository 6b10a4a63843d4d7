"""Which repository and which bay a caller means."""

from __future__ import annotations

import difflib
from pathlib import Path

from devbay.errors import DevbayError
from devbay.store import BayRecord, Store
from devbay.worktrees import Repository


def find_repository(cwd: Path, repo: str | None) -> Repository:
    """The repository that holds `repo` (relative to `cwd`) or `cwd` itself; raises `not_a_repository`."""
    path = cwd / Path(repo).expanduser() if repo else cwd
    if not path.exists():
        raise DevbayError(
            "not_a_repository", f"{path} does not exist", next="pass `repo`, a path inside a git repository"
        )
    return Repository.discover(path)


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

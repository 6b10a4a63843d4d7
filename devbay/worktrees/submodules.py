"""Submodules of a bay: linked worktrees of the submodule repositories that the main checkout has already.

So nothing is downloaded or copied, commits made in a bay's submodule land where the main checkout's do, and
each submodule has a `commondir` and `gitdir` like the bay itself, which can be kept from containers.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from devbay.errors import DevbayError
from devbay.jobs import Job
from devbay.worktrees import beneath
from devbay.worktrees.git import LONG, Git, common_dir_of, run_git, split_nul
from devbay.worktrees.repository import registrations

GITLINK = "160000"
BASE_REF = "refs/worktree/devbay-base"
FETCH_LIMIT_S = 120.0


@dataclass(frozen=True)
class Gitlink:
    """A submodule as the index records it. sparse: outside of a sparse checkout."""

    path: str
    commit: str
    sparse: bool = False


def gitlinks(git: Git) -> list[Gitlink]:
    """Every submodule in the index, initialised or not."""
    found = []
    for entry in git.records("ls-files", "-t", "--stage", "-z"):
        head, path = entry.split("\t", 1)
        tag, mode, commit, _ = head.split(" ")
        if mode == GITLINK:
            found.append(Gitlink(path, commit, tag == "S"))
    return found


def names(worktree: Path, git_dir: Path) -> dict[str, str]:
    """Path to name, from `.gitmodules`; names that leave their folder are left out."""
    text = beneath.read_text(worktree, ".gitmodules", limit=1 << 20)
    if text is None:
        return {}
    outcome = run_git(
        ["config", "--file", "-", "--null", "--get-regexp", r"^submodule\..*\.path$"],
        cwd=git_dir,
        stdin=text.encode(),
    )
    found: dict[str, str] = {}
    for entry in split_nul(outcome.out) if outcome.code == 0 else []:
        key, _, path = entry.partition("\n")
        name = key.removeprefix("submodule.").removesuffix(".path")
        if name and not name.startswith(("/", "-")) and ".." not in name.split("/"):
            found[path] = name
    return found


def submodules(worktree: Path, git_dir: Path) -> dict[str, Path]:
    """Path in the worktree to git directory of every initialised submodule, nested ones included.

    Found by the repositories' own registrations and by git's fixed places, never by a submodule's `.git`.
    """
    found: dict[str, Path] = {}
    known = names(worktree, git_dir)
    for link in gitlinks(Git(git_dir, worktree)) if known else []:
        below = worktree / link.path
        own = _git_dir_of(worktree, git_dir, link.path, known.get(link.path))
        if own is not None:
            found[link.path] = own
            found |= {f"{link.path}/{path}": inner for path, inner in submodules(below, own).items()}
    return found


def _git_dir_of(worktree: Path, git_dir: Path, path: str, name: str | None) -> Path | None:
    if name is None or (link := beneath.kind(worktree, f"{path}/.git")) is None:
        return None
    shared = common_dir_of(git_dir) / "modules" / name
    for own, place in registrations(shared):
        if place == worktree / path:
            return own
    for own in (git_dir / "modules" / name, shared):  # git's own places: per worktree, or the main checkout's
        if (own / "HEAD").is_file() and (own != shared or git_dir == common_dir_of(git_dir)):
            return own
    # A submodule cloned by an old git keeps its git directory in its own folder.
    return worktree / path / ".git" if link == stat.S_IFDIR else None


def add_submodules(
    worktree: Path, git_dir: Path, *, job: Job | None = None, below: str = ""
) -> tuple[dict[str, Path], list[str]]:
    """Check out in a new worktree what the main checkout has initialised; (git directories, warnings).

    A submodule that cannot be had is a warning and not an error: the bay may not need it.
    """
    made: dict[str, Path] = {}
    warnings: list[str] = []
    links = [link for link in gitlinks(Git(git_dir, worktree)) if not link.sparse]
    known = names(worktree, git_dir) if links else {}
    for link in links:
        shown = f"{below}{link.path}"
        source = common_dir_of(git_dir) / "modules" / known.get(link.path, "")
        if link.path not in known or not (source / "HEAD").is_file():
            warnings.append(
                f"submodule {shown} is left empty: the main checkout has not initialised it "
                f"(git submodule update --init {shown})"
            )
            continue
        try:
            own = _add(source, worktree, link, job)
        except DevbayError as error:
            if error.code == "cancelled":
                raise
            warnings.append(f"submodule {shown} is left empty: {error.message}")
            continue
        inner, said = add_submodules(worktree / link.path, own, job=job, below=f"{shown}/")
        made[link.path] = own
        made |= {f"{link.path}/{path}": place for path, place in inner.items()}
        warnings += said
    return made, warnings


def _add(source: Path, worktree: Path, link: Gitlink, job: Job | None) -> Path:
    place = worktree / link.path
    # `--work-tree`: the configured core.worktree is the main checkout's, which need not be there now.
    git = Git(source, source)
    if git.run("cat-file", "-e", f"{link.commit}^{{commit}}").code != 0:
        git.out(
            "fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "origin", link.commit,
            timeout_s=FETCH_LIMIT_S, network=True, job=job,
        )  # fmt: skip
    git.out("worktree", "add", "--force", "--no-checkout", "--detach", "--", str(place), link.commit, job=job)
    own = next((own for own, path in registrations(source) if path == place), None)
    if own is None:
        raise DevbayError("git_failed", f"{place} was not registered in {source}", exit_code=1)
    inside = Git(own, place)
    inside.out("update-ref", BASE_REF, link.commit)
    inside.out("reset", "--hard", "--quiet", timeout_s=LONG, network=True, job=job)
    return own


def module_dirs(common_dir: Path) -> Iterator[Path]:
    """Every submodule repository below a common directory's `modules/`, nested ones included."""
    modules = common_dir / "modules"
    waiting = [modules] if modules.is_dir() and not modules.is_symlink() else []
    while waiting:
        for folder in sorted(entry for entry in waiting.pop().iterdir() if entry.is_dir()):
            if folder.is_symlink():
                continue
            if (folder / "HEAD").is_file() and (folder / "objects").is_dir():
                yield folder
                yield from module_dirs(folder)
            else:
                waiting.append(folder)  # a name with slashes


def linked_below(common_dir: Path, worktree: Path) -> dict[str, Path]:
    """Path to git directory of the submodules that `add_submodules` made in a worktree, by registration."""
    return {
        os.fspath(place.relative_to(worktree)): own
        for module in module_dirs(common_dir)
        for own, place in registrations(module)
        if place.is_relative_to(worktree)
    }


def outermost_first(submodules: Mapping[str, Path]) -> list[str]:
    """Paths in an order in which a submodule comes before those inside it."""
    return sorted(submodules, key=lambda path: (path.count("/"), path))

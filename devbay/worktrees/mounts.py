"""What a container is given of git: mounts and environment for `git: none`, `ro` and `rw`.

Two facts shape this, both tried on a real engine:

* A read-only mount of a single file ends when the host replaces that file by a rename, as `git config` does
  with `config`. So what the host may replace is protected by its folder: the common directory is always
  mounted read-only, and `rw` opens only folders below it.
* A mount on `sub/.git` does not keep a container from renaming `sub` and putting another there. So the
  folders on the way to a submodule are mounted on themselves, which pins them.

Nothing may be created in the common directory itself, because a `commondir` file there would send the
host's git, in every checkout, to a configuration of the container's choice. The price under `rw`: git says
that it cannot create `packed-refs.lock`, deletes no refs, and leaves `CHERRY_PICK_HEAD` behind. Reflogs of
shared refs go to a folder of the bay's own, since the host appends to whatever a reflog's name links to.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from devbay.errors import DevbayError
from devbay.runtimes.base import BindMount, GitAccess
from devbay.worktrees import beneath
from devbay.worktrees.git import Git, common_dir_of, config_env
from devbay.worktrees.place import keep_apart
from devbay.worktrees.record import folder_of, scratch_logs
from devbay.worktrees.repository import Repository
from devbay.worktrees.submodules import gitlinks

ALTERNATES_DEPTH = 5
WORKSPACE = "/workspace"


def git_mounts(
    repository: Repository,
    worktree: Path,
    git_dir: Path,
    submodules: Mapping[str, Path],
    access: GitAccess,
) -> tuple[BindMount, ...]:
    """Mounts on top of the worktree's own, parents before children; every target is its source's path.

    A `.git` that a container has rewritten is put right first. `rw` makes the files and folders that it
    protects. An adopted main checkout has its configuration where commits write, so `rw` raises
    `git_rw_refused` for it. Without a git directory (a half-made bay) there is nothing to mount.
    """
    if not git_dir.is_absolute() or not worktree.is_dir():
        return ()
    common = repository.common_dir
    mounts = [*_links(worktree, git_dir, submodules), *_empty_submodules(worktree, git_dir, submodules)]
    if worktree == repository.main_worktree:
        if access == "rw":
            raise DevbayError(
                "git_rw_refused",
                f"`git: rw` is not possible in the adopted main checkout {worktree}: commits are written "
                "beside the configuration and hooks there",
                next="use `git: ro`, or give the bay a worktree of its own",
            )
        mounts += _main_checkout(worktree, common)
    if access != "none":
        mounts.append(_ro(common))
        for shared, own in [(common, git_dir), *((common_dir_of(own), own) for own in submodules.values())]:
            mounts += [_ro(place) for place in alternates(shared / "objects")]
            if access == "rw" and own != shared:
                mounts += _writable(shared, own)
    return ordered(mounts)


def git_env(worktree: Path, submodules: Mapping[str, Path], access: GitAccess) -> dict[str, str]:
    """Environment that makes git accept the worktree whoever the container runs as."""
    if access == "none":
        return {}
    places = [f"{root}{suffix}" for root in (worktree, WORKSPACE) for suffix in ("", *_suffixes(submodules))]
    pairs = [("safe.directory", place) for place in places]
    pairs.append(("core.fsmonitor", "false"))
    if access == "rw":
        return config_env([*pairs, ("gc.auto", "0"), ("maintenance.auto", "false")])
    return {**config_env(pairs), "GIT_OPTIONAL_LOCKS": "0"}


def ordered(mounts: Iterable[BindMount]) -> tuple[BindMount, ...]:
    """Each target once (read-only wins), parents before children."""
    by_target: dict[str, BindMount] = {}
    for mount in mounts:
        known = by_target.get(mount.target)
        if known is None or mount.read_only:
            by_target[mount.target] = mount
    return tuple(sorted(by_target.values(), key=lambda mount: (mount.target.count("/"), mount.target)))


def alternates(objects: Path, depth: int = ALTERNATES_DEPTH) -> list[Path]:
    """The object directories that a repository borrows from, and those these borrow from."""
    text = beneath.read_text(objects, "info/alternates", limit=1 << 20) if depth else None
    found: list[Path] = []
    for line in (text or "").splitlines():
        place = Path(os.path.normpath(objects / line))
        if line and not line.startswith(("#", '"')) and (place / "pack").is_dir():
            found += [place, *alternates(place, depth - 1)]
    return found


def _suffixes(submodules: Mapping[str, Path]) -> Iterator[str]:
    return (f"/{path}" for path in sorted(submodules))


def _ro(path: Path) -> BindMount:
    return BindMount(str(path), str(path), read_only=True)


def _rw(path: Path) -> BindMount:
    return BindMount(str(path), str(path))


def _links(worktree: Path, git_dir: Path, submodules: Mapping[str, Path]) -> list[BindMount]:
    """`.git` of the worktree and of each submodule, and the folders on the way pinned."""
    mounts: list[BindMount] = []
    for path, own in [("", git_dir), *submodules.items()]:
        link = f"{path}/.git" if path else ".git"
        if path and beneath.kind(worktree, path) != stat.S_IFDIR:
            continue  # deleted, or a link that must not be followed
        if own != worktree / link:
            _put_right(worktree, link, own)
        mounts.append(_ro(worktree / link))
        if path:
            mounts += [_rw(place) for place in _way(worktree, path)]
    return mounts


def _way(worktree: Path, path: str) -> list[Path]:
    parts = path.split("/")
    return [worktree.joinpath(*parts[:length]) for length in range(1, len(parts) + 1)]


def _put_right(worktree: Path, link: str, git_dir: Path) -> None:
    """Rewrite a `.git` file that does not name its git directory; raises `tampered` if it is no file."""
    said = beneath.read_text(worktree, link, limit=8192)
    folder = (worktree / link).parent
    named = said.removeprefix("gitdir: ").strip() if said and said.startswith("gitdir: ") else None
    if named is not None and Path(os.path.normpath(folder / named)) == git_dir:
        return
    draft = f".git.devbay-{secrets.token_hex(4)}"
    try:
        with beneath.parent_of(worktree, link) as (parent, name):
            file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644, dir_fd=parent)
            with open(file, "w") as out:  # noqa: PTH123 - a descriptor, not a path
                out.write(f"gitdir: {git_dir}\n")
            os.replace(draft, name, src_dir_fd=parent, dst_dir_fd=parent)
    except OSError as error:
        raise DevbayError(
            "tampered",
            f"{worktree / link} is not the file that names {git_dir} and cannot be replaced: "
            f"{os.strerror(error.errno or 0)}",
            next=f"remove {worktree / link}",
            exit_code=1,
        ) from error


def _empty_submodules(worktree: Path, git_dir: Path, submodules: Mapping[str, Path]) -> list[BindMount]:
    """Folders of submodules that are not initialised: a `.git` put there would be run by the host's git."""
    mounts = []
    for link in gitlinks(Git(git_dir, worktree)):
        if link.path not in submodules and beneath.kind(worktree, link.path) == stat.S_IFDIR:
            mounts += [_rw(place) for place in _way(worktree, link.path)[:-1]]
            mounts.append(_ro(worktree / link.path))
    return mounts


def _main_checkout(worktree: Path, common: Path) -> list[BindMount]:
    """In an adopted main checkout the bays inside it are hidden, and without access also its `.git`."""
    empty = folder_of(common) / "empty"
    empty.mkdir(parents=True, exist_ok=True)
    hidden = [keep_apart(worktree)]
    if common == worktree / ".git":
        hidden.append(common)  # `ro` replaces this by the folder itself
    return [BindMount(str(empty), str(place), read_only=True) for place in hidden]


def _writable(shared: Path, own: Path) -> list[BindMount]:
    """What commits write: objects, refs, and the worktree's own git directory without what steers it."""
    info, logs, modules = shared / "objects" / "info", scratch_logs(own), own / "modules"
    for folder in (info, logs, modules, shared / "logs"):
        folder.mkdir(parents=True, exist_ok=True)
    # git reads it with extensions.worktreeConfig; `modules` would be taken up by `git submodule update`.
    with (own / "config.worktree").open("a"):
        pass
    opened = [shared / "objects", shared / "refs", own]
    if (shared / "reftable").is_dir():
        opened.append(shared / "reftable")
    kept = [info, modules, *(own / name for name in ("commondir", "gitdir", "config.worktree"))]
    for place in (*opened, *kept, logs, shared / "logs"):
        if place.is_symlink():  # the engine would mount what it leads to
            raise DevbayError("tampered", f"{place} is a link", next=f"replace {place}", exit_code=1)
    return [
        *(_rw(place) for place in opened),
        BindMount(str(logs), str(shared / "logs")),
        *(_ro(place) for place in kept),
    ]

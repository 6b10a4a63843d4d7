"""Where a bay's worktree goes, and that its folder may be made there."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Literal, get_args

from devbay.errors import DevbayError
from devbay.names import check_bay_name
from devbay.worktrees.repository import BAYS_BESIDE, BAYS_INSIDE, Repository

Mode = Literal["inside", "beside", "central"]
IGNORE_ALL = "*\n"


def worktree_path(repository: Repository, bay: str, mode: str, *, central: Path | None = None) -> Path:
    """The path for a bay's worktree; nothing is made.

    inside: `<main>/.devbay/bays/<bay>`; beside: `<parent>/<main>.bays/<bay>`; central: `<central>/<repository
    id>/<bay>`. A bare repository has no inside: beside is taken. Raises `bad_name`, `bad_config`.
    """
    check_bay_name(bay)
    if mode not in get_args(Mode):
        raise DevbayError(
            "bad_config",
            f"worktrees = {mode!r} is unknown",
            next='set worktrees = "inside", "beside" or "central" in config.toml',
        )
    if mode == "central":
        if central is None:
            raise DevbayError("bad_config", "worktrees = 'central' needs a folder")
        return Path(os.path.realpath(central)) / repository.id / bay
    main = repository.main_worktree
    if mode == "inside" and main is not None:
        return main.joinpath(*BAYS_INSIDE, bay)
    base = main or repository.common_dir
    return base.with_name(f"{base.name}{BAYS_BESIDE}") / bay


def prepare_parent(repository: Repository, path: Path) -> None:
    """Make the folder that will hold the worktree, and keep `.devbay` out of the repository's sight.

    Raises `unsafe_directory` if it is a link or lies behind one, and `not_ours` if `.devbay` is in use for
    something else.
    """
    main = repository.main_worktree
    if main is not None and path.is_relative_to(main / BAYS_INSIDE[0]):
        keep_apart(main)
    path.parent.mkdir(parents=True, exist_ok=True)
    if Path(os.path.realpath(path.parent)) != path.parent:
        raise DevbayError(
            "unsafe_directory",
            f"{path.parent} leads to {os.path.realpath(path.parent)}",
            next="remove the link, or choose another place for worktrees in config.toml",
        )


def keep_apart(main: Path) -> Path:
    """`.devbay` of a main checkout, made if missing, ignored by git; raises as `prepare_parent`."""
    folder = main / BAYS_INSIDE[0]
    try:
        folder.mkdir()
    except FileExistsError:
        if not stat.S_ISDIR(folder.lstat().st_mode):
            raise DevbayError(
                "unsafe_directory", f"{folder} is no directory", next=f"remove {folder}"
            ) from None
    ignore = folder / ".gitignore"
    if os.path.lexists(ignore):
        ours = stat.S_ISREG(ignore.lstat().st_mode) and "*" in ignore.read_text(errors="replace").split("\n")
    else:
        # Between making the folder and the file a crash leaves it empty.
        ours = not any(folder.iterdir())
        if ours:
            descriptor = os.open(ignore, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
            with open(descriptor, "w") as file:  # noqa: PTH123 - a descriptor, not a path
                file.write(IGNORE_ALL)
    if not ours:
        raise DevbayError(
            "not_ours",
            f"{folder} holds files that are not devbay's",
            next=f"move them, write '*' to {ignore}, or set worktrees = \"beside\" in config.toml",
        )
    return folder

"""Paths of the manifest on the real file system: none may leave the repository through a symlink.

The check at load time is for the one who writes the manifest. Whoever uses a path calls `confined` again at
that moment, because the worktree belongs to processes that may have changed it since.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

from devbay.errors import WORK_FAILED, DevbayError

_WILDCARD = re.compile(r"[*?\[]")


def parts(relative: str) -> tuple[str, ...]:
    """The segments of a path as the manifest writes it, without `.`."""
    return tuple(part for part in PurePosixPath(relative).parts if part != ".")


def fixed_part(glob: str) -> str:
    """The folders of a pattern before its first wildcard."""
    kept: list[str] = []
    for part in parts(glob):
        if _WILDCARD.search(part):
            break
        kept.append(part)
    return "/".join(kept) or "."


def escape_problem(root: Path, relative: str) -> str | None:
    """Why `relative` does not stay inside `root`, or None. What does not exist yet is inside."""
    if relative.startswith("/") or ".." in parts(relative):
        return "leaves the repository"
    here = root
    for part in parts(relative):
        here = here / part
        try:
            if not here.is_symlink():
                continue
            inside = here.resolve().is_relative_to(root.resolve())
        except (OSError, RuntimeError) as error:  # RuntimeError: a loop of symlinks
            return f"cannot be followed: {error}"
        if not inside:
            return f"leaves the repository through the symlink {here.relative_to(root)}"
    return None


def confined(root: Path, relative: str) -> Path:
    """`relative` below `root`; raises `path_escapes`."""
    problem = escape_problem(root, relative)
    if problem:
        raise DevbayError(
            "path_escapes", f"{relative} {problem}", next="use a path inside the repository",
            exit_code=WORK_FAILED,
        )  # fmt: skip
    return root / relative


def in_git_folder(relative: str) -> bool:
    """Whether a path is git's own: `.git` of the worktree or of a submodule in it (decision 1)."""
    return any(part.lower() == ".git" for part in parts(relative))

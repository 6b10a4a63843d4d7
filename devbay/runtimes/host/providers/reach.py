"""Where a server's user cannot reach the server (it lies in a closed home), a copy that it can reach."""

from __future__ import annotations

import dataclasses
import secrets
import shutil
import stat
from pathlib import Path

from devbay.runtimes.host.owner import Owner
from devbay.runtimes.host.providers.base import Server


def within_reach(server: Server, who: Owner | None, servers: Path) -> Server:
    """The server as its user can start it: copied below `servers`, once, where its own place is closed.

    Only one with a `tree` can be copied; others stay, and devbay's own interpreter runs as devbay itself.
    """
    tree = server.tree
    if who is None or tree is None or reaches(server.program, who):
        return server
    copied = servers / f"{server.family}-{server.version}-{_build_of(server)}"
    if not copied.exists():
        _copy(tree, copied)
    if tree.is_file():
        return dataclasses.replace(server, program=copied / tree.name, bin=copied, tree=copied)
    return dataclasses.replace(
        server,
        program=copied / server.program.relative_to(tree),
        bin=copied / server.bin.relative_to(tree),
        tree=copied,
    )


def _build_of(server: Server) -> str:
    """Tells builds of one version apart: size and time of the program."""
    found = server.program.stat()
    return f"{found.st_size:x}{int(found.st_mtime):x}"


def reaches(program: Path, who: Owner) -> bool:
    """Whether a user may pass every folder above a program, and start it."""
    user, group = who
    real = program.resolve()
    for path in (real, *real.parents):
        found = path.stat()
        mine = (
            stat.S_IXUSR if found.st_uid == user else stat.S_IXGRP if found.st_gid == group else stat.S_IXOTH
        )
        if not found.st_mode & mine:
            return False
    return True


def _copy(tree: Path, to: Path) -> None:
    to.parent.mkdir(mode=0o711, parents=True, exist_ok=True)
    draft = to.with_name(f".{to.name}.{secrets.token_hex(4)}")
    try:
        if tree.is_file():
            draft.mkdir(mode=0o755)
            shutil.copy2(tree, draft / tree.name)
        else:
            shutil.copytree(tree, draft, symlinks=True)
        draft.chmod(0o755)
        try:
            draft.rename(to)
        except OSError:
            if not to.exists():  # another thread or daemon was first
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)

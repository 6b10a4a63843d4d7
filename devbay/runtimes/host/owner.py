"""Whose a server's files and processes are where devbay runs as root, which servers refuse to be run by."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

Owner = tuple[int, int]
"""User and group id."""

FIRST, LAST = 61184, 65519
"""The range that systemd gives to services with `DynamicUser=` (systemd's UIDS-GIDS document)."""


def owner(bay: str) -> Owner | None:
    """A user of the bay's own, the same at every call; None unless devbay is root and can become others."""
    if os.geteuid() != 0:
        return None
    mapped = _mapped()
    size = LAST - FIRST + 1
    start = int(bay[:8], 16) % size
    for step in range(size):
        user = FIRST + (start + step) % size
        if any(first <= user < first + count for first, count in mapped) and not _known(user):
            return user, user
    return None


def owner_of(data: Path, otherwise: Owner | None) -> Owner | None:
    """Whom a data directory belongs to: a server must be started as that user, whatever `owner` says now."""
    if otherwise is None:
        return None
    try:
        found = data.stat()
    except FileNotFoundError:
        return otherwise
    return (found.st_uid, found.st_gid) if found.st_uid else otherwise


def somebody() -> Owner | None:
    """A user with an entry in the passwd file, who is not root: `nobody` where there is one."""
    entries = sorted(pwd.getpwall(), key=lambda entry: entry.pw_name != "nobody")
    mapped = _mapped()
    for entry in entries:
        if entry.pw_uid and any(first <= entry.pw_uid < first + count for first, count in mapped):
            return entry.pw_uid, entry.pw_gid
    return None


def give(folder: Path, to: Owner | None) -> None:
    """Give a folder and all that is in it to a user (nothing to do where devbay is not root)."""
    if to is None:
        return
    os.chown(folder, *to, follow_symlinks=False)
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            os.chown(Path(parent) / name, *to, follow_symlinks=False)


def _mapped() -> list[tuple[int, int]]:
    """(first, count) of the user ids that exist in this user namespace."""
    try:
        lines = Path("/proc/self/uid_map").read_text().splitlines()
    except OSError:
        return [(0, 2**32 - 1)]
    return [(int(line.split()[0]), int(line.split()[2])) for line in lines]


def _known(user: int) -> bool:
    try:
        pwd.getpwuid(user)
    except KeyError:
        return False
    return True

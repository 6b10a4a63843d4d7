"""Who a container runs as, so that nothing in the worktree belongs to anybody but its owner (decision 26)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from devbay.runtimes.base import ServiceSpec
from devbay.runtimes.docker.engine import EngineKind

OWN_NAME = "devbay"
OWN_HOME = "/home/devbay"
_FALLBACK_PASSWD = b"root:x:0:0:root:/root:/bin/sh\n"
_FALLBACK_GROUP = b"root:x:0:\n"


@dataclass(frozen=True)
class Accounts:
    """An image's `/etc/passwd` and `/etc/group`; None where the image has no such regular file."""

    passwd: bytes | None = None
    group: bytes | None = None


@dataclass(frozen=True)
class Identity:
    """What a container is created with.

    user: the engine's `User`, None for the image's own. uid, gid: the same as numbers where they are known;
    fresh volumes are given to them. home: path of a per-bay volume that `HOME` names, None to leave the
    image's. passwd, group: whole new contents of the two files, None where the image's will do.
    """

    user: str | None = None
    uid: int | None = None
    gid: int | None = None
    home: str | None = None
    passwd: bytes | None = None
    group: bytes | None = None

    @property
    def env(self) -> dict[str, str]:
        return {"HOME": self.home} if self.home else {}

    def files(self) -> dict[str, bytes]:
        """Absolute path to content of what has to be put into the container before it starts."""
        wanted = {"/etc/passwd": self.passwd, "/etc/group": self.group}
        return {path: data for path, data in wanted.items() if data is not None}

    def owned(self, volumes: Iterable[str]) -> tuple[str, ...]:
        """Which volume mount points are given to the user when they are fresh."""
        if self.uid is None:
            return ()
        return (*volumes, *([self.home] if self.home else []))


def identity(
    accounts: Accounts, spec: ServiceSpec, engine_kind: EngineKind, host_uid: int, host_gid: int
) -> Identity:
    """Who runs in the container of `spec`. `host_uid` and `host_gid` are those of the worktree's owner.

    A named `user` is taken as it is, `image` switches mapping off, and only what mounts the worktree is
    mapped. Rootless engines and Desktop map ownership themselves, and `Engine.check` refuses userns-remap.
    """
    if spec.user == "image":
        return Identity()
    if spec.user is not None:
        uid, _, gid = spec.user.partition(":")
        return Identity(user=spec.user, uid=int(uid), gid=int(gid or uid))
    if spec.worktree is None:
        return Identity()
    if engine_kind != "rootful":
        return Identity()
    return _mapped(accounts, host_uid, host_gid)


def _mapped(accounts: Accounts, uid: int, gid: int) -> Identity:
    passwd = _FALLBACK_PASSWD if accounts.passwd is None else accounts.passwd
    group = _FALLBACK_GROUP if accounts.group is None else accounts.group
    known = _field_where(passwd, 2, str(uid))
    home = _usable_home(known[5]) if known and len(known) > 5 else OWN_HOME
    new_passwd = new_group = None
    if known is None:
        name = OWN_NAME if _field_where(passwd, 0, OWN_NAME) is None else f"{OWN_NAME}-{uid}"
        new_passwd = _with_line(passwd, f"{name}:x:{uid}:{gid}:{name}:{home}:/bin/sh")
    if _field_where(group, 2, str(gid)) is None:
        name = OWN_NAME if _field_where(group, 0, OWN_NAME) is None else f"{OWN_NAME}-{gid}"
        new_group = _with_line(group, f"{name}:x:{gid}:")
    return Identity(f"{uid}:{gid}", uid, gid, home, new_passwd, new_group)


def _usable_home(path: str) -> str:
    """The account's own home where it is one: a volume over `/`, `/var/www` or `/nonexistent` would hide
    files of the image or lie where nothing may be made.
    """
    pure = PurePosixPath(path)
    return str(pure) if pure == PurePosixPath("/root") or pure.parent == PurePosixPath("/home") else OWN_HOME


def _field_where(data: bytes, column: int, value: str) -> list[str] | None:
    for line in data.decode("utf-8", "replace").splitlines():
        fields = line.split(":")
        if len(fields) > column and fields[column] == value:
            return fields
    return None


def _with_line(data: bytes, line: str) -> bytes:
    gap = b"" if not data or data.endswith(b"\n") else b"\n"
    return data + gap + line.encode() + b"\n"

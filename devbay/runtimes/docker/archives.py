"""Files in and out of a container that need not run: links, accounts, owners of volumes, what it sees.

One tar through `PUT /containers/{id}/archive`; the engine mounts the container's volumes and binds for it,
so an entry at a mount point acts on what is mounted there (seen with engine 26.1).
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import posixpath
import secrets
import tarfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal, cast

from devbay.errors import WORK_FAILED, DevbayError
from devbay.runtimes.docker.engine import Engine, Stream

MAX_LINKS = 8


@dataclass(frozen=True)
class Entry:
    """One file, folder or symbolic link to put into a container, at an absolute path.

    A folder that exists takes owner and mode of its entry (its content keeps its own); missing parents are
    made as root with mode 0755.
    """

    path: str
    kind: Literal["file", "dir", "link"]
    data: bytes = b""
    target: str = ""
    mode: int = 0o755
    uid: int = 0
    gid: int = 0


@dataclass(frozen=True)
class PathStat:
    """What a container has at a path. size in bytes; link_target is empty for what is no link."""

    name: str
    size: int
    mode: int
    link_target: str


def tar_of(entries: Sequence[Entry], *, now: float) -> bytes:
    """The entries as a tar that is unpacked at `/`, in their order. `now`: their modification time."""
    types = {"file": tarfile.REGTYPE, "dir": tarfile.DIRTYPE, "link": tarfile.SYMTYPE}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for entry in entries:
            info = tarfile.TarInfo(posixpath.normpath(entry.path).lstrip("/"))
            info.type, info.linkname, info.size = types[entry.kind], entry.target, len(entry.data)
            info.mode, info.uid, info.gid, info.mtime = entry.mode, entry.uid, entry.gid, int(now)
            tar.addfile(info, io.BytesIO(entry.data))
    return buffer.getvalue()


def put(engine: Engine, container: str, entries: Sequence[Entry], *, doing: str = "") -> None:
    """Put the entries into a container in one call, in order; the first that fails ends it.

    Never replaces a folder by something else: raises `directory_in_the_way` then. Without that flag the
    engine deletes what is mounted there, on the host too; the package's `put_archive` does not send it.
    """
    engine.call(
        "PUT",
        f"/containers/{container}/archive",
        params={"path": "/", "noOverwriteDirNonDir": "1"},
        data=tar_of(entries, now=time.time()),
        doing=doing,
    )


def stat(engine: Engine, container: str, path: str) -> PathStat | None:
    """What the container has at `path` (links on the way are followed inside it), None if nothing."""
    headers = engine.head(f"/containers/{container}/archive", params={"path": path})
    if headers is None:
        return None
    found = json.loads(base64.b64decode(headers["X-Docker-Container-Path-Stat"]))
    return PathStat(found["name"], found["size"], found["mode"] & 0o7777, found.get("linkTarget", ""))


def read_file(engine: Engine, container: str, path: str, *, limit: int = 1 << 20) -> bytes | None:
    """The content of a regular file (links are followed), at most `limit` bytes; None if there is none."""
    for _hop in range(MAX_LINKS):
        with _first_member(engine, container, path) as (tar, member):
            if member is None:
                return None
            if member.issym():
                path = posixpath.join(posixpath.dirname(path), member.linkname)
                continue
            content = tar.extractfile(member) if tar is not None and member.isfile() else None
            return content.read(limit) if content is not None else None
    return None


def owner(engine: Engine, container: str, path: str) -> tuple[int, int, int] | None:
    """`(uid, gid, mode)` of what the container has at `path`, None if nothing is there."""
    with _first_member(engine, container, path) as (_tar, member):
        return (member.uid, member.gid, member.mode) if member is not None else None


def check_visible(engine: Engine, container: str, folder: Path) -> None:
    """Prove that the container, which mounts `folder` at its own path, sees it as it is here (decision 28).

    A folder of a random name is made in `folder`, looked for through the engine, and removed; the container
    need not run (about 5 ms). An empty folder, since git does not see one that a killed process leaves.
    Raises `path_not_shared` with the folder to share.
    """
    nonce = folder / f".devbay-nonce-{secrets.token_hex(8)}"
    try:
        nonce.mkdir()
        seen = stat(engine, container, str(nonce)) is not None
    finally:
        with contextlib.suppress(FileNotFoundError):
            nonce.rmdir()
    if not seen:
        engine.call("GET", f"/containers/{container}/json")  # `not_found` if it is the container that is gone
        raise DevbayError(
            "path_not_shared",
            f"the Docker engine at {engine.endpoint.host} does not see the files in {folder}",
            next=f"share {folder} with the engine's virtual machine, or use an engine on this machine",
            exit_code=WORK_FAILED,
            path=str(folder),
        )


class _Readable:
    """A stream as the file object that `tarfile` reads."""

    def __init__(self, stream: Stream) -> None:
        self.read = stream.read


@contextmanager
def _first_member(
    engine: Engine, container: str, path: str
) -> Iterator[tuple[tarfile.TarFile | None, tarfile.TarInfo | None]]:
    """The archive of `path` and its first member; only as much is read as is asked for."""
    try:
        with engine.stream("GET", f"/containers/{container}/archive", params={"path": path}) as stream:
            source = cast("IO[bytes]", _Readable(stream))
            with tarfile.open(fileobj=source, mode="r|") as tar:
                yield tar, tar.next()
    except DevbayError as error:
        if error.code != "not_found":
            raise
        yield None, None

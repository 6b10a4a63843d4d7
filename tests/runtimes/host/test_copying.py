from __future__ import annotations

import errno
import fcntl
import os
import socket
from pathlib import Path

import pytest

from devbay.errors import Cancelled
from devbay.jobs import Job
from devbay.runtimes.host import copying
from devbay.runtimes.host.copying import copy_tree


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder with everything that one may hold."""
    top = tmp_path / "source"
    (top / "deep" / "er").mkdir(parents=True)
    (top / "empty").mkdir(mode=0o500)
    (top / "plain").write_text("text")
    (top / "big").write_bytes(os.urandom(3 << 20))
    (top / "nothing").touch()
    (top / "deep" / "er" / "run").write_text("#!/bin/sh\n")
    (top / "deep" / "er" / "run").chmod(0o755)
    (top / "readonly").write_text("r")
    (top / "readonly").chmod(0o400)
    (top / "link").symlink_to("deep/er/run")
    (top / "dangling").symlink_to("/nowhere/at all")
    os.link(top / "plain", top / "same")
    for path in (top / "plain", top / "deep", top):
        os.utime(path, ns=(1_000_000_007, 2_000_000_009))
    return top


def listing(top: Path) -> dict[str, tuple[object, ...]]:
    found: dict[str, tuple[object, ...]] = {}
    for path in [top, *sorted(top.rglob("*"))]:
        stat = path.lstat()
        held = path.readlink() if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        name = str(path.relative_to(top))
        found[name] = (oct(stat.st_mode), stat.st_mtime_ns, stat.st_uid, stat.st_gid, held)
    return found


def test_a_copy_is_the_same_in_content_modes_times_links_and_owners(source: Path, tmp_path: Path) -> None:
    if os.geteuid() == 0:
        os.chown(source / "plain", 61200, 61201)
        os.chown(source / "deep", 61202, 61203)
        os.chown(source / "link", 61204, 61205, follow_symlinks=False)
    copy_tree(source, tmp_path / "copy")
    assert listing(tmp_path / "copy") == listing(source)


def test_no_file_of_a_copy_is_shared_with_its_source_or_another(source: Path, tmp_path: Path) -> None:
    copy_tree(source, tmp_path / "copy")
    assert (tmp_path / "copy" / "plain").stat().st_nlink == 1
    (tmp_path / "copy" / "plain").write_text("changed")
    assert (source / "plain").read_text() == (tmp_path / "copy" / "same").read_text() == "text"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_copy_is_given_to_its_owner_whole(source: Path, tmp_path: Path) -> None:
    copy_tree(source, tmp_path / "copy", owner=(61300, 61301))
    assert {entry[2:4] for entry in listing(tmp_path / "copy").values()} == {(61300, 61301)}


def test_sockets_and_pipes_are_left_out(source: Path, tmp_path: Path) -> None:
    os.mkfifo(source / "pipe")
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(str(source / "s"))
        copy_tree(source, tmp_path / "copy")
    assert not {"pipe", "s"} & {path.name for path in (tmp_path / "copy").iterdir()}


def test_a_file_system_that_cannot_copy_in_the_kernel_is_read_and_written(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> int:
        raise OSError(errno.EXDEV, "not here")

    monkeypatch.setattr(os, "copy_file_range", refused, raising=False)
    copy_tree(source, tmp_path / "copy")
    assert listing(tmp_path / "copy") == listing(source)


def test_blocks_are_shared_where_the_file_system_can(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloned: list[int] = []

    def clone(to: int, request: int, source: int) -> int:
        assert request == copying._FICLONE
        os.write(to, os.read(source, 1 << 24))
        cloned.append(to)
        return 0

    monkeypatch.setattr(fcntl, "ioctl", clone)
    monkeypatch.setattr(copying, "_fill", None)
    copy_tree(source, tmp_path / "copy")
    assert cloned and listing(tmp_path / "copy") == listing(source)


def test_a_full_disk_is_told_and_a_cancelled_copy_ends(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job()
    job.cancel()
    with pytest.raises(Cancelled):
        copy_tree(source, tmp_path / "cancelled", check=job.check)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(copying, "_fill", full)
    with pytest.raises(OSError, match="no space left"):
        copy_tree(source, tmp_path / "full")


def test_a_hole_takes_no_room_in_a_copy_and_stays_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    with (tmp_path / "source" / "map").open("wb") as file:
        file.seek(1 << 20)
        file.write(b"in the middle")
        file.truncate(1 << 40)  # more than there is room for
    copy_tree(tmp_path / "source", tmp_path / "copy")
    copied = tmp_path / "copy" / "map"
    assert copied.stat().st_size == 1 << 40 and copied.stat().st_blocks < 1000
    with copied.open("rb") as file:
        assert file.read((1 << 20) + 20).strip(b"\0") == b"in the middle"


def test_a_copy_runs_as_nobody_else(tmp_path: Path) -> None:
    (tmp_path / "from").mkdir()
    program = tmp_path / "from/program"
    program.write_text("x")
    program.chmod(0o6755)
    copy_tree(tmp_path / "from", tmp_path / "to")
    assert (tmp_path / "to/program").stat().st_mode & 0o7777 == 0o755

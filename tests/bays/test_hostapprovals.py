"""A worktree's scripts as approvals see them: no link leads out, and every change on disk is seen at once."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from devbay.bays import hostapprovals
from devbay.bays.hostapprovals import MAX_TEXT, HostApprovals, WorktreeFiles
from devbay.manifest import Loaded, parse

TEXT = """
version: 1
project: a
services:
  web: {image: "node:22", start: [./bin/dev], health: {process: true}}
"""


@pytest.fixture
def worktree(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text("outside")
    root = tmp_path / "worktree"
    (root / "bin").mkdir(parents=True)
    (root / "bin/dev").write_text("#!/bin/sh\n. ./more\n")
    return root


@pytest.mark.parametrize("target", ["../../secret", "/etc/passwd", "/proc/self/environ", "../../absent"])
def test_a_link_out_of_the_worktree_is_not_read(worktree: Path, target: str) -> None:
    (worktree / "bin/link").symlink_to(target)
    (worktree / "folder").symlink_to("..")
    files = WorktreeFiles(worktree)
    assert (files.look("bin/link").kind, files.look("bin/link").text) == ("outside", "")
    assert files.look("folder/secret").kind == "outside"
    assert files.names("folder") == []


def test_a_link_inside_is_followed_to_what_it_is(worktree: Path) -> None:
    (worktree / "link").symlink_to("bin/dev")
    (worktree / "loop").symlink_to("loop")
    files = WorktreeFiles(worktree)
    assert files.look("link") == files.look("bin/dev")
    assert files.look("link").path == "bin/dev"
    assert files.look("loop").kind in ("missing", "other")


def test_what_is_no_short_text_is_told_from_what_is(worktree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (worktree / "long").write_text("a" * (MAX_TEXT + 1))
    (worktree / "bytes").write_bytes(b"\x7fELF\0")
    (worktree / "latin").write_bytes(b"\xe9")
    (worktree / "shut").write_text("x")
    os.mkfifo(worktree / "pipe")
    files = WorktreeFiles(worktree)
    for name in ("long", "bytes", "latin"):
        assert (files.look(name).kind, len(files.look(name).digest)) == ("data", 64)
    assert files.look("pipe").kind == "other"
    assert files.look("bin").kind == "folder"
    assert files.look(".").kind == "folder"
    assert files.look("gone/x").kind == "missing"
    monkeypatch.setattr(hostapprovals, "MAX_HASHED", 0)
    assert files.look("shut").kind == "other"


def test_the_end_of_a_long_file_counts(worktree: Path) -> None:
    long = worktree / "long"
    long.write_text("a" * MAX_TEXT * 2)
    before = WorktreeFiles(worktree).look("long").digest
    long.write_text("a" * (MAX_TEXT * 2 - 1) + "b")
    assert WorktreeFiles(worktree).look("long").digest != before


def keys(approvals: HostApprovals, worktree: Path, loaded: Loaded | None = None) -> list[str]:
    found = approvals.capabilities(loaded or parse(TEXT), worktree, whole=True)
    return [each.key for each in found]


def settle(worktree: Path) -> None:
    """Let every file look as if it had been written long ago, as far as a test can."""
    time.sleep(hostapprovals._SETTLED_S + 0.02)


def test_what_did_not_change_is_not_read_again(worktree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    approvals = HostApprovals()
    settle(worktree)
    first = keys(approvals, worktree)

    def never(*_: object) -> None:
        raise AssertionError("read again")

    monkeypatch.setattr(WorktreeFiles, "_read", never)
    assert keys(approvals, worktree) == first


def test_every_change_of_a_named_script_is_seen(worktree: Path) -> None:
    approvals = HostApprovals()
    settle(worktree)
    seen = [keys(approvals, worktree)]
    script = worktree / "bin/dev"
    was = script.stat()
    steps = (
        lambda: script.write_text("#!/bin/sh\n. ./more\n#"),
        lambda: (script.write_text("#!/bin/sh\n. ./mora\n"), os.utime(script, ns=(0, was.st_mtime_ns))),
        lambda: (worktree / "mora").write_text("new"),
        lambda: (worktree / "mora").write_text("old"),
        lambda: (script.unlink(), script.symlink_to("../mora")),
    )
    for step in steps:
        step()
        seen.append(keys(approvals, worktree))
        settle(worktree)
        assert keys(approvals, worktree) == seen[-1]
    assert len({tuple(each) for each in seen}) == len(seen)


def test_two_writes_in_one_moment_are_both_seen(worktree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a file system's clock ticks rarely, the second write leaves size and times as they were."""
    tick = time.time_ns()
    monkeypatch.setattr(hostapprovals, "_mark", lambda *_: (1, 1, 1, 1, tick, tick))
    approvals, script, seen = HostApprovals(), worktree / "bin/dev", set()
    for number in range(3):
        script.write_text(f"#!/bin/sh\necho {number}\n")
        seen.add(tuple(keys(approvals, worktree)))
    assert len(seen) == 3


def test_another_manifest_of_the_same_worktree_is_another_question(worktree: Path) -> None:
    approvals = HostApprovals()
    settle(worktree)
    first = keys(approvals, worktree)
    other = keys(approvals, worktree, parse(TEXT.replace("./bin/dev", "./bin/dev, x")))
    assert first != other
    assert keys(approvals, worktree) == first
    assert approvals.capabilities(parse(TEXT), worktree, whole=False) == []


def test_file_names_that_are_no_text_and_paths_that_are_none_are_no_matter(worktree: Path) -> None:
    (worktree / "db").mkdir()
    Path(os.fsdecode(os.fsencode(worktree) + b"/db/\xff.sql")).write_text("x")
    text = TEXT.replace("[./bin/dev]", f'[sh, -c, "db/*; ./{"a" * 300}; ./{"b/" * 400}c; ./bin/dev/x"]')
    (found,) = HostApprovals().capabilities(parse(text), worktree, whole=True)
    assert found.detail.encode()
    database = """
  db:
    image: postgres:16
    port: 5432
    health: {tcp: 5432}
    mounts: [{source: db, target: /docker-entrypoint-initdb.d}]
"""
    manifest = parse(f"version: 1\nproject: a\nservices:{database}")
    (found,) = HostApprovals().capabilities(manifest, worktree, whole=True)
    assert "db/\\u{dcff}.sql" in found.detail

from __future__ import annotations

import os
from pathlib import Path

import pytest

from devbay.errors import DevbayError
from devbay.worktrees import beneath


@pytest.mark.parametrize("path", ["/etc/passwd", "..", "a/../../b", "", ".", "a/.."])
def test_paths_that_leave_their_folder_are_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(DevbayError) as caught:
        beneath.digest(tmp_path, path)
    assert caught.value.code == "path_escapes"


def test_digest_is_of_regular_files_only(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("x")
    (tmp_path / "link").symlink_to("x")
    (tmp_path / "folder").mkdir()
    (tmp_path / "way").symlink_to("folder")
    (tmp_path / "folder" / "y").write_text("y")
    os.mkfifo(tmp_path / "pipe")
    assert beneath.digest(tmp_path, "x") is not None
    for path in ("link", "folder", "pipe", "way/y", "missing", "x/y"):
        assert beneath.digest(tmp_path, path) is None


def test_trees_deeper_than_any_path_may_be_are_removed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    folder = os.open(root, os.O_RDONLY)
    for _ in range(3000):  # far beyond both PATH_MAX and the limit of open files
        os.mkdir("d" * 20, dir_fd=folder)
        below = os.open("d" * 20, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(folder)
    assert beneath.remove_tree(root) == {}
    assert not root.exists()


def test_missing_folder_is_nothing_to_remove_and_a_link_is_refused(tmp_path: Path) -> None:
    assert beneath.remove_tree(tmp_path / "missing") == {}
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(NotADirectoryError):
        beneath.remove_tree(tmp_path / "link")
    assert (tmp_path / "real").is_dir()

"""Mount points below a worktree are made as its owner's, and never through a link."""

import os

import pytest

from devbay.errors import DevbayError
from devbay.runtimes.mountpoints import make_mount_points


def test_mount_points_are_made_below_the_worktree_only(tmp_path):
    worktree = tmp_path / "w"
    worktree.mkdir()
    targets = [f"{worktree}/a/b", "/data", str(worktree), f"{tmp_path}/other", f"{worktree}/../up"]
    made = make_mount_points(worktree, targets)
    assert made == [worktree / "a", worktree / "a/b"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["w"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_mount_points_belong_to_the_owner_of_the_worktree(tmp_path):
    os.chown(tmp_path, 12345, 23456)
    make_mount_points(tmp_path, [f"{tmp_path}/a/b"], [f"{tmp_path}/c/file"])
    found = {str(path.relative_to(tmp_path)): path for path in tmp_path.rglob("*")}
    assert sorted(found) == ["a", "a/b", "c", "c/file"]
    assert {(path.stat().st_uid, path.stat().st_gid) for path in found.values()} == {(12345, 23456)}
    assert found["c/file"].is_file()


@pytest.mark.parametrize("kind", ["folders", "files"])
@pytest.mark.parametrize("where", ["link", "link/below", "file/below"])
def test_a_mount_point_is_never_made_through_a_link_or_a_file(tmp_path, where, kind):
    worktree, outside = tmp_path / "w", tmp_path / "outside"
    worktree.mkdir()
    outside.mkdir()
    (worktree / "link").symlink_to(outside)
    (worktree / "file").touch()
    with pytest.raises(DevbayError, match=where.split("/")[0]) as raised:
        make_mount_points(worktree, **{"folders": (), kind: [f"{worktree}/{where}"]})
    assert raised.value.code == "unsafe_mount_point"
    assert list(outside.iterdir()) == []


def test_a_file_may_be_a_mount_point_and_what_exists_stays(tmp_path):
    (tmp_path / "file").write_text("kept")
    (tmp_path / "folder").mkdir()
    targets = [f"{tmp_path}/file", f"{tmp_path}/folder"]
    assert make_mount_points(tmp_path, targets) == []
    assert (tmp_path / "file").read_text() == "kept"

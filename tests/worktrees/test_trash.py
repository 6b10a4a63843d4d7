from __future__ import annotations

import datetime
import os
from pathlib import Path

from devbay.worktrees import sweep, to_trash
from tests.worktrees.repos import commit, git

NOW = datetime.datetime(2026, 7, 1, 12, tzinfo=datetime.UTC)


def test_files_links_and_folders_are_kept_and_the_worktree_is_unchanged(
    main: Path, bay, tmp_path: Path
) -> None:
    made = bay(main)
    (made.path / "deep" / "er").mkdir(parents=True)
    (made.path / "deep" / "er" / "x.sh").write_text("x")
    (made.path / "deep" / "er" / "x.sh").chmod(0o755)
    (made.path / "link").symlink_to("/etc/passwd")
    os.mkfifo(made.path / "pipe")
    git(made.path, "init", "-q", "inner")
    folder = to_trash(
        tmp_path / "trash", "b1", made.path, ["deep/er/x.sh", "link", "pipe", "inner/", "missing"], now=NOW
    )
    assert folder == tmp_path / "trash" / "b1-20260701T120000Z"
    assert (folder / "deep" / "er" / "x.sh").stat().st_mode & 0o777 == 0o755
    assert (folder / "link").readlink() == Path("/etc/passwd")
    assert (folder / "inner" / ".git" / "HEAD").is_file()
    assert not (folder / "pipe").exists()
    assert (made.path / "deep" / "er" / "x.sh").exists()
    assert folder.stat().st_mode & 0o077 == 0


def test_nothing_to_keep_makes_no_folder(main: Path, bay, tmp_path: Path) -> None:
    made = bay(main)
    assert to_trash(tmp_path / "trash", "b1", made.path, ["missing"], git_dir=made.git_dir) is None


def test_what_lies_behind_a_link_is_not_taken(main: Path, bay, tmp_path: Path) -> None:
    made = bay(main)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("s")
    (made.path / "way").symlink_to(tmp_path / "outside")
    assert to_trash(tmp_path / "trash", "b1", made.path, ["way/secret"]) is None


def test_commits_of_a_detached_head_can_be_fetched_from_the_trash(
    super_main: Path, bay, tmp_path: Path
) -> None:
    made = bay(super_main)
    git(made.path, "checkout", "-q", "--detach")
    lost = commit(made.path, b_txt="b")
    lost_in_sub = commit(made.path / "libs" / "sub", t_txt="t")
    folder = to_trash(tmp_path / "trash", "b1", made.path, [], git_dir=made.git_dir)
    assert folder is not None
    git(super_main, "fetch", "-q", str(folder / "HEAD.bundle"), "HEAD:refs/heads/rescued")
    assert git(super_main, "rev-parse", "rescued") == lost
    assert lost_in_sub in git(tmp_path, "bundle", "list-heads", str(folder / "libs-sub.bundle"))


def test_repeat_after_a_crash_goes_on(main: Path, bay, tmp_path: Path) -> None:
    made = bay(main)
    for name in ("x", "y"):
        (made.path / name).write_text(name)
    to_trash(tmp_path / "trash", "b1", made.path, ["x"], now=NOW)
    folder = to_trash(tmp_path / "trash", "b1", made.path, ["x", "y"], now=NOW)
    assert folder is not None
    assert sorted(entry.name for entry in folder.iterdir()) == ["x", "y"]


def test_sweep_takes_what_is_older_than_seven_days_and_nothing_foreign(tmp_path: Path) -> None:
    trash = tmp_path / "trash"
    for name in ("b1-20260623T110000Z", "b1-20260625T110000Z", "notes", "20260101T000000Z"):
        (trash / name / "x").mkdir(parents=True)
    (trash / "b9-20200101T000000Z").symlink_to(tmp_path)
    assert sweep(trash, now=NOW) == [trash / "b1-20260623T110000Z"]
    assert sorted(entry.name for entry in trash.iterdir()) == [
        "20260101T000000Z", "b1-20260625T110000Z", "b9-20200101T000000Z", "notes",
    ]  # fmt: skip
    assert sweep(tmp_path / "none", now=NOW) == []


def test_what_is_staged_is_kept_also_where_the_file_looks_unchanged(main: Path, bay, tmp_path: Path) -> None:
    made = bay(main)
    file = made.path / "a.txt"
    before = file.read_text() if file.exists() else ""
    file.write_text("staged work\n")
    git(made.path, "add", "a.txt")
    file.write_text(before)
    folder = to_trash(tmp_path / "trash", "b1", made.path, ["a.txt"], git_dir=made.git_dir)
    assert folder is not None
    assert "+staged work" in (folder / "staged.patch").read_text()

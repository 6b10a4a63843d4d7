from __future__ import annotations

import shutil
from pathlib import Path

from devbay.worktrees import submodules, untracked_files, worktree_state
from devbay.worktrees.state import changes
from tests.worktrees.repos import commit, git


def test_fresh_bay_is_clean_on_its_branch(main: Path, bay) -> None:
    made = bay(main)
    state = worktree_state(made.path, made.git_dir, {})
    assert (state.branch, state.dirty) == ("one", False)
    assert state.commit == made.created.base_commit


def test_changed_and_untracked_files_are_dirty_and_ignored_ones_are_not(main: Path, bay) -> None:
    made = bay(main)
    (made.path / "x.log").write_text("ignored")
    assert not worktree_state(made.path, made.git_dir, {}).dirty
    (made.path / "new.txt").write_text("new")
    assert worktree_state(made.path, made.git_dir, {}).dirty
    (made.path / "new.txt").unlink()
    (made.path / "a.txt").write_text("b\n")
    assert worktree_state(made.path, made.git_dir, {}).dirty


def test_detached_head_has_no_branch(main: Path, bay) -> None:
    made = bay(main)
    git(made.path, "checkout", "-q", "--detach")
    assert worktree_state(made.path, made.git_dir, {}).branch is None


def test_state_is_read_without_writing_the_index(main: Path, bay) -> None:
    made = bay(main)
    before = (made.git_dir / "index").read_bytes()
    (made.path / "a.txt").touch()
    worktree_state(made.path, made.git_dir, {})
    assert (made.git_dir / "index").read_bytes() == before


def test_submodules_are_found_by_registration(super_main: Path, bay) -> None:
    made = bay(super_main)
    (made.path / "libs" / "sub" / ".git").write_text("gitdir: /nowhere\n")
    assert submodules(made.path, made.git_dir) == made.submodules


def test_changes_in_submodules_are_told_with_their_path(super_main: Path, bay) -> None:
    made = bay(super_main)
    sub = made.path / "libs" / "sub"
    (sub / "s.txt").write_text("t\n")
    (sub / "deep" / "new.txt").write_text("new")
    found = changes(made.path, made.git_dir, made.submodules)
    assert found.changed == ("libs/sub/s.txt",)
    assert found.untracked == ("libs/sub/deep/new.txt",)
    assert worktree_state(made.path, made.git_dir, made.submodules).dirty


def test_submodule_at_another_commit_is_a_change(super_main: Path, bay) -> None:
    made = bay(super_main)
    sub = made.path / "libs" / "sub"
    git(sub, "checkout", "-q", "--detach")
    commit(sub, t_txt="t")
    assert changes(made.path, made.git_dir, made.submodules).changed == ("libs/sub",)
    git(made.path, "add", "libs/sub")
    assert changes(made.path, made.git_dir, made.submodules).changed == ("libs/sub",)
    git(made.path, "commit", "-qm", "moved")
    assert changes(made.path, made.git_dir, made.submodules).changed == ()


def test_nested_submodule_at_another_commit_is_a_change(super_main: Path, bay) -> None:
    made = bay(super_main)
    commit(made.path / "libs" / "sub" / "deep", t_txt="t")
    assert changes(made.path, made.git_dir, made.submodules).changed == ("libs/sub/deep",)


def test_deleted_submodule_is_a_change(super_main: Path, bay) -> None:
    made = bay(super_main)
    shutil.rmtree(made.path / "libs" / "sub")
    assert changes(made.path, made.git_dir, made.submodules).changed == ("libs/sub",)


def test_submodule_replaced_by_a_link_is_not_followed(super_main: Path, bay, tmp_path: Path) -> None:
    made = bay(super_main)
    sub = made.path / "libs" / "sub"
    shutil.rmtree(sub)
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").write_text("key")
    sub.symlink_to(tmp_path / "secret")
    found = changes(made.path, made.git_dir, made.submodules)
    assert found.changed == ("libs/sub",)
    assert found.untracked == ()


def test_files_hidden_by_index_flags_are_seen(main: Path, bay) -> None:
    commit(main, b_txt="b\n", c_txt="c\n")
    made = bay(main)
    git(made.path, "update-index", "--skip-worktree", "b.txt")
    git(made.path, "update-index", "--assume-unchanged", "c.txt")
    assert changes(made.path, made.git_dir, {}).changed == ()
    for name in ("b.txt", "c.txt"):
        (made.path / name).write_text("x\n")
    assert git(made.path, "status", "--porcelain") == ""
    assert changes(made.path, made.git_dir, {}).changed == ("b.txt", "c.txt")
    assert git(made.path, "status", "--porcelain") == ""


def test_repository_inside_is_untracked_work_added_or_not(main: Path, bay) -> None:
    made = bay(main)
    git(made.path, "init", "-q", "inner")
    commit(made.path / "inner", x_txt="x")
    assert changes(made.path, made.git_dir, {}).untracked == ("inner/",)
    git(made.path, "add", "inner")
    found = changes(made.path, made.git_dir, {})
    assert "inner" in found.changed


def test_files_in_a_submodule_that_is_not_initialised_are_seen(super_main: Path, tmp_path: Path, bay) -> None:
    git(tmp_path, "clone", "-q", str(super_main), "clone")
    made = bay(tmp_path / "clone")
    assert changes(made.path, made.git_dir, {}).untracked == ()
    (made.path / "libs" / "sub" / "mine.txt").write_text("mine")
    assert changes(made.path, made.git_dir, {}).untracked == ("libs/sub/",)


def test_names_with_line_breaks_and_odd_bytes_are_kept_apart(main: Path, bay) -> None:
    made = bay(main)
    for name in ("a\nb", "é ü", 'q"uote'):
        (made.path / name).write_text("x")
    assert sorted(untracked_files(made.path, made.git_dir)) == sorted(["a\nb", "é ü", 'q"uote'])

from __future__ import annotations

import os
from pathlib import Path

import pytest

from devbay.errors import DevbayError
from devbay.worktrees import Repository
from tests.worktrees.repos import commit, git


def code_of(path: Path) -> str:
    with pytest.raises(DevbayError) as caught:
        Repository.discover(path)
    return caught.value.code


def test_is_found_from_the_main_checkout_and_any_folder_in_it(main: Path) -> None:
    (main / "x" / "y").mkdir(parents=True)
    for path in (main, main / "x" / "y", main / "a.txt"):
        found = Repository.discover(path)
        assert (found.common_dir, found.main_worktree, found.toplevel) == (main / ".git", main, main)


def test_is_the_same_from_a_linked_worktree_which_is_its_toplevel(main: Path, tmp_path: Path) -> None:
    git(main, "worktree", "add", "-q", str(tmp_path / "linked"))
    found = Repository.discover(tmp_path / "linked")
    assert found.id == Repository.discover(main).id
    assert (found.main_worktree, found.toplevel) == (main, tmp_path / "linked")


def test_is_found_from_a_bay_and_from_a_submodule_in_it(super_main: Path, bay) -> None:
    made = bay(super_main)
    found = Repository.discover(made.path / "libs" / "sub")
    assert (found.common_dir, found.toplevel) == (super_main / ".git", made.path)
    assert found.git_dir == made.git_dir


def test_rewritten_git_file_of_a_bay_changes_nothing(main: Path, bay, tmp_path: Path) -> None:
    made = bay(main)
    git(tmp_path, "init", "-q", "evil")
    (made.path / ".git").write_text(f"gitdir: {tmp_path}/evil/.git\n")
    assert Repository.discover(made.path).common_dir == main / ".git"


def test_bay_known_to_the_store_is_found_wherever_it_lies(main: Path, tmp_path: Path) -> None:
    git(main, "worktree", "add", "-q", str(tmp_path / "central"))
    (tmp_path / "central" / ".git").write_text("gitdir: /nowhere\n")
    found = Repository.discover(tmp_path / "central", {tmp_path / "central": main / ".git"})
    assert found.common_dir == main / ".git"


def test_folder_among_bays_that_is_no_worktree_is_refused(main: Path) -> None:
    folder = main / ".devbay" / "bays" / "ghost"
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    assert code_of(folder) == "not_a_repository"


def test_bare_repositories_git_directories_and_plain_folders_are_refused(main: Path, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "bare")
    (tmp_path / "plain").mkdir()
    for path in (tmp_path / "bare", tmp_path / "plain", main / ".git", main / ".git" / "objects"):
        assert code_of(path) == "not_a_repository"


def test_worktree_of_a_bare_repository_has_no_main_checkout(main: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(main), "bare")
    git(tmp_path / "bare", "worktree", "add", "-q", str(tmp_path / "work"), "main")
    found = Repository.discover(tmp_path / "work")
    assert (found.common_dir, found.main_worktree) == (tmp_path / "bare", None)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a repository to another user")
def test_repository_of_another_user_is_refused_with_the_way_out(main: Path) -> None:
    os.chown(main, 65534, 65534)
    os.chown(main / ".git", 65534, 65534)
    assert code_of(main) == "unsafe_repository"
    git(main, "config", "--global", "--add", "safe.directory", str(main))
    assert Repository.discover(main).toplevel == main


def test_git_variables_of_the_caller_are_ignored(
    main: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path, "init", "-q", "other")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere")
    found = Repository.discover(main)
    assert found.common_dir == main / ".git"
    assert found.branches() == ["main"]


def test_head_is_the_callers_own(main: Path, bay) -> None:
    made = bay(main)
    there = commit(made.path, b_txt="b")
    assert Repository.discover(made.path).head_commit() == there
    assert Repository.discover(main).head_commit() != there


def test_branch_is_checked_out_where_its_checkout_is(main: Path, bay) -> None:
    made = bay(main)
    repository = Repository.discover(main)
    assert repository.branch_checked_out_at("main") == main
    assert repository.branch_checked_out_at("one") == made.path
    assert repository.branch_checked_out_at("on") is None


def test_refs_are_resolved_and_options_are_not(main: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", str(main), "clone")
    git(main, "branch", "only-there")
    git(tmp_path / "clone", "fetch", "-q")
    repository = Repository.discover(tmp_path / "clone")
    head = git(main, "rev-parse", "HEAD")
    assert (
        repository.resolve("HEAD")
        == repository.resolve(head[:10])
        == repository.resolve("only-there")
        == head
    )
    for bad in ("--all", "-b", "nowhere", "", "a.txt", "HEAD:a.txt", "HEAD..HEAD"):
        with pytest.raises(DevbayError) as caught:
            repository.resolve(bad)
        assert caught.value.code == "unknown_ref"


def test_from_record_refuses_a_repository_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(DevbayError, match="no git repository any more"):
        Repository.from_record(tmp_path / ".git", tmp_path)

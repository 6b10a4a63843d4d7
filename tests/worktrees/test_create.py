from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from devbay.errors import DevbayError
from devbay.worktrees import (
    Repository,
    adopt_worktree,
    create_worktree,
    delete_branch,
    remove_worktree,
    worktree_path,
)
from devbay.worktrees import create as create_module
from devbay.worktrees import git as git_module
from devbay.worktrees.record import load_record
from tests.worktrees.repos import commit, git


def refused(main: Path, name: str = "one", branch: str | None = None, **options: str) -> DevbayError:
    repository = Repository.discover(main)
    with pytest.raises(DevbayError) as caught:
        create_worktree(
            repository, path=worktree_path(repository, name, "inside"), branch=branch or name, **options
        )
    return caught.value


def test_new_branch_starts_at_the_callers_head_and_says_so(main: Path, bay) -> None:
    first = bay(main)
    ahead = commit(first.path, b_txt="b")
    second = bay(first.path, "two")
    assert second.created.base_commit == ahead == git(second.path, "rev-parse", "HEAD")
    assert second.created.created_branch
    assert second.path == main / ".devbay" / "bays" / "two"
    assert (second.path / "b.txt").read_text() == "b"


def test_new_branch_starts_where_told(main: Path, bay) -> None:
    old = git(main, "rev-parse", "HEAD")
    commit(main, b_txt="b")
    assert bay(main, start=old).created.base_commit == old


def test_existing_branch_is_used_and_not_claimed(main: Path, bay) -> None:
    git(main, "branch", "feature/login")
    made = bay(main, "login", branch="feature/login")
    assert not made.created.created_branch
    assert git(made.path, "branch", "--show-current") == "feature/login"


def test_existing_branch_elsewhere_than_the_start_is_refused(main: Path) -> None:
    git(main, "branch", "one")
    commit(main, b_txt="b")
    assert refused(main, start="HEAD").code == "branch_exists"


def test_branch_that_only_a_remote_has_is_tracked(main: Path, tmp_path: Path, bay) -> None:
    git(main, "branch", "there")
    git(tmp_path, "clone", "-q", str(main), "clone")
    made = bay(tmp_path / "clone", "there")
    assert made.created.created_branch
    assert git(made.path, "rev-parse", "--abbrev-ref", "there@{upstream}") == "origin/there"


def test_branch_that_several_remotes_have_is_not_guessed(main: Path, tmp_path: Path, bay) -> None:
    git(main, "branch", "there")
    git(tmp_path, "clone", "-q", str(main), "clone")
    git(tmp_path / "clone", "remote", "add", "-f", "second", str(main))
    error = refused(tmp_path / "clone", "there")
    assert error.code == "ambiguous_branch"
    assert error.data["candidates"] == ["origin/there", "second/there"]
    git(tmp_path / "clone", "config", "checkout.defaultRemote", "second")
    made = bay(tmp_path / "clone", "there")
    assert git(made.path, "rev-parse", "--abbrev-ref", "there@{upstream}") == "second/there"


@pytest.mark.parametrize(
    "branch",
    [
        "--force",
        "-b",
        "-",
        "@",
        "HEAD",
        "a..b",
        "a b",
        "a~1",
        "@{-1}",
        "a/.b",
        "x.lock",
        "",
        "a\0b",
        "/a",
        "a/",
    ],
)
def test_what_cannot_name_a_branch_is_refused_before_anything_happens(main: Path, branch: str) -> None:
    repository = Repository.discover(main)
    with pytest.raises(DevbayError) as caught:
        create_worktree(repository, path=worktree_path(repository, "one", "inside"), branch=branch)
    assert caught.value.code == "bad_branch"
    assert not (main / ".devbay").exists()


def test_branch_below_an_existing_branch_is_refused_and_leaves_nothing(main: Path) -> None:
    assert refused(main, branch="main/sub").code == "bad_branch"
    assert not (main / ".devbay" / "bays" / "one").exists()
    assert git(main, "worktree", "list").count("\n") == 0


def test_branch_checked_out_elsewhere_names_the_place(main: Path) -> None:
    error = refused(main, branch="main")
    assert (error.code, error.data["path"]) == ("branch_checked_out", str(main))


def test_repository_without_a_commit_is_refused_clearly(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "empty")
    assert refused(tmp_path / "empty").code == "no_commits"


def test_folder_that_is_in_the_way_is_never_touched(main: Path) -> None:
    folder = main / ".devbay" / "bays" / "one"
    folder.mkdir(parents=True)
    (main / ".devbay" / ".gitignore").write_text("*\n")
    (folder / "thesis.txt").write_text("years of work")
    assert refused(main).code == "path_taken"
    assert (folder / "thesis.txt").read_text() == "years of work"
    assert not Repository.discover(main).has_branch("one")


def test_bays_are_hidden_from_the_main_checkout(main: Path, bay) -> None:
    bay(main)
    assert git(main, "status", "--porcelain") == ""


def test_dot_folder_that_is_a_link_or_in_use_is_refused(main: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (main / ".devbay").symlink_to(tmp_path / "elsewhere")
    assert refused(main).code == "unsafe_directory"
    (main / ".devbay").unlink()
    (main / ".devbay").mkdir()
    (main / ".devbay" / "notes.txt").write_text("mine")
    assert refused(main).code == "not_ours"
    (main / ".devbay" / "notes.txt").unlink()
    (main / ".devbay" / "bays").symlink_to(tmp_path / "elsewhere")
    (main / ".devbay" / ".gitignore").write_text("*\n")
    assert refused(main).code == "unsafe_directory"
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_places_for_worktrees(main: Path, tmp_path: Path) -> None:
    repository = Repository.discover(main)
    assert worktree_path(repository, "x", "beside") == tmp_path / "my repo é.bays" / "x"
    assert worktree_path(repository, "x", "central", central=tmp_path) == tmp_path / repository.id / "x"
    for name, mode in (("../..", "inside"), (".", "inside"), ("", "inside"), ("x", "nowhere")):
        with pytest.raises(DevbayError):
            worktree_path(repository, name, mode)


def test_hooks_do_not_run(main: Path, tmp_path: Path, bay) -> None:
    for hook in ("post-checkout", "reference-transaction", "post-index-change"):
        path = main / ".git" / "hooks" / hook
        path.write_text(f"#!/bin/sh\ntouch '{tmp_path}/ran-{hook}'\n")
        path.chmod(0o755)
    bay(main)
    assert list(tmp_path.glob("ran-*")) == []


def test_submodules_come_from_the_main_checkout_without_network(
    super_main: Path, tmp_path: Path, home: Path, bay
) -> None:
    (tmp_path / "sub-source").rename(tmp_path / "gone")
    (tmp_path / "deep-source").rename(tmp_path / "gone-too")
    made = bay(super_main)
    assert made.created.warnings == ()
    assert sorted(made.submodules) == ["libs/sub", "libs/sub/deep"]
    assert (made.path / "libs" / "sub" / "deep" / "s.txt").read_text() == "s\n"
    assert git(made.path, "status", "--porcelain") == ""
    assert git(super_main, "status", "--porcelain") == ""
    assert git(made.path, "submodule", "status", "--recursive")[0] == " "


def test_submodule_that_the_main_checkout_lacks_is_a_warning(super_main: Path, tmp_path: Path, bay) -> None:
    git(tmp_path, "clone", "-q", str(super_main), "clone")
    made = bay(tmp_path / "clone")
    assert made.submodules == {}
    assert "libs/sub" in made.created.warnings[0]
    assert "git submodule update --init" in made.created.warnings[0]


def test_submodule_whose_commit_cannot_be_had_is_a_warning(super_main: Path, tmp_path: Path, bay) -> None:
    git(super_main, "update-index", "--cacheinfo", f"160000,{'1' * 40},libs/sub")
    git(super_main, "commit", "-q", "-m", "unknown commit")
    made = bay(super_main)
    assert made.submodules == {}
    assert len(made.created.warnings) == 1


def test_submodule_commit_that_only_its_origin_has_is_fetched(super_main: Path, tmp_path: Path, bay) -> None:
    new = commit(tmp_path / "sub-source", t_txt="t")
    git(super_main, "update-index", "--cacheinfo", f"160000,{new},libs/sub")
    git(super_main, "commit", "-q", "-m", "newer")
    made = bay(super_main)
    assert (made.path / "libs" / "sub" / "t.txt").read_text() == "t"


def test_submodule_name_that_escapes_is_not_followed(super_main: Path, bay) -> None:
    evil = (super_main / ".gitmodules").read_text().replace('"libs/sub"', '"../../objects"')
    (super_main / ".gitmodules").write_text(evil)
    git(super_main, "commit", "-q", "-am", "evil")
    assert bay(super_main).submodules == {}


def test_shallow_clone_gets_a_bay(main: Path, tmp_path: Path, bay) -> None:
    commit(main, b_txt="b")
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{main}", "shallow")
    made = bay(tmp_path / "shallow")
    assert (made.path / "b.txt").exists()
    assert git(made.path, "rev-list", "--count", "HEAD") == "1"


def test_sparse_checkout_is_kept(main: Path, bay) -> None:
    (main / "big").mkdir()
    (main / "big" / "x.txt").write_text("x")
    git(main, "add", ".")
    git(main, "commit", "-qm", "big")
    git(main, "sparse-checkout", "set", "--no-cone", "/*", "!/big/")
    made = bay(main)
    assert (made.path / "a.txt").exists()
    assert not (made.path / "big").exists()
    assert git(made.path, "status", "--porcelain") == ""


def test_failing_filter_leaves_what_git_stores_and_a_warning(main: Path, home: Path, bay) -> None:
    (main / ".gitattributes").write_text("*.bin filter=lfs\n")
    commit(main, x_bin="version https://git-lfs.github.com/spec/v1\n")
    git(main, "add", ".gitattributes")
    git(main, "commit", "-qm", "attributes")
    git(main, "config", "--global", "filter.lfs.smudge", "no-such-git-lfs %f")
    git(main, "config", "--global", "filter.lfs.required", "true")
    made = bay(main)
    assert (made.path / "x.bin").read_text().startswith("version ")
    assert "pointers" in made.created.warnings[0]


def test_users_own_filter_runs_as_it_does_for_git(main: Path, bay) -> None:
    (main / ".gitattributes").write_text("*.up filter=up\n")
    git(main, "add", ".gitattributes")
    commit(main, x_up="quiet\n")
    git(main, "config", "--global", "filter.up.smudge", "tr a-z A-Z")
    assert (bay(main).path / "x.up").read_text() == "QUIET\n"


def test_repeat_after_success_returns_the_same_and_keeps_work(main: Path, bay) -> None:
    first = bay(main)
    (first.path / "a.txt").write_text("work")
    assert bay(main).created == first.created
    assert (first.path / "a.txt").read_text() == "work"


def test_place_of_another_branchs_bay_is_refused(main: Path, bay) -> None:
    made = bay(main)
    (made.path / "a.txt").write_text("work")
    assert refused(main, "one", "other").code == "path_taken"
    assert (made.path / "a.txt").read_text() == "work"


def test_failure_leaves_neither_folder_nor_branch(main: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> list[str]:
        raise DevbayError("git_failed", "disk full")

    monkeypatch.setattr("devbay.worktrees.create._check_out", fail)
    assert refused(main).message == "disk full"
    repository = Repository.discover(main)
    assert repository.branches() == ["main"]
    assert not (main / ".devbay" / "bays" / "one").exists()
    assert load_record(repository.common_dir, main / ".devbay" / "bays" / "one") is None


def test_submodule_outside_a_sparse_checkout_is_left_out(super_main: Path, bay) -> None:
    git(super_main, "sparse-checkout", "set", "--no-cone", "/*", "!/libs/")
    made = bay(super_main)
    assert made.submodules == {}
    assert made.created.warnings == ()
    assert not (made.path / "libs").exists()


def test_many_bays_can_be_made_and_removed_at_once(main: Path, bay) -> None:
    with ThreadPoolExecutor(6) as pool:
        made = list(pool.map(lambda n: bay(main, f"b{n}"), range(6)))
        assert [git(one.path, "branch", "--show-current") for one in made] == [f"b{n}" for n in range(6)]
        assert all(pool.map(lambda one: remove_worktree(one.repository, one.path), made))
    assert git(main, "worktree", "list").count("\n") == 0


def test_what_the_system_refuses_is_told_as_an_error_with_a_code(main: Path) -> None:
    (main / ".devbay").mkdir()
    (main / ".devbay" / ".gitignore").write_text("*\n")
    (main / ".devbay" / "bays").write_text("a file")
    assert refused(main).code == "disk_failed"


def test_adopting_takes_a_checkout_as_it_is(main: Path, tmp_path: Path) -> None:
    git(main, "worktree", "add", "-q", str(tmp_path / "linked"), "-b", "mine")
    repository = Repository.discover(main)
    linked = adopt_worktree(repository, tmp_path / "linked")
    assert (linked.branch, linked.created_branch) == ("mine", False)
    assert adopt_worktree(repository, main).git_dir == main / ".git"
    with pytest.raises(DevbayError, match="no checkout of"):
        adopt_worktree(repository, tmp_path)


def test_adopted_main_checkout_knows_its_submodules(super_main: Path) -> None:
    adopted = adopt_worktree(Repository.discover(super_main), super_main)
    modules = super_main / ".git" / "modules" / "libs" / "sub"
    assert adopted.submodules == {"libs/sub": modules, "libs/sub/deep": modules / "modules" / "deep"}


def test_killed_at_any_point_the_repeat_converges(
    super_main: Path, bay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child process dies before the n-th step, for every n; the next call yields a whole bay."""
    original_run, original_save = git_module.run_git, create_module.save_record
    points = 0
    while True:
        points += 1
        assert points < 100
        child = os.fork()
        if child == 0:
            left = [points]

            def step(original, left=left):
                def call(*args, **kwargs):
                    left[0] -= 1
                    if left[0] == 0:
                        os._exit(9)
                    return original(*args, **kwargs)

                return call

            git_module.run_git = step(original_run)
            create_module.save_record = step(original_save)
            try:
                bay(super_main)
            except Exception:  # noqa: BLE001 - whatever it is, the parent must hear of it
                os._exit(1)
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status in (0, 9)
        if status == 9 and points % 2:  # the other points leave what the next child must cope with
            made = bay(super_main)
            assert made.created.created_branch
            assert git(made.path, "status", "--porcelain") == ""
            assert sorted(made.submodules) == ["libs/sub", "libs/sub/deep"]
            assert remove_worktree(made.repository, made.path)
            assert delete_branch(made.repository, "one", created_branch=True)
        if status == 0:
            break
    assert points > 15
    assert git(super_main, "worktree", "list").count("\n") == 1
    assert not stat.S_ISLNK((super_main / ".devbay" / "bays" / "one").lstat().st_mode)

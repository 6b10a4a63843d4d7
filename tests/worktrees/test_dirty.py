from __future__ import annotations

import hashlib
from pathlib import Path

from devbay.worktrees import OwnWork, commits_of_own, in_progress, own_work, unheld_commits
from tests.worktrees.repos import commit, git


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_fresh_bay_holds_no_work(super_main: Path, bay) -> None:
    made = bay(super_main)
    work = own_work(made.path, made.git_dir, made.submodules)
    assert work == OwnWork()
    assert not work.any


def test_tracked_and_untracked_changes_are_work_and_ignored_files_are_not(main: Path, bay) -> None:
    made = bay(main)
    (made.path / "a.txt").unlink()
    (made.path / "new.txt").write_text("new")
    (made.path / "x.log").write_text("ignored")
    work = own_work(made.path, made.git_dir, {})
    assert (work.changed, work.untracked) == (("a.txt",), ("new.txt",))


def test_report_paths_are_excepted_and_their_neighbours_are_not(main: Path, bay) -> None:
    made = bay(main)
    (made.path / "test").mkdir()
    for name in ("out.xml", "new_test.py"):
        (made.path / "test" / name).write_text("x")
    work = own_work(made.path, made.git_dir, {}, report_paths=["test/out.xml"])
    assert (work.excepted, work.untracked) == (("test/out.xml",), ("test/new_test.py",))


def test_file_of_a_run_is_excepted_while_nobody_touches_it(main: Path, bay) -> None:
    made = bay(main)
    (made.path / "cov.json").write_text("{}")
    run_files = {"cov.json": sha("{}"), "a.txt": sha("a\n")}
    assert own_work(made.path, made.git_dir, {}, run_files=run_files).excepted == ("cov.json",)
    (made.path / "cov.json").write_text("{mine}")
    assert own_work(made.path, made.git_dir, {}, run_files=run_files).untracked == ("cov.json",)


def test_changed_tracked_file_is_work_even_if_a_run_wrote_it(main: Path, bay) -> None:
    made = bay(main)
    (made.path / "a.txt").write_text("b\n")
    assert own_work(made.path, made.git_dir, {}, run_files={"a.txt": sha("b\n")}).changed == ("a.txt",)


def test_include_file_is_work_once_it_differs_from_what_was_copied(main: Path, bay) -> None:
    made = bay(main)
    (made.path / ".env").write_text("A=1")
    includes = {".env": sha("A=1"), "gone.log": sha("x")}
    assert own_work(made.path, made.git_dir, {}, includes=includes) == OwnWork()
    (made.path / ".env").write_text("A=2")
    assert own_work(made.path, made.git_dir, {}, includes=includes).changed_includes == (".env",)
    (made.path / ".env").unlink()
    (made.path / ".env").symlink_to("a.txt")
    assert own_work(made.path, made.git_dir, {}, includes=includes).changed_includes == (".env",)


def test_include_file_that_this_branch_does_not_ignore_is_no_work(main: Path, bay) -> None:
    made = bay(main)
    (made.path / "loose").write_text("A=1")
    assert own_work(made.path, made.git_dir, {}, includes={"loose": sha("A=1")}) == OwnWork()


def test_commits_are_a_branchs_own_until_another_ref_holds_them(main: Path, bay) -> None:
    made = bay(main)
    assert commits_of_own(made.repository, "one") == []
    commit(made.path, b_txt="b")
    assert [line.split(" ", 1)[1] for line in commits_of_own(made.repository, "one")] == ["add b_txt"]
    for ref in ("refs/heads/two", "refs/tags/t", "refs/remotes/origin/one"):
        git(main, "update-ref", ref, "one")
        assert commits_of_own(made.repository, "one") == []
        git(main, "update-ref", "-d", ref)
    assert len(commits_of_own(made.repository, "one")) == 1


def test_symbolic_ref_to_the_branch_holds_nothing(main: Path, bay) -> None:
    made = bay(main)
    commit(made.path, b_txt="b")
    git(main, "symbolic-ref", "refs/heads/alias", "refs/heads/one")
    assert len(commits_of_own(made.repository, "one")) == 1


def test_branch_that_is_gone_has_none(main: Path, bay) -> None:
    assert commits_of_own(bay(main).repository, "nothing") == []


def test_commits_on_a_detached_head_are_unheld_until_a_ref_holds_them(main: Path, bay) -> None:
    made = bay(main)
    git(made.path, "checkout", "-q", "--detach")
    assert unheld_commits(made.path, made.git_dir) == []
    commit(made.path, b_txt="b")
    assert len(unheld_commits(made.path, made.git_dir)) == 1
    git(made.path, "branch", "rescue")
    assert unheld_commits(made.path, made.git_dir) == []


def test_commits_in_a_submodule_are_unheld_too(super_main: Path, bay) -> None:
    made = bay(super_main)
    assert unheld_commits(made.path, made.git_dir) == []
    commit(made.path / "libs" / "sub" / "deep", t_txt="t")
    found = unheld_commits(made.path, made.git_dir)
    assert len(found) == 1
    assert found[0].endswith("(in libs/sub/deep)")


def test_an_unfinished_rebase_and_references_of_its_own_are_work(main: Path, bay) -> None:
    made = bay(main)
    assert in_progress(made.git_dir) == []
    (made.git_dir / "rebase-merge").mkdir()
    (made.git_dir / "rebase-merge" / "autostash").write_text("0" * 40)
    git(made.path, "update-ref", "refs/worktree/mine", "HEAD")
    assert in_progress(made.git_dir) == [
        "a rebase is in progress",
        "it has references of its own (refs/worktree)",
    ]

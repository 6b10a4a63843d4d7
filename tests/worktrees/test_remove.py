from __future__ import annotations

import multiprocessing
import os
import shutil
import threading
from pathlib import Path

import pytest

from devbay.errors import DevbayError
from devbay.worktrees import Repository, delete_branch, lock_reason, prune, remove_worktree
from devbay.worktrees.record import all_records, load_record, repository_lock, save_record
from tests.worktrees.repos import Made, commit, git


def nothing_left(made: Made) -> None:
    assert not os.path.lexists(made.path)
    assert git(made.repository.common_dir.parent, "worktree", "list").count("\n") == 0
    assert sorted(p.name for p in (made.repository.common_dir / "devbay").iterdir()) in (
        ["lock"],
        ["lock", "logs"],
    )
    assert not (made.repository.common_dir / "worktrees").exists()


def test_worktree_with_submodules_and_changes_is_removed_whole(super_main: Path, bay) -> None:
    made = bay(super_main)
    (made.path / "new").write_text("x")
    assert remove_worktree(made.repository, made.path)
    nothing_left(made)
    sub = super_main / ".git" / "modules" / "libs" / "sub"
    assert not (sub / "worktrees").exists()
    assert git(super_main / "libs" / "sub", "status", "--porcelain") == ""
    assert git(super_main, "fsck") == ""


def test_worktree_deleted_by_hand_is_forgotten(super_main: Path, bay) -> None:
    made = bay(super_main)
    shutil.rmtree(made.path)
    assert remove_worktree(made.repository, made.path)
    nothing_left(made)
    assert not remove_worktree(made.repository, made.path)


def test_somebodys_folder_at_the_place_of_a_deleted_worktree_stays(main: Path, bay) -> None:
    made = bay(main)
    made.path.rename(made.path.with_name("moved"))
    made.path.mkdir()
    (made.path / "thesis").write_text("years")
    assert not remove_worktree(made.repository, made.path)
    assert (made.path / "thesis").read_text() == "years"
    assert load_record(made.repository.common_dir, made.path) is None


def test_link_at_the_place_of_a_worktree_is_not_followed(main: Path, bay, tmp_path: Path) -> None:
    made = bay(main)
    made.path.rename(tmp_path / "moved")
    made.path.symlink_to(tmp_path / "moved")
    assert not remove_worktree(made.repository, made.path)
    assert (tmp_path / "moved" / "a.txt").exists()


def test_folder_reached_through_a_link_is_not_removed(main: Path, bay, tmp_path: Path) -> None:
    made = bay(main)
    (main / ".devbay" / "bays").rename(tmp_path / "bays")
    (main / ".devbay" / "bays").symlink_to(tmp_path / "bays")
    assert not remove_worktree(made.repository, made.path)
    assert (tmp_path / "bays" / "one" / "a.txt").exists()


def test_main_checkout_and_unknown_folders_are_never_removed(main: Path, tmp_path: Path) -> None:
    repository = Repository.discover(main)
    with pytest.raises(DevbayError, match="never removed"):
        remove_worktree(repository, main)
    (tmp_path / "other").mkdir()
    assert not remove_worktree(repository, tmp_path / "other")
    assert (tmp_path / "other").is_dir()


def test_worktree_with_a_rewritten_git_file_is_still_known_as_ours(main: Path, bay) -> None:
    made = bay(main)
    (made.path / ".git").unlink()
    assert remove_worktree(made.repository, made.path)
    nothing_left(made)


def test_locked_worktree_needs_force(main: Path, bay) -> None:
    made = bay(main)
    git(main, "worktree", "lock", "--reason", "on a stick", str(made.path))
    assert lock_reason(made.repository, made.path) == "on a stick"
    with pytest.raises(DevbayError, match="on a stick") as caught:
        remove_worktree(made.repository, made.path)
    assert (caught.value.code, caught.value.exit_code) == ("worktree_locked", 3)
    assert remove_worktree(made.repository, made.path, force=True)


def test_links_inside_lead_nowhere_when_removed(main: Path, bay, tmp_path: Path) -> None:
    made = bay(main)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x").write_text("x")
    (made.path / "way").symlink_to(tmp_path / "outside")
    assert remove_worktree(made.repository, made.path)
    assert (tmp_path / "outside" / "x").exists()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_files_that_cannot_be_removed_are_named_and_the_repeat_finishes(main: Path, bay) -> None:
    made = bay(main)
    (made.path / "readonly").mkdir()
    (made.path / "readonly" / "x").write_text("x")
    (made.path / "rootly").mkdir()
    (made.path / "rootly" / "y").write_text("y")
    for path in [main.parent, *main.parent.rglob("*")]:
        os.chown(path, 65534, 65534, follow_symlinks=False)
    os.chown(made.path / "rootly", 0, 0)
    (made.path / "readonly").chmod(0)

    def as_nobody(queue) -> None:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        try:
            remove_worktree(made.repository, made.path)
        except DevbayError as error:
            queue.put((error.code, error.data["left"]))

    for parent in list(main.parents)[1:-1]:
        if parent.stat().st_mode & 0o001 == 0:
            parent.chmod(parent.stat().st_mode | 0o001)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=as_nobody, args=(queue,))
    process.start()
    code, left = queue.get(timeout=30)
    process.join()
    assert code == "worktree_not_removed"
    assert str(made.path / "rootly" / "y") in left
    assert not (made.path / "readonly").exists()
    assert remove_worktree(made.repository, made.path)


def test_branch_made_by_devbay_goes_with_its_configuration(main: Path, bay) -> None:
    made = bay(main)
    git(main, "config", "branch.one.remote", "origin")
    remove_worktree(made.repository, made.path)
    assert delete_branch(made.repository, "one", created_branch=True)
    assert made.repository.branches() == ["main"]
    assert "branch.one" not in git(main, "config", "--list")


def test_branch_stays_if_it_was_there_before_has_commits_or_a_checkout(main: Path, bay) -> None:
    made = bay(main)
    assert not delete_branch(made.repository, "one", created_branch=True)  # its checkout is there
    commit(made.path, b_txt="b")
    remove_worktree(made.repository, made.path)
    assert not delete_branch(made.repository, "one", created_branch=True)
    git(main, "tag", "kept", "one")
    assert not delete_branch(made.repository, "one", created_branch=False)
    assert delete_branch(made.repository, "one", created_branch=True)


def test_branch_that_moved_after_the_check_stays(main: Path, bay, monkeypatch: pytest.MonkeyPatch) -> None:
    made = bay(main)
    remove_worktree(made.repository, made.path)
    moved = git(main, "commit-tree", "-m", "new", "HEAD^{tree}")

    def check_then_move(repository: Repository, branch: str) -> list[str]:
        git(main, "update-ref", f"refs/heads/{branch}", moved)
        return []

    monkeypatch.setattr("devbay.worktrees.remove.commits_of_own", check_then_move)
    assert not delete_branch(made.repository, "one", created_branch=True)
    assert git(main, "rev-parse", "one") == moved


def test_prune_finishes_removals_and_forgets_what_was_deleted_by_hand(super_main: Path, bay) -> None:
    begun, by_hand, alive = bay(super_main, "begun"), bay(super_main, "hand"), bay(super_main, "alive")
    record = load_record(begun.repository.common_dir, begun.path)
    assert record is not None
    save_record(begun.repository.common_dir, record, state="removing")
    shutil.rmtree(by_hand.path)
    assert (
        prune(alive.repository) == sorted([str(begun.path), str(by_hand.path)])
        or set(prune(alive.repository)) == set()
    )
    assert [record.path for record in all_records(alive.repository.common_dir)] == [str(alive.path)]
    assert git(super_main, "worktree", "list").count("\n") == 1
    assert (alive.path / "libs" / "sub" / "s.txt").exists()


def test_killed_at_any_point_the_repeated_removal_converges(super_main: Path, bay) -> None:
    """A child dies before its n-th deletion or renaming, for every n."""
    points = 0
    while True:
        points += 5
        made = bay(super_main)
        child = os.fork()
        if child == 0:
            left = [points]

            def step(original, left=left):
                def call(*args, **kwargs):
                    left[0] -= 1
                    if left[0] <= 0:
                        os._exit(9)
                    return original(*args, **kwargs)

                return call

            for name in ("unlink", "rmdir", "rename", "replace"):
                setattr(os, name, step(getattr(os, name)))
            try:
                remove_worktree(made.repository, made.path)
            except Exception:  # noqa: BLE001 - whatever it is, the parent must hear of it
                os._exit(1)
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status in (0, 9)
        if status == 9:
            remove_worktree(made.repository, made.path)
        nothing_left(made)
        assert delete_branch(made.repository, "one", created_branch=True)
        if status == 0:
            break
    assert points > 20


def test_lock_of_the_repository_keeps_others_out_for_a_limited_time(main: Path) -> None:
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with repository_lock(main / ".git"):
            held.set()
            release.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(10)
    with pytest.raises(DevbayError) as caught, repository_lock(main / ".git", limit_s=0.2):
        pass
    assert caught.value.code == "repository_busy"
    release.set()
    thread.join()
    with repository_lock(main / ".git", limit_s=0.2):
        pass

from __future__ import annotations

from pathlib import Path

import pytest

from devbay.errors import DevbayError
from devbay.runtimes.base import BindMount
from devbay.worktrees import Repository, adopt_worktree, git_env, git_mounts
from devbay.worktrees.mounts import alternates, ordered
from tests.worktrees.repos import Made, commit, git


def mounts(made: Made, access: str) -> dict[str, str]:
    """Target to `ro` or `rw`, for mounts at their own path."""
    given = git_mounts(made.repository, made.path, made.git_dir, made.submodules, access)  # type: ignore[arg-type]
    return {m.target: "ro" if m.read_only else "rw" for m in given}


@pytest.mark.parametrize("access", ["none", "ro", "rw"])
def test_git_files_are_read_only_and_the_way_to_submodules_is_pinned(
    super_main: Path, bay, access: str
) -> None:
    made = bay(super_main)
    given = mounts(made, access)
    for path in ("", "libs/sub/", "libs/sub/deep/"):
        assert given[f"{made.path}/{path}.git"] == "ro"
    for path in ("libs", "libs/sub", "libs/sub/deep"):
        assert given[f"{made.path}/{path}"] == "rw"


def test_none_shows_nothing_of_the_common_directory(super_main: Path, bay) -> None:
    assert not [t for t in mounts(bay(super_main), "none") if t.startswith(f"{super_main}/.git")]


def test_ro_shows_it_read_only(super_main: Path, bay) -> None:
    given = {t: how for t, how in mounts(bay(super_main), "ro").items() if t.startswith(f"{super_main}/.git")}
    assert given == {f"{super_main}/.git": "ro"}


def test_rw_opens_folders_below_a_read_only_common_directory(super_main: Path, bay) -> None:
    made = bay(super_main)
    given = mounts(made, "rw")
    common, module = super_main / ".git", super_main / ".git" / "modules" / "libs" / "sub"
    assert given[str(common)] == "ro"
    for shared, own in ((common, made.git_dir), (module, made.submodules["libs/sub"])):
        for writable in (shared / "objects", shared / "refs", shared / "logs", own):
            assert given[str(writable)] == "rw"
        for kept in ("commondir", "gitdir", "config.worktree", "modules"):
            assert given[str(own / kept)] == "ro"
            assert (own / kept).exists()
        assert given[str(shared / "objects" / "info")] == "ro"
    opened = {t for t, how in given.items() if how == "rw"}
    for name in ("config", "hooks", "info", "worktrees", "packed-refs", "HEAD", "index"):
        assert str(common / name) not in opened


def test_reflogs_of_shared_refs_go_to_the_bays_own_folder(main: Path, bay) -> None:
    made = bay(main)
    given = git_mounts(made.repository, made.path, made.git_dir, {}, "rw")
    logs = next(m for m in given if m.target == f"{main}/.git/logs")
    assert logs.source == f"{main}/.git/devbay/logs/one"


def test_parents_come_before_children_and_read_only_wins() -> None:
    given = [BindMount("/a/b/c", "/a/b/c"), BindMount("/a", "/a"), BindMount("/a", "/a", read_only=True)]
    assert ordered(given) == (BindMount("/a", "/a", read_only=True), BindMount("/a/b/c", "/a/b/c"))


def test_rewritten_git_files_are_put_right_before_they_are_mounted(
    super_main: Path, bay, tmp_path: Path
) -> None:
    made = bay(super_main)
    (made.path / ".git").unlink()
    (made.path / ".git").symlink_to("/etc/passwd")
    (made.path / "libs" / "sub" / ".git").write_text("gitdir: /evil\n")
    mounts(made, "ro")
    assert (made.path / ".git").read_text() == f"gitdir: {made.git_dir}\n"
    assert not (made.path / ".git").is_symlink()
    assert git(made.path, "status", "--porcelain") == ""
    (made.path / ".git").unlink()
    (made.path / ".git").mkdir()
    with pytest.raises(DevbayError) as caught:
        mounts(made, "ro")
    assert caught.value.code == "tampered"


def test_empty_submodule_is_closed(super_main: Path, tmp_path: Path, bay) -> None:
    git(tmp_path, "clone", "-q", str(super_main), "clone")
    made = bay(tmp_path / "clone")
    given = mounts(made, "none")
    assert given[f"{made.path}/libs/sub"] == "ro"
    assert given[f"{made.path}/libs"] == "rw"


def test_borrowed_objects_are_mounted_and_other_folders_are_not(main: Path, tmp_path: Path, bay) -> None:
    git(tmp_path, "clone", "-q", "--shared", str(main), "borrower")
    (tmp_path / "secrets").mkdir()
    with (tmp_path / "borrower" / ".git" / "objects" / "info" / "alternates").open("a") as file:
        file.write(f"# note\n{tmp_path}/secrets\n../../../my repo é/.git/objects\n")
    given = mounts(bay(tmp_path / "borrower"), "ro")
    assert given[f"{main}/.git/objects"] == "ro"
    assert f"{tmp_path}/secrets" not in given
    assert set(alternates(tmp_path / "borrower" / ".git" / "objects")) == {main / ".git" / "objects"}


def test_adopted_main_checkout_keeps_git_and_other_bays_away(super_main: Path) -> None:
    repository = Repository.discover(super_main)
    adopted = Made(repository, adopt_worktree(repository, super_main))
    given = git_mounts(repository, super_main, adopted.git_dir, adopted.submodules, "none")
    by_target = {m.target: m for m in given}
    for hidden in (".git", ".devbay"):
        assert by_target[f"{super_main}/{hidden}"].source == f"{super_main}/.git/devbay/empty"
        assert by_target[f"{super_main}/{hidden}"].read_only
    given = git_mounts(repository, super_main, adopted.git_dir, adopted.submodules, "ro")
    by_target = {m.target: m for m in given}
    assert by_target[f"{super_main}/.git"] == BindMount(f"{super_main}/.git", f"{super_main}/.git", True)
    with pytest.raises(DevbayError) as caught:
        mounts(adopted, "rw")
    assert caught.value.code == "git_rw_refused"


def test_half_made_and_deleted_bays_have_no_mounts(main: Path) -> None:
    repository = Repository.discover(main)
    assert git_mounts(repository, main, Path(), {}, "ro") == ()
    assert git_mounts(repository, main / "gone", main / ".git" / "worktrees" / "gone", {}, "rw") == ()


def test_environment_names_every_checkout_safe(tmp_path: Path) -> None:
    env = git_env(tmp_path, {"libs/sub": tmp_path}, "ro")
    values = {env[f"GIT_CONFIG_VALUE_{n}"] for n in range(int(env["GIT_CONFIG_COUNT"]))}
    assert {str(tmp_path), f"{tmp_path}/libs/sub", "/workspace", "/workspace/libs/sub"} <= values
    assert "*" not in values
    assert git_env(tmp_path, {}, "none") == {}


def test_mounts_are_the_same_when_asked_again(main: Path, bay) -> None:
    made = bay(main)
    commit(made.path, b_txt="b")
    assert mounts(made, "rw") == mounts(made, "rw")


def test_links_are_never_mounted(super_main: Path, bay, tmp_path: Path) -> None:
    made = bay(super_main)
    (made.path / "libs").rename(tmp_path / "libs")
    (made.path / "libs").symlink_to(tmp_path / "libs")
    assert not [target for target in mounts(made, "ro") if "libs" in target]
    mounts(made, "rw")
    (made.git_dir / "config.worktree").unlink()
    (made.git_dir / "config.worktree").symlink_to("/etc/passwd")
    with pytest.raises(DevbayError, match="is a link"):
        mounts(made, "rw")

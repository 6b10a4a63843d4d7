"""Branches and checkouts: adopt, inherit, include, keep commits, refuse to lose work."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.house import House
from integration.repositories import TINY, git, write

QUIET = "--no-boot"


@pytest.fixture
def repository(make: Callable[..., Path], request: pytest.FixtureRequest) -> Path:
    path: Path = make("tiny", request.node.name[:60])
    return path


def worktree(house: House, repository: Path, bay: str) -> Path:
    return Path(house.json("status", bay, cwd=repository)["worktree"])


def branches(repository: Path) -> set[str]:
    return set(git(repository, "branch", "--format=%(refname:short)").split())


def test_a_new_branch_starts_at_the_callers_head_and_is_named(house: House, repository: Path):
    info = house.json("new", "fix", QUIET, cwd=repository)
    assert info["branch"] == "fix"
    assert worktree(house, repository, "fix") == repository / ".devbay/bays/fix"
    assert git(repository / ".devbay/bays/fix", "rev-parse", "HEAD") == git(repository, "rev-parse", "HEAD")
    assert git(repository, "status", "--porcelain") == ""


def test_a_bay_made_from_inside_a_bay_belongs_to_the_same_repository(house: House, repository: Path):
    house.devbay("new", "outer", QUIET, cwd=repository)
    inside = worktree(house, repository, "outer")
    house.devbay("new", "inner", QUIET, cwd=inside)
    names = {bay["name"] for bay in house.json("ls", cwd=repository)["bays"]}
    assert names == {"outer", "inner"}
    assert worktree(house, repository, "inner") == repository / ".devbay/bays/inner"


def test_from_says_where_the_branch_starts(house: House, repository: Path):
    first = git(repository, "rev-parse", "HEAD")
    write(repository, {"more": "1\n"})
    git(repository, "add", "more")
    git(repository, "commit", "-q", "-m", "More")
    house.devbay("new", "old", "--from", "HEAD~1", QUIET, cwd=repository)
    assert git(repository / ".devbay/bays/old", "rev-parse", "HEAD") == first


def test_any_branch_name_becomes_a_safe_bay_name(house: House, repository: Path):
    for branch, expected in (
        ("feature/Login_Fix", "login-fix"),
        ("fix--double", "fix-double"),
        ("émile/größe", "grosse"),
    ):
        info = house.json("new", "--branch", branch, QUIET, cwd=repository)
        assert info["branch"] == branch
        assert info["name"].startswith(expected[:3]) or info["name"] == expected
        assert "--" not in info["name"]
        assert info["name"].isascii()
    long = "x" * 200
    info = house.json("new", "--branch", long, QUIET, cwd=repository)
    assert len(info["name"]) <= 40


def test_a_checked_out_branch_is_refused_with_its_place_and_adopted_on_request(
    house: House, repository: Path
):
    other = repository.parent / "elsewhere"
    git(repository, "worktree", "add", "-q", "-b", "taken", str(other))
    error = house.devbay("new", "taken", QUIET, "--json", cwd=repository, code=2).error
    assert error["code"] == "branch_checked_out"
    assert str(other) in error["message"] + error["next"]
    info = house.json("new", "taken", "--adopt", cwd=repository)
    assert (info["adopted"], info["worktree"], info["state"]) == (True, str(other), "running")
    answer = house.json("rm", "taken", cwd=repository)
    assert any(str(other) in kept for kept in answer["kept"])
    assert (other / "devbay.yaml").is_file()
    assert "taken" in branches(repository)
    git(repository, "worktree", "remove", "--force", str(other))


def test_the_main_checkout_can_be_adopted_and_is_kept(house: House, repository: Path):
    house.devbay("new", "here", "--branch", "main", "--adopt", QUIET, cwd=repository)
    write(repository, {"mine": "dirty\n"})
    house.devbay("rm", "here", cwd=repository)
    assert (repository / "mine").is_file()
    (repository / "mine").unlink()


def test_a_branch_without_a_manifest_inherits_the_main_checkouts(house: House, repository: Path):
    git(repository, "checkout", "-q", "-b", "bare")
    git(repository, "rm", "-q", "devbay.yaml")
    git(repository, "commit", "-q", "-m", "No manifest")
    git(repository, "checkout", "-q", "main")
    info = house.json("new", "bare", cwd=repository)
    assert (info["manifest"], info["state"]) == ("inherited", "running")
    assert not (repository / ".devbay/bays/bare/devbay.yaml").exists()


def test_a_branch_with_commits_of_its_own_is_kept_and_named(house: House, repository: Path):
    house.devbay("new", "work", QUIET, cwd=repository)
    tree = worktree(house, repository, "work")
    write(tree, {"new.txt": "1\n"})
    git(tree, "add", "new.txt")
    git(tree, "commit", "-q", "-m", "Work")
    answer = house.json("rm", "work", cwd=repository)
    assert any("work" in kept and "commit" in kept for kept in answer["kept"])
    assert "work" in branches(repository)
    assert not tree.exists()


def test_a_branch_that_was_there_before_is_kept(house: House, repository: Path):
    git(repository, "branch", "older")
    house.devbay("new", "older", QUIET, cwd=repository)
    house.devbay("rm", "older", cwd=repository)
    assert "older" in branches(repository)


@pytest.mark.parametrize(
    "what",
    ["changed", "untracked", *(pytest.param(each, marks=pytest.mark.full) for each in ("staged", "deleted")),
     "detached-commit"],
)  # fmt: skip
def test_a_destroy_that_would_lose_work_is_refused_before_anything_is_touched(
    house: House, make: Callable[..., Path], what: str
):
    repository = make("tiny", f"dirty-{what}")
    bay = house.json("new", "mine", cwd=repository)["id"]
    tree = worktree(house, repository, "mine")
    before = house.objects(bay)
    if what == "changed":
        write(tree, {"www/index.html": "edited\n"})
    elif what == "untracked":
        write(tree, {"notes.txt": "mine\n"})
    elif what == "staged":
        write(tree, {"notes.txt": "mine\n"})
        git(tree, "add", "notes.txt")
    elif what == "deleted":
        (tree / "www/index.html").unlink()
    else:
        git(tree, "checkout", "-q", "--detach")
        git(tree, "commit", "-q", "--allow-empty", "-m", "Held by nothing")
    ran = house.devbay("rm", "mine", "--json", cwd=repository, code=3)
    assert ran.error["code"] == "refused_dirty"
    assert ran.error["blockers"]
    assert house.objects(bay) == before
    assert house.json("status", "mine", cwd=repository)["state"] == "running"
    answer = house.json("rm", "mine", "--dry-run", cwd=repository)
    assert answer["blockers"]
    answer = house.json("rm", "mine", "--force", cwd=repository)
    assert house.objects(bay) == []
    if what in ("changed", "untracked", "staged"):
        kept = {path.name: path for path in Path(answer["trash"]).rglob("*") if path.is_file()}
        assert "index.html" in kept or "notes.txt" in kept


def test_dry_run_lists_and_touches_nothing(house: House, repository: Path):
    bay = house.json("new", "look", cwd=repository)["id"]
    before = house.objects(bay)
    answer = house.json("rm", "look", "--dry-run", cwd=repository)
    assert (answer["destroyed"], answer["dry_run"]) == (False, True)
    assert {each.split()[0] for each in answer["removed"]} >= {"container", "network", "worktree", "branch"}
    assert house.objects(bay) == before
    assert house.json("status", "look", cwd=repository)["state"] == "running"
    really = house.json("rm", "look", cwd=repository)
    assert set(answer["removed"]) == set(really["removed"])


def test_include_files_are_copied_and_their_edits_are_not_lost(house: House, make: Callable[..., Path]):
    repository = make(
        "tiny", "include", TINY, **{".gitignore": ".env\nlocal/\n", ".worktreeinclude": ".env\n"}
    )
    write(repository, {".env": "API_KEY=from-main-checkout\n", "local/x": "not listed\n"})
    house.devbay("new", "with-env", QUIET, cwd=repository)
    tree = worktree(house, repository, "with-env")
    assert (tree / ".env").read_text() == "API_KEY=from-main-checkout\n"
    assert not (tree / "local").exists()
    write(tree, {".env": "API_KEY=edited-in-the-bay\n"})
    error = house.devbay("rm", "with-env", "--json", cwd=repository, code=3).error
    assert any(".env" in each for each in error["blockers"])
    write(tree, {".env": "API_KEY=from-main-checkout\n"})
    house.devbay("rm", "with-env", cwd=repository)


def test_a_path_with_spaces_and_unicode_works_to_the_end(house: House, make: Callable[..., Path]):
    repository = make("tiny", "my répo – ünïcode")
    info = house.json("new", "one", cwd=repository)
    assert info["state"] == "running"
    assert house.json("run", "one", "with-web", cwd=repository)["status"] == "passed"
    house.devbay("rm", "one", cwd=repository)
    assert git(repository, "worktree", "list").count("\n") == 0


def test_a_shallow_clone_and_submodules_work(house: House, make: Callable[..., Path]):
    library = make("repository", "library", {"lib.txt": "of the library\n"})
    source = make("tiny", "with-submodule-source")
    git(source, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library), "lib")
    git(source, "commit", "-q", "-m", "Library")
    shallow = source.parent / "shallow"
    git(source.parent, "clone", "-q", "--depth", "1", f"file://{source}", "shallow")
    git(shallow, "-c", "protocol.file.allow=always", "submodule", "update", "-q", "--init")
    house.repositories.append(shallow)
    info = house.json("new", "deep", QUIET, cwd=shallow)
    assert (Path(info["worktree"]) / "lib/lib.txt").read_text() == "of the library\n"
    write(Path(info["worktree"]), {"lib/mine.txt": "work in the submodule\n"})
    error = house.devbay("rm", "deep", "--json", cwd=shallow, code=3).error
    assert any("lib/mine.txt" in each for each in error["blockers"])
    house.devbay("rm", "deep", "--force", cwd=shallow)


def test_a_rewritten_git_file_runs_nothing_on_the_host(house: House, repository: Path):
    """A container can write anything into its worktree; a later `devbay status` must not run it."""
    house.devbay("new", "evil", QUIET, cwd=repository)
    tree = worktree(house, repository, "evil")
    marker = repository.parent / "ran-on-the-host"
    evil = tree / "evil.git"
    git(tree, "init", "-q", "--bare", str(evil))
    git(evil, "config", "core.bare", "false")
    git(evil, "config", "core.worktree", str(tree))
    git(evil, "config", "core.fsmonitor", f"touch {marker}; false")
    original = (tree / ".git").read_text()
    (tree / ".git").unlink()
    (tree / ".git").write_text(f"gitdir: {evil}\n")
    house.devbay("status", "evil", cwd=repository, code=None)
    house.devbay("rm", "evil", "--dry-run", cwd=repository, code=None)
    house.devbay("ls", cwd=repository)
    assert not marker.exists()
    (tree / ".git").write_text(original)


def test_two_repositories_with_the_same_project_name_are_kept_apart(house: House, make: Callable[..., Path]):
    one, two = make("tiny", "first/app"), make("tiny", "second/app")
    infos = [house.json("new", "same", cwd=repository) for repository in (one, two)]
    assert infos[0]["id"] != infos[1]["id"]
    assert infos[0]["public_url"] != infos[1]["public_url"]
    house.devbay("rm", "same", cwd=one)
    assert house.json("status", "same", cwd=two)["state"] == "running"
    everywhere = house.json("ls", "--all", cwd=house.root)["bays"]
    assert any(bay["id"] == infos[1]["id"] for bay in everywhere)
    house.devbay("rm", "same", cwd=two)


def test_a_worktree_deleted_by_hand_is_said_and_the_bay_removable(house: House, repository: Path):
    bay = house.json("new", "gone", cwd=repository)["id"]
    shutil.rmtree(worktree(house, repository, "gone"))
    info = house.json("status", "gone", cwd=repository)
    assert any("gone" in warning for warning in info["warnings"])
    house.devbay("rm", "gone", cwd=repository)
    assert house.objects(bay) == []
    assert git(repository, "worktree", "list").count("\n") == 0
    assert "gone" not in branches(repository)


def test_an_alias_names_the_bay_as_well(house: House, repository: Path):
    house.devbay("new", "a-long-name", "--alias", "al", QUIET, cwd=repository)
    assert house.json("status", "al", cwd=repository)["name"] == "a-long-name"
    house.devbay("rm", "al", cwd=repository)

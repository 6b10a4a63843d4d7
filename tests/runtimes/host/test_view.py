"""What a sandboxed process sees, decided without a sandbox."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from devbay.errors import DevbayError
from devbay.runtimes.base import BindMount
from devbay.runtimes.host import view as views
from devbay.runtimes.host.hidden import hiding
from devbay.runtimes.host.view import Kind, View, has_workspace

WORKTREE, HOME, TMP = Path("/repo/wt"), Path("/state/home"), Path("/state/tmp")


class Tree:
    """Files of a made-up machine: folders and files by path, links with what they say."""

    def __init__(self, *paths: str, links: dict[str, str] | None = None) -> None:
        self.links = links or {}
        self.files = {path for path in paths if not path.endswith("/")}
        self.folders = {path.rstrip("/") for path in paths if path.endswith("/")} | {"/"}
        for path in [*paths, *self.links]:
            self.folders |= {str(parent) for parent in Path(path).parents}

    def kind(self, path: str) -> Kind | None:
        if path in self.links:
            return "link"
        return "folder" if path in self.folders else "file" if path in self.files else None

    def link(self, path: str) -> str:
        return self.links[path]

    def names(self, path: str) -> Sequence[str]:
        every = {*self.files, *self.folders, *self.links} - {"/"}
        return sorted(Path(one).name for one in every if str(Path(one).parent) == path)


def tree(*paths: str, links: dict[str, str] | None = None) -> Tree:
    base = ("/repo/wt/", "/state/home/", "/state/tmp/", "/usr/bin/", "/proc/", "/dev/", "/tmp/", "/var/tmp/")
    return Tree(*base, *paths, links=links)


def view(**changes: object) -> View:
    return View(WORKTREE, HOME, TMP, "/repo/wt", **changes)  # type: ignore[arg-type]


def mounts_argv(seen: View, machine: Tree, *, root: bool = False) -> list[str]:
    return views.mounts_argv(seen, machine, root=root)


def at(words: list[str], target: str) -> list[tuple[int, str]]:
    """In which places and by which options something is done at `target`, the last word of an option."""
    starts = [index for index, word in enumerate(words) if word.startswith("--")]
    ends = [*starts[1:], len(words)]
    return [
        (start, words[start]) for start, end in zip(starts, ends, strict=True) if words[end - 1] == target
    ]


def test_the_machine_is_read_only_and_its_links_are_made_anew() -> None:
    words = mounts_argv(view(), tree(links={"/bin": "usr/bin"}))
    assert [option for _, option in at(words, "/usr")] == ["--ro-bind-try"]
    assert [option for _, option in at(words, "/bin")] == ["--symlink"]
    assert at(words, "/repo/wt")[0][1] == "--bind"
    assert words[-2:] == ["--remount-ro", "/"]


def test_what_is_hidden_stays_hidden_when_a_folder_above_it_is_writable() -> None:
    words = mounts_argv(
        view(writable=(Path("/data"),), hidden=(Path("/data/secret"),)), tree("/data/secret/")
    )
    (writable, _), (hidden, option) = at(words, "/data")[0], at(words, "/data/secret")[0]
    assert writable < hidden
    assert option == "--tmpfs"


def test_a_worktree_below_a_hidden_folder_is_there() -> None:
    words = mounts_argv(view(hidden=(Path("/repo"),)), tree("/repo/.env"))
    hidden, worktree = at(words, "/repo")[0], at(words, "/repo/wt")[0]
    assert hidden < worktree
    assert worktree[1] == "--bind"


def test_a_hidden_link_hides_where_it_leads() -> None:
    words = mounts_argv(view(hidden=(Path("/h/.ssh"),)), tree("/keys/id", links={"/h/.ssh": "../keys"}))
    assert [option for _, option in at(words, "/keys")][-2:] == ["--tmpfs", "--remount-ro"]


def test_a_hidden_file_reads_as_empty() -> None:
    words = mounts_argv(view(hidden=(Path("/run/docker.sock"),)), tree("/run/docker.sock"))
    assert words[words.index("/dev/null") - 1] == "--dev-bind"
    assert words[words.index("/dev/null") + 1] == "/run/docker.sock"


def test_what_is_hidden_and_not_there_makes_nothing() -> None:
    hidden = (Path("/h/.ssh"), Path("/tmp/x"), Path("/repo/wt/none"))
    assert mounts_argv(view(hidden=hidden), tree("/tmp/x")) == mounts_argv(view(), tree("/tmp/x"))


def test_a_volume_below_a_read_only_folder_keeps_what_else_is_in_it() -> None:
    machine = tree("/var/lib/dpkg/", "/var/lib/file", links={"/var/lib/l": "dpkg"})
    words = mounts_argv(view(binds=(BindMount("/state/v", "/var/lib/app/data"),)), machine)
    opened, made, bound = (
        at(words, "/var/lib")[0],
        at(words, "/var/lib/app")[0],
        at(words, "/var/lib/app/data")[0],
    )
    assert (opened[1], made[1], bound[1]) == ("--tmpfs", "--dir", "--bind")
    assert opened < made < bound
    assert [option for _, option in at(words, "/var/lib/dpkg")] == ["--ro-bind-try"]
    assert [option for _, option in at(words, "/var/lib/l")] == ["--symlink"]
    assert [option for _, option in at(words, "/var/lib")][-1] == "--remount-ro"


def test_a_volume_at_a_path_that_the_machine_does_not_have_needs_no_more() -> None:
    words = mounts_argv(view(binds=(BindMount("/state/v", "/app/data"),)), tree())
    assert [option for _, option in at(words, "/app")] == ["--dir"]
    assert [option for _, option in at(words, "/app/data")] == ["--bind"]


def test_a_target_behind_a_link_of_the_machine_is_where_the_link_leads() -> None:
    words = mounts_argv(view(tmpfs=("/var/run/app",)), tree("/run/", links={"/var/run": "/run"}))
    assert [option for _, option in at(words, "/run/app")] == ["--tmpfs"]


@pytest.mark.parametrize("link", ["/oldroot/etc", "../../../oldroot/etc", "nowhere"])
def test_a_link_in_the_worktree_is_no_way_out_of_it(link: str) -> None:
    machine = tree(links={"/repo/wt/node_modules": link})
    with pytest.raises(DevbayError) as raised:
        mounts_argv(view(binds=(BindMount("/state/v", "/repo/wt/node_modules/x"),)), machine)
    assert raised.value.code == "unsafe_mount"
    assert "/repo/wt/node_modules" in raised.value.message


def test_links_that_lead_to_each_other_end() -> None:
    with pytest.raises(DevbayError, match="is a link"):
        mounts_argv(view(tmpfs=("/a/x",)), tree(links={"/a": "b", "/b": "a"}))


def test_git_mounts_come_after_the_worktree_and_inside_a_hidden_checkout() -> None:
    mounts = (BindMount("/repo/.git", "/repo/.git", True), BindMount("/repo/wt/.git", "/repo/wt/.git", True))
    words = mounts_argv(
        view(hidden=(Path("/repo"),), git_mounts=mounts), tree("/repo/.git/", "/repo/wt/.git")
    )
    assert at(words, "/repo/wt")[0] < at(words, "/repo/wt/.git")[0]
    assert [option for _, option in at(words, "/repo/.git")] == ["--ro-bind"]
    assert [option for _, option in at(words, "/repo/wt/.git")] == ["--ro-bind"]


def test_workspace_leads_to_the_worktree_and_targets_below_it_are_in_it() -> None:
    words = mounts_argv(
        view(binds=(BindMount("/state/v", "/workspace/node_modules"),)), tree("/workspace/other/")
    )
    assert words[words.index("/workspace") - 2 : words.index("/workspace")] == ["--symlink", "/repo/wt"]
    assert at(words, "/repo/wt/node_modules")
    assert "/workspace/other" not in words


def test_where_the_repository_lies_in_workspace_it_stays_there() -> None:
    worktree = Path("/workspace/.devbay/bays/a")
    seen = View(worktree, HOME, TMP, str(worktree), hidden=(Path("/workspace"),))
    assert not has_workspace(seen)
    words = mounts_argv(seen, tree("/workspace/.devbay/bays/a/"))
    assert "--symlink" not in words
    assert at(words, "/workspace")[0] < at(words, str(worktree))[0]


def test_root_cannot_reach_the_machines_settings() -> None:
    machine = tree("/proc/sys/kernel", "/proc/sysrq-trigger")
    words = mounts_argv(view(), machine, root=True)
    assert at(words, "/proc")[0] < at(words, "/proc/sys")[0]
    assert [option for _, option in at(words, "/proc/sys")] == ["--ro-bind"]


def test_the_whole_home_is_hidden_but_toolchains_and_folders_of_path() -> None:
    home = Path("/home/ana")
    folders = (".docker/bin", "miniconda3/bin", "bin", ".pyenv/shims", "")
    path = ":".join(["/usr/bin", *(f"{home}/{folder}" for folder in folders), ""])
    found = hiding(home, path)
    assert home in found.hidden
    assert home / ".docker/bin" in found.visible
    assert home / ".docker" not in found.visible
    assert home / "miniconda3" in found.visible
    assert home / "bin" in found.visible
    assert home / ".pyenv" in found.visible
    assert home not in found.visible
    assert home / ".ssh" not in found.visible


def test_tools_below_the_temporary_folder_are_shown_in_the_processs_own() -> None:
    machine = tree("/tmp/node/bin/node", "/tmp/other/secret")
    found = hiding(Path("/home/ana"), "/usr/bin:/tmp/node/bin")
    words = mounts_argv(view(visible=found.visible), machine)
    assert at(words, "/tmp/node")[0] > at(words, "/tmp")[0]
    assert at(words, "/tmp/other") == []


def test_a_home_below_the_temporary_folder_is_shown_no_more_than_any_other() -> None:
    assert Path("/tmp/ana") not in hiding(Path("/tmp/ana"), "/tmp/ana/bin").visible


def test_a_home_that_is_the_whole_machine_is_not_hidden() -> None:
    assert Path("/") not in hiding(Path("/"), "/usr/bin").hidden

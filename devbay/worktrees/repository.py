"""Which repository a path belongs to, and what git knows of it.

git's own discovery is used only for checkouts that are no bay: a container can rewrite a bay's `.git`, so a
bay is known by its place and by the repository's own registration of it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from devbay.errors import DevbayError
from devbay.worktrees.git import Git, run_git

BAYS_INSIDE = (".devbay", "bays")
BAYS_BESIDE = ".bays"


@dataclass(frozen=True)
class Repository:
    """A repository as seen from one of its checkouts.

    common_dir: absolute, links resolved. main_worktree: None for a bare repository. toplevel: the checkout
    the caller stands in, and git_dir: its git directory.
    """

    common_dir: Path
    main_worktree: Path | None
    toplevel: Path
    git_dir: Path

    @classmethod
    def discover(cls, path: Path, bays: Mapping[Path, Path] | None = None) -> Repository:
        """The repository of any folder in a checkout, a linked worktree or a bay.

        bays: worktree to common directory of bays known to the store; they are found without reading what
        lies in them. Raises `not_a_repository`, `unsafe_repository`.
        """
        path = Path(os.path.realpath(path))
        if not path.is_dir():
            path = path.parent
        if not path.is_dir():
            raise DevbayError("not_a_repository", f"{path} does not exist")
        known = {Path(os.path.realpath(worktree)): common for worktree, common in (bays or {}).items()}
        for folder in reversed([path, *path.parents]):
            if folder in known:
                return cls._of_bay(folder, known[folder])
            if (main := _main_of_bay(folder)) is not None:
                common_dir = cls._discovered(main).common_dir
                if registration(common_dir, folder) is not None:
                    return cls._of_bay(folder, common_dir)
                if folder.parent.name == BAYS_INSIDE[1]:
                    raise DevbayError(
                        "not_a_repository",
                        f"{folder} lies where bays do, but is no worktree of {main}",
                        next=f"go to {main}",
                    )
        return cls._discovered(path)

    @classmethod
    def from_record(cls, common_dir: Path, main_worktree: str | Path | None) -> Repository:
        """A repository that the store knows, seen from its main checkout (bare: from itself)."""
        main = Path(main_worktree) if main_worktree else None
        if not (common_dir / "objects").is_dir():
            raise DevbayError("not_a_repository", f"{common_dir} is no git repository any more")
        return cls(common_dir, main, main or common_dir, common_dir)

    @classmethod
    def _of_bay(cls, worktree: Path, common_dir: Path) -> Repository:
        git_dir = registration(common_dir, worktree)
        if git_dir is None:
            raise DevbayError("not_a_repository", f"{worktree} is no worktree of {common_dir}")
        return cls(common_dir, _main_worktree(common_dir), worktree, git_dir)

    @classmethod
    def _discovered(cls, path: Path) -> Repository:
        query = [
            "rev-parse",
            "--path-format=absolute",
            "--is-bare-repository",
            "--is-inside-git-dir",
            "--git-common-dir",
            "--absolute-git-dir",
        ]
        outcome = run_git(query, cwd=path)
        if outcome.code != 0:
            if "dubious ownership" in outcome.err:
                raise DevbayError(
                    "unsafe_repository",
                    f"{path} lies in a repository of another user",
                    next=f"git config --global --add safe.directory {path}",
                )
            raise DevbayError(
                "not_a_repository",
                f"{path} is not inside a git repository",
                next="git init, or pass `repo`, a path inside a repository",
            )
        lines = os.fsdecode(outcome.out).removesuffix("\n").split("\n")
        if len(lines) != 4:
            raise DevbayError("not_a_repository", f"{path} has a line break in its path")
        bare, in_git_dir, common, git_dir = lines
        common_dir = Path(os.path.realpath(common))
        if bare == "true" or in_git_dir == "true":
            raise DevbayError(
                "not_a_repository",
                f"{path} is a bare repository or a git directory, not a checkout",
                next="git worktree add a checkout, and start there",
            )
        top = run_git(["rev-parse", "--show-toplevel"], cwd=path)
        if top.code != 0:
            raise DevbayError("not_a_repository", f"{path} has no checkout: {top.err.strip()}")
        toplevel = Path(os.path.realpath(os.fsdecode(top.out).removesuffix("\n")))
        own = Path(os.path.realpath(git_dir))
        main = toplevel if own == common_dir else _main_worktree(common_dir)
        return cls(common_dir, main, toplevel, own)

    @cached_property
    def id(self) -> str:
        """16 hex digits of the sha256 of the common directory's path."""
        return hashlib.sha256(os.fsencode(self.common_dir)).hexdigest()[:16]

    @property
    def git(self) -> Git:
        """git for refs and configuration of the whole repository."""
        return Git(self.common_dir)

    def head_commit(self) -> str:
        """The commit of the caller's checkout; raises `no_commits` for an unborn branch."""
        commit = Git(self.git_dir).try_line("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        if commit is None:
            raise DevbayError(
                "no_commits",
                f"{self.toplevel} has no commit yet, so no branch can start from it",
                next="git commit",
            )
        return commit

    def branches(self) -> list[str]:
        """Local branches, by name."""
        return self.git.line("for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads").splitlines()

    def has_branch(self, branch: str) -> bool:
        return self.branch_commit(branch) is not None

    def branch_commit(self, branch: str) -> str | None:
        """The commit a local branch points to, or None."""
        return self.git.try_line("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}^{{commit}}")

    def resolve(self, ref: str) -> str:
        """The commit that `ref` names for the caller; raises `unknown_ref`.

        What names nothing locally may name a branch of exactly one remote.
        """
        git = Git(self.git_dir)
        commit = None
        if not ref.startswith("-"):
            commit = git.try_line(
                "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}"
            ) or (self._remote_commit(ref) if well_formed(git, ref) else None)
        if commit is None:
            raise DevbayError(
                "unknown_ref", f"{ref!r} names no commit in {self.common_dir}", next="git branch --all"
            )
        return commit

    def _remote_commit(self, ref: str) -> str | None:
        found = self.remote_branches(ref)
        return next(iter(found.values())) if len(found) == 1 else None

    def remote_branches(self, branch: str) -> dict[str, str]:
        """Remote-tracking refs of a branch (`refs/remotes/<remote>/<branch>`) to their commits."""
        found = {}
        for remote in self.git.line("remote").splitlines():
            ref = f"refs/remotes/{remote}/{branch}"
            commit = self.git.try_line("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
            if commit is not None:
                found[ref] = commit
        return found

    def branch_checked_out_at(self, branch: str) -> Path | None:
        """The checkout that has the branch, bays included; None if none has."""
        ref = f"refs/heads/{branch}"
        listed = self.git.line("for-each-ref", "--format=%(refname) %(worktreepath)", ref)
        for line in listed.splitlines():
            name, _, path = line.partition(" ")
            if name == ref and path:
                # git names the main checkout of a submodule or a separate git directory by the latter.
                return self.main_worktree if Path(path) == self.common_dir else Path(path)
        return None


def well_formed(git: Git, branch: str) -> bool:
    """Whether `branch` can name a branch, and cannot be taken for an option or a shorthand."""
    if branch.startswith("-") or branch in ("HEAD", "@") or "\0" in branch:
        return False
    return git.run("check-ref-format", f"refs/heads/{branch}").code == 0


def registration(common_dir: Path, worktree: Path) -> Path | None:
    """The git directory under which a linked worktree is registered, found by its backlink."""
    return next((git_dir for git_dir, path in registrations(common_dir) if path == worktree), None)


def registrations(common_dir: Path) -> Iterator[tuple[Path, Path]]:
    """(git directory, worktree) of every registered linked worktree, present or not."""
    folder = common_dir / "worktrees"
    if not folder.is_dir():
        return
    for git_dir in sorted(folder.iterdir()):
        try:
            backlink = os.fsdecode((git_dir / "gitdir").read_bytes()).strip()
        except (FileNotFoundError, NotADirectoryError):
            continue
        # Relative since git 2.48 with worktree.useRelativePaths.
        yield git_dir, Path(os.path.normpath(git_dir / backlink)).parent


def _main_of_bay(folder: Path) -> Path | None:
    """The main checkout that would own `folder` if it is a bay of the layouts inside or beside."""
    parent = folder.parent
    if parent.name == BAYS_INSIDE[1] and parent.parent.name == BAYS_INSIDE[0]:
        main = parent.parent.parent
    elif parent.name.endswith(BAYS_BESIDE) and parent.name != BAYS_BESIDE:
        main = parent.with_name(parent.name.removesuffix(BAYS_BESIDE))
    else:
        return None
    return main if os.path.lexists(main / ".git") else None


def _main_worktree(common_dir: Path) -> Path | None:
    """The main checkout of a common directory, without discovery; None if it is bare or not to be found."""
    git = Git(common_dir)
    if git.try_line("config", "--type=bool", "core.bare") == "true":
        return None
    if (configured := git.try_line("config", "core.worktree")) is not None:
        place = Path(os.path.realpath(common_dir / configured))
        return place if place.is_dir() else None
    return common_dir.parent if common_dir.name == ".git" else None

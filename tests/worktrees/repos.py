"""Real git, as the tests of worktrees use it."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from devbay.worktrees import Created, Repository


def git(cwd: Path, *args: str) -> str:
    """Plain git, as a person at a terminal runs it."""
    done = subprocess.run(["git", *args], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, f"git {args}: {done.stderr}"
    return done.stdout.rstrip("\n")


def commit(cwd: Path, **files: str) -> str:
    """Write files (`_` in a name stands for a dot), commit them, return the commit."""
    for name, text in files.items():
        path = cwd / name.replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        git(cwd, "add", "--", str(path))
    git(cwd, "commit", "-q", "--allow-empty", "-m", f"add {' '.join(files)}")
    return git(cwd, "rev-parse", "HEAD")


@dataclass
class Made:
    """A bay made on a repository."""

    repository: Repository
    created: Created

    @property
    def path(self) -> Path:
        return self.created.path

    @property
    def git_dir(self) -> Path:
        return self.created.git_dir

    @property
    def submodules(self) -> dict[str, Path]:
        return dict(self.created.submodules)

"""Runs git where a container may have written: every directory is named, nothing is discovered.

What a container or a tracked file could make git run on the host, and what is done about it:

* `.git` rewritten to name another git directory: never read; `--git-dir` and `GIT_COMMON_DIR` are given.
* `commondir` rewritten: refused, since git reads refs by it even where `GIT_COMMON_DIR` says otherwise.
* `core.worktree` rewritten: overridden by `--work-tree`.
* `core.fsmonitor`, `core.hooksPath`, pagers, editors, prompts, signature programs: overridden.
* `diff.external`, `textconv`: nothing here asks for a patch, and nothing else runs them.
* filters: those of the user's own configuration (system, global, repository) may run, as they do when the
  user runs git; those of `config.worktree`, which `git: rw` leaves closest to a container, are emptied.
  Attributes, which a container writes freely, can only choose among the former.
* `core.sshCommand`, `remote.*.uploadpack`, remote helpers through a lazy fetch: no protocol is allowed
  unless the caller says `network=True`.
* submodules: never recursed into; each is asked by itself with its own git directory.
* the index's file system monitor and untracked cache: ignored, so that they hide nothing.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from devbay.errors import DevbayError
from devbay.jobs import Job

OVERRIDES = {
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.untrackedCache": "false",
    "core.alternateRefsCommand": "",
    "core.askPass": "",
    "core.editor": ":",
    "core.quotePath": "false",
    "color.ui": "false",
    "diff.ignoreSubmodules": "all",
    "gc.auto": "0",
    "log.showSignature": "false",
    "maintenance.auto": "false",
    "status.submoduleSummary": "false",
    "submodule.recurse": "false",
}
ENVIRONMENT = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "",
    "SSH_ASKPASS_REQUIRE": "never",
    "GIT_PAGER": "cat",
    "GIT_LITERAL_PATHSPECS": "1",
    "LC_ALL": "C",
}
OFFLINE = {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1"}
FOR_NETWORK = {"GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH"}
FILTER_KEYS = {"clean": "", "smudge": "", "process": "", "required": "false"}
QUICK, LONG = 60.0, 1800.0


@dataclass(frozen=True)
class Outcome:
    """How a git command ended; `out` is raw, `err` is text."""

    code: int
    out: bytes
    err: str


def common_dir_of(git_dir: Path) -> Path:
    """The common directory of a git directory, from its place alone (its `commondir` is not trusted)."""
    return git_dir.parent.parent if git_dir.parent.name == "worktrees" else git_dir


class Git:
    """git for one git directory and, where files matter, one work tree."""

    def __init__(self, git_dir: Path, work_tree: Path | None = None) -> None:
        self.git_dir = git_dir
        self.work_tree = work_tree
        self.common_dir = common_dir_of(git_dir)

    def run(
        self,
        *args: str,
        stdin: bytes | None = None,
        timeout_s: float = QUICK,
        network: bool = False,
        filters: bool = True,
        env: dict[str, str] | None = None,
        job: Job | None = None,
    ) -> Outcome:
        """Run `git <args>` to its end, whatever its exit code.

        filters: False empties every filter driver. Raises `git_timeout` after `timeout_s`, `git_missing`,
        and `Cancelled` when the job is; the whole process group is killed then.
        """
        where = [f"--git-dir={self.git_dir}"]
        extra = dict(env or {})
        if self.work_tree is not None:
            where.append(f"--work-tree={self.work_tree}")
        if self.common_dir != self.git_dir:
            self._check_commondir()
            extra["GIT_COMMON_DIR"] = str(self.common_dir)
        emptied = self._untrusted_filters if filters else self._all_filters
        pairs = [(f"filter.{name}.{key}", value) for name in emptied for key, value in FILTER_KEYS.items()]
        return run_git(
            [*where, *args],
            cwd=self.work_tree or self.git_dir,
            stdin=stdin,
            timeout_s=timeout_s,
            network=network,
            env={**extra, **config_env(pairs)},
            job=job,
        )

    def out(self, *args: str, **options: Any) -> bytes:
        """What `git <args>` printed; raises `git_failed` unless it ended with 0. Options as for `run`."""
        outcome = self.run(*args, **options)
        if outcome.code != 0:
            raise git_failed(args, outcome)
        return outcome.out

    def line(self, *args: str, **options: Any) -> str:
        """The same as one line of text."""
        return os.fsdecode(self.out(*args, **options)).rstrip("\n")

    def try_line(self, *args: str, **options: Any) -> str | None:
        """One line of text, or None if git ended with another code than 0."""
        outcome = self.run(*args, **options)
        return os.fsdecode(outcome.out).rstrip("\n") if outcome.code == 0 else None

    def records(self, *args: str, **options: Any) -> list[str]:
        """What a command with `-z` printed, split at its NULs."""
        return split_nul(self.out(*args, **options))

    def _check_commondir(self) -> None:
        try:
            said = (self.git_dir / "commondir").read_text(errors="replace").strip()
        except OSError as error:
            said = os.strerror(error.errno or 0)
        if os.path.normpath(self.git_dir / said) != str(self.common_dir):
            raise DevbayError(
                "tampered",
                f"{self.git_dir / 'commondir'} does not name {self.common_dir}",
                next=f"write '../..' to {self.git_dir / 'commondir'}",
                exit_code=1,
            )

    @cached_property
    def _configured_filters(self) -> list[tuple[str, str]]:
        """(scope, driver) of every filter in the configuration."""
        query = ["config", "--show-scope", "--null", "--name-only", "--get-regexp", r"^filter\..*\."]
        outcome = run_git(
            [f"--git-dir={self.git_dir}", *query],
            cwd=self.git_dir,
            env={"GIT_COMMON_DIR": str(self.common_dir)} if self.common_dir != self.git_dir else {},
        )
        if outcome.code > 1:
            raise git_failed(query, outcome)
        fields = split_nul(outcome.out)
        return [
            (scope, key.split(".", 1)[1].rsplit(".", 1)[0])
            for scope, key in zip(fields[::2], fields[1::2], strict=True)
        ]

    @cached_property
    def _untrusted_filters(self) -> list[str]:
        try:
            if (self.git_dir / "config.worktree").lstat().st_size == 0:
                return []
        except FileNotFoundError:
            return []
        return sorted({name for scope, name in self._configured_filters if scope == "worktree"})

    @cached_property
    def _all_filters(self) -> list[str]:
        return sorted({name for _, name in self._configured_filters})


def split_nul(raw: bytes) -> list[str]:
    """NUL-terminated records as file system text."""
    return [os.fsdecode(item) for item in raw.split(b"\0") if item]


def config_env(pairs: list[tuple[str, str]]) -> dict[str, str]:
    """git configuration as environment (`GIT_CONFIG_COUNT`, git 2.31): keys may hold any character."""
    if not pairs:
        return {}
    env = {"GIT_CONFIG_COUNT": str(len(pairs))}
    for number, (key, value) in enumerate(pairs):
        env[f"GIT_CONFIG_KEY_{number}"] = key
        env[f"GIT_CONFIG_VALUE_{number}"] = value
    return env


def git_failed(args: Any, outcome: Outcome) -> DevbayError:
    """The error for a git command that ended badly, with what git said."""
    said = re.sub(r"(?m)^(fatal|error): ", "", outcome.err.strip())
    verb = next((arg for arg in args if not arg.startswith("-")), "")
    return DevbayError(
        "git_failed",
        f"git {verb} ended with {outcome.code}: {said[-600:] or 'no message'}",
        exit_code=1,
        git_error=said[-2000:],
    )


def run_git(
    args: list[str],
    *,
    cwd: Path,
    stdin: bytes | None = None,
    timeout_s: float = QUICK,
    network: bool = False,
    env: dict[str, str] | None = None,
    job: Job | None = None,
) -> Outcome:
    """Run git in `cwd` with devbay's overrides, none of the caller's `GIT_*` variables, and no shell."""
    if job is not None:
        job.check()
    if not cwd.is_dir():  # GitPython would run git in the daemon's own folder instead
        raise DevbayError("git_failed", f"{cwd} is not there", exit_code=1)
    try:
        from git.cmd import Git as Launcher  # GitPython looks for git when it is imported
    except ImportError as error:
        raise DevbayError(
            "git_missing", "git is not on the PATH", next="install git 2.34 or newer", exit_code=1
        ) from error
    kept = FOR_NETWORK if network else frozenset[str]()
    foreign = [name for name in os.environ if name.startswith("GIT_") and name not in kept]
    cleaner = ["env", *(word for name in foreign for word in ("-u", name))] if foreign else []
    given = {**ENVIRONMENT, **({} if network else OFFLINE), **(env or {})}
    # GitPython's `execute` adds to the daemon's environment but cannot take from it: `env -u` does, and
    # sets again what is ours.
    if cleaner:
        cleaner += [f"{name}={value}" for name, value in given.items() if name in foreign]
    options = [word for key, value in OVERRIDES.items() for word in ("-c", f"{key}={value}")]
    command = [*cleaner, Launcher.GIT_PYTHON_GIT_EXECUTABLE, "--no-pager", *options, *args]
    held: Any = Launcher(str(cwd)).execute(
        command,
        as_process=True,
        istream=subprocess.PIPE if stdin is not None else None,
        env=given,
        start_new_session=True,
    )
    process: subprocess.Popen[bytes] = held.proc  # `held` ends the process when it is let go

    def kill() -> None:
        if process.returncode is None:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                return

    try:
        if job is None:
            out, err = process.communicate(stdin, timeout=timeout_s)
        else:
            with job.when_cancelled(kill):
                out, err = process.communicate(stdin, timeout=timeout_s)
            job.check()
    except subprocess.TimeoutExpired as error:
        kill()
        process.communicate()
        verb = next((arg for arg in args if not arg.startswith("-")), "")
        raise DevbayError(
            "git_timeout", f"git {verb} in {cwd} did not end within {timeout_s:g} s", exit_code=1
        ) from error
    except BaseException:
        kill()
        process.wait()
        raise
    return Outcome(process.returncode, out, err.decode("utf-8", "replace"))

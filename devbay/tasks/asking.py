"""A run's command as it is started: what is asked of the runner, and which tests it is told to run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from devbay.answers import Failure
from devbay.errors import DevbayError
from devbay.runners.commands import Command, Read, commands
from devbay.runners.selectors import NoSelector
from devbay.runners.table import Ask, Runner, Situation, runner_of
from devbay.tasks.artifacts import ReportPlace
from devbay.worktrees import beneath

WORKSPACE = "/workspace"
MAX_READ = 1024 * 1024


@dataclass(frozen=True)
class Asked:
    """argv and env: what the container gets. files: what they need, by path in the run's folder."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    ask: Ask | None = None

    def places(self, worktree: Path, run_dir: Path) -> list[ReportPlace]:
        """Where the reports that were asked for will be."""
        if self.ask is None:
            return []
        inside = self.ask.in_worktree
        prefix = "" if inside else "${run.dir}/"
        return [
            ReportPlace(
                self.ask.format,
                worktree if inside else run_dir,
                PurePosixPath(pattern),
                inside,
                prefix + pattern,
            )
            for pattern in self.ask.reports
        ]


def asked(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    folder: str,
    run_dir: str,
    read: Read,
    report: bool,
    only: Sequence[Failure] = (),
) -> Asked:
    """Prepare a command. Pure but for `read`.

    env: of the container. folder: where it starts, relative to the worktree. report: ask for one. only: run
    these tests. Raises `no_selector`.
    """
    result = Asked(tuple(argv))
    known = runner_of(commands(argv, folder, read))
    if known is not None and report and known[0].ask is not None:
        result = _with_report(result, known[0], Situation(known[1], env, run_dir, read))
    return _with_selection(result, known, env, run_dir, only) if only else result


def _with_report(before: Asked, runner: Runner, at: Situation) -> Asked:
    ask = runner.ask(at) if runner.ask is not None else None
    argv = at.command.given(before.argv, ask.args, ask.skip) if ask and ask.args else before.argv
    if ask is None or argv is None:
        return before
    return Asked(argv, ask.env, ask.files, ask)


def _with_selection(
    before: Asked,
    known: tuple[Runner, Command] | None,
    env: Mapping[str, str],
    run_dir: str,
    only: Sequence[Failure],
) -> Asked:
    if known is None:
        raise _no_selector("it is no runner that devbay knows, or several")
    runner, command = known
    if runner.select is None:
        raise _no_selector(f"devbay knows no way to hand tests to {runner.name}")
    try:
        selection = runner.select(command, {**env, **before.env}, run_dir, only)
    except NoSelector as error:
        raise _no_selector(str(error)) from error
    argv = command.given(before.argv, selection.args, selection.skip) if selection.args else before.argv
    if argv is None:
        raise _no_selector(f"arguments of the task do not reach {runner.name}")
    return Asked(argv, {**before.env, **selection.env}, {**before.files, **selection.files}, before.ask)


def _no_selector(why: str) -> DevbayError:
    return DevbayError(
        "no_selector",
        f"the last failures cannot be given to this task's command: {why}",
        next="run the whole task, or name the tests in `args`",
    )


def reader(worktree: Path) -> Read:
    """Files of the worktree as text; none that is a link, too large or not to be read."""

    def read(relative: str) -> str | None:
        try:
            with beneath.open_regular(worktree, relative) as descriptor:
                if descriptor is None:
                    return None
                with os.fdopen(os.dup(descriptor), "rb") as file:
                    data = file.read(MAX_READ + 1)
        except (OSError, DevbayError):  # what cannot be read says nothing of the command
            return None
        return data.decode("utf-8", "replace") if len(data) <= MAX_READ else None

    return read


def start_folder(workdir: str | None, worktree: Path) -> str:
    """Where a container starts, relative to the worktree; its root where that is not known."""
    for top in (str(worktree), WORKSPACE):
        if workdir and f"{workdir}/".startswith(f"{top}/"):
            return workdir[len(top) :].strip("/")
    return ""


def put_files(files: Mapping[str, str], run_dir: Path) -> None:
    """Write what a runner needs into the run's folder, for whoever the task runs as."""
    for relative, text in files.items():
        path = run_dir / relative
        for folder in reversed(path.relative_to(run_dir).parents[:-1]):
            (run_dir / folder).mkdir(exist_ok=True)
            (run_dir / folder).chmod(0o777)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o666)

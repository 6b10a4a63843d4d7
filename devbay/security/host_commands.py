"""What runs on this machine itself and so waits for a person: commands, with the scripts that they name."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence

from devbay.manifest import Capability, Container, Manifest
from devbay.manifest.capabilities import capability
from devbay.manifest.onhost import asked_of, commands, scripts_of_first_start
from devbay.security.display import excerpt, plain
from devbay.security.named_scripts import Files, Named, named_scripts, whole_files

SHOWN_LINES = 12
SHOWN_WIDTH = 140
SHOWN_COMMAND = 4000
SHOWN_SCRIPTS = 20

_DECIDING = re.compile(
    r"PATH|ENV|SHELL|SHELLOPTS|BASHOPTS|IFS|PS4|PROMPT_COMMAND|BASH_.*|ZDOTDIR|LD_.*|DYLD_.*"
    r"|PYTHON(PATH|STARTUP|HOME|BREAKPOINT)|NODE_(OPTIONS|PATH)|RUBY(OPT|LIB)|PERL5(OPT|LIB|DB)"
    r"|.*JAVA_.*OPTIONS|MAKE(FILES|FLAGS)|GNUMAKEFLAGS|JUST_.*|(npm_config|NPM_CONFIG)_.*|GIT_.*"
    r"|EDITOR|VISUAL|PAGER|PHP_INI_.*"
)
"""Variables that decide which program a word names, or what a program runs besides."""

_TAKES_COMMANDS = frozenset(
    {"sh", "bash", "dash", "ash", "zsh", "ksh", "env", "xargs", "exec", "command", "nice", "nohup", "time"}
)
_TAKES_RECIPES = frozenset({"make", "gmake", "just"})


def host_capabilities(manifest: Manifest, files: Files, *, whole: bool) -> list[Capability]:
    """One for each service and task that runs something of the user's on this machine.

    whole: the bay's services run here; else only tasks `in: host` do. A key covers every argv, the variables
    that change their meaning, and the scripts they name as they are now.
    """
    found: list[Capability] = []
    for service, task, part in asked_of(manifest, whole=whole):
        folder = _folder(manifest, task, part)
        scripts = _scripts(part, folder, files)
        path = f"services/{service}" if service else f"tasks/{task}"
        found.append(
            capability(
                "host", path, service, task, f"{service or f'task {task}'}: runs on this machine",
                "\n".join(_shown(part, folder, scripts)), _content(part, folder, scripts),
            )
        )  # fmt: skip
    return found


def not_covered(manifest: Manifest, task: str, args: Sequence[str], files: Files) -> list[str]:
    """What further arguments have a task run that its approval does not cover: recipes, scripts, commands."""
    part = manifest.tasks[task]
    folder = _folder(manifest, task, part)
    if not args:
        return []
    programs = {posixpath.basename(word) for word in part.run}
    options = [each for each in args if each.startswith("-") or "=" in each]
    if posixpath.basename(part.run[-1]) in _TAKES_COMMANDS or (programs & _TAKES_RECIPES and options):
        return [plain(shlex.join(args))]
    covered = {each.label for each in named_scripts([part.run], folder, files)}
    named = named_scripts([(*part.run, *args)], folder, files)
    return [plain(each.label) for each in named if each.label not in covered]


def _scripts(part: Container, folder: str, files: Files) -> list[Named]:
    """What the commands of a service or task name, and what its database runs when its data is made."""
    found = named_scripts(list(commands(part).values()), folder, files)
    for mount in scripts_of_first_start(part):
        if mount.source.startswith("/"):
            found.append(Named(mount.source, "", note="lies outside of the worktree: it is not covered"))
        else:
            found += whole_files(posixpath.normpath(mount.source), files)
    return found


def _folder(manifest: Manifest, task: str | None, part: Container) -> str:
    """Where the commands start, relative to the worktree: a task without a folder has its service's."""
    workdir = part.workdir
    host = manifest.task_service(task) if task is not None and workdir is None else None
    if host is not None:
        workdir = manifest.services[host].workdir
    workdir = posixpath.normpath(workdir or "/workspace")
    return workdir.removeprefix("/workspace").strip("/") if f"{workdir}/".startswith("/workspace/") else ""


def _content(part: Container, folder: str, scripts: Sequence[Named]) -> object:
    return {
        "commands": {key: list(argv) for key, argv in commands(part).items()},
        "env": dict(sorted(_deciding(part).items())),
        "folder": folder,
        "scripts": [[each.label, each.digest, each.note] for each in scripts],
    }


def _deciding(part: Container) -> dict[str, str]:
    return {name: value for name, value in part.env.items() if _DECIDING.fullmatch(name)}


def _shown(part: Container, folder: str, scripts: Sequence[Named]) -> Iterator[str]:
    """The commands as a person would type them, then each script with its first lines."""
    if folder:
        yield plain(f"in the folder {folder}")
    lead = "".join(f"{name}={shlex.quote(value)} " for name, value in _deciding(part).items())
    for key, argv in commands(part).items():
        words = lead + shlex.join(argv)
        cut = words if len(words) <= SHOWN_COMMAND else f"{words[:SHOWN_COMMAND]} ... (cut)"
        first, *rest = plain(cut).split("\n")
        yield f"{key + ':':<12}{first}"
        yield from (f"{'':<12}{line}" for line in rest)
    for each in scripts[:SHOWN_SCRIPTS]:
        yield f"{plain(each.label)} {each.note}".rstrip()
        if each.text:
            yield from (f"  | {line}" for line in excerpt(each.text, lines=SHOWN_LINES, width=SHOWN_WIDTH))
    if more := scripts[SHOWN_SCRIPTS:]:
        yield f"and {len(more)} more: {', '.join(plain(each.label) for each in more)}"

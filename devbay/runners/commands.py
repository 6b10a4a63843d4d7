"""Which programs an argv comes down to, behind package managers, environments, shells and recipes. Pure.

`npm test`, `uv run pytest`, `make check` and `sh -c "cd web && jest"` name a runner only in files or text;
the files are read through a function that is given, confined to the worktree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from posixpath import basename, join, normpath

from devbay.runners.recipes import just_recipe, make_recipe, package_script
from devbay.runners.shell import simple_commands

Read = Callable[[str], str | None]
"""The text of a file, by its path relative to the worktree; None if there is none."""

MAX_DEPTH = 8
MAX_COMMANDS = 50
ALL = "*"
"""In `Command.sets`: the environment is cleared on the way."""


@dataclass(frozen=True)
class Command:
    """A program and its arguments. words: the program's bare name first.

    folder: where it starts, relative to the worktree. sets: variables set for it on the way. at: the
    program's place in the argv, where it stands there. after: what comes between the argv and further
    arguments of the program, where these reach it at the argv's end; None if they do not.
    """

    words: tuple[str, ...]
    folder: str = ""
    sets: frozenset[str] = frozenset()
    at: int | None = None
    after: tuple[str, ...] | None = None

    @property
    def program(self) -> str:
        return self.words[0]

    def given(self, argv: Sequence[str], own: Sequence[str], skip: int = 0) -> tuple[str, ...] | None:
        """The argv with further arguments, after `skip` words of the program's; None if it cannot get any."""
        if self.at is not None:
            place = self.at + 1 + skip
            return (*argv[:place], *own, *argv[place:])
        if self.after is not None:
            lead = () if self.after and "--" in argv else self.after
            return (*argv, *lead, *own)
        return None


# Wrappers that run what follows, and those of their options that take the next word.
_PREFIXES: dict[tuple[str, ...], frozenset[str]] = {
    ("npx",): frozenset({"-p", "--package"}),
    ("bunx",): frozenset({"-p", "--package"}),
    ("pnpx",): frozenset({"-p", "--package"}),
    ("npm", "exec"): frozenset({"-p", "--package"}),
    ("npm", "x"): frozenset({"-p", "--package"}),
    ("pnpm", "exec"): frozenset(),
    ("pnpm", "dlx"): frozenset({"--package"}),
    ("yarn", "exec"): frozenset(),
    ("yarn", "dlx"): frozenset({"-p", "--package"}),
    ("bun", "x"): frozenset({"-p", "--package"}),
    ("uv", "run"): frozenset(
        {"--with", "--with-editable", "--with-requirements", "--extra", "--group", "--only-group",
         "--no-group", "-p", "--python", "--package", "--env-file", "--index", "--default-index"}
    ),
    ("poetry", "run"): frozenset(),
    ("pipenv", "run"): frozenset(),
    ("pdm", "run"): frozenset({"-p", "--project"}),
    ("hatch", "run"): frozenset(),
    ("rye", "run"): frozenset(),
    ("bundle", "exec"): frozenset(),
    ("xvfb-run",): frozenset({"-s", "--server-args", "-n", "--server-num", "-e", "-f", "-w"}),
    ("exec",): frozenset(),
    ("command",): frozenset(),
    ("time",): frozenset(),
    ("nice",): frozenset({"-n"}),
    ("stdbuf",): frozenset({"-i", "-o", "-e"}),
    ("tini",): frozenset(),
    ("dumb-init",): frozenset(),
    ("c8",): frozenset({"-r", "--reporter", "-x", "--exclude", "-n", "--include", "-o", "--reports-dir"}),
    ("nyc",): frozenset({"-r", "--reporter", "-x", "--exclude", "-n", "--include"}),
    ("php",): frozenset({"-d", "-c"}),
    ("ruby",): frozenset({"-I", "-r"}),
}  # fmt: skip
_SHELLS = {"sh", "bash", "dash", "ash", "zsh", "busybox"}
_PYTHON = re.compile(r"(python|pypy)[0-9.]*")
_MANAGERS = {"npm", "pnpm", "yarn", "bun"}
_MANY = {"-w", "--workspace", "--workspaces", "-ws", "-r", "--recursive", "--filter", "-F", "workspace",
         "workspaces", "foreach"}  # fmt: skip
_FOLDER_OPTIONS = {"--prefix", "-C", "--cwd", "--dir"}
_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_JUSTFILES = ("justfile", "Justfile", ".justfile")


def commands(argv: Sequence[str], folder: str, read: Read) -> list[Command]:
    """The programs that an argv comes down to, in order; none where that is not plain.

    folder: where it starts, relative to the worktree.
    """
    if not argv:
        return []
    return _unwrapped(Command(tuple(argv), folder, at=0), read, 0)[:MAX_COMMANDS]


def _unwrapped(command: Command, read: Read, depth: int) -> list[Command]:
    if depth > MAX_DEPTH or not command.words:
        return []
    command = replace(command, words=(basename(command.words[0]), *command.words[1:]))
    inner = _inside(command, read)
    if inner is None:
        return [command]
    return [found for each in inner for found in _unwrapped(each, read, depth + 1)]


def _inside(command: Command, read: Read) -> list[Command] | None:
    """What a wrapper runs; None if this is none."""
    program = command.program
    if program in _SHELLS:
        return _shell(command)
    if _PYTHON.fullmatch(program) or command.words[:2] == ("coverage", "run"):
        return _python(command)
    if program == "env" or program == "cross-env":
        return _env(command)
    if program == "timeout":
        start = _skip(command.words, 1, frozenset({"-k", "-s", "--kill-after", "--signal"}))
        return [_from(command, start + 1)]
    if program == "make" or program == "gmake":
        return _make(command, read)
    if program == "just":
        return _just(command, read)
    for size in (2, 1):
        valued = _PREFIXES.get(command.words[:size])
        if valued is not None:
            return _prefix(command, size, valued)
    if program in _MANAGERS and command.words[:2] != ("bun", "test"):
        return _script(command, read)
    if program == "node" and len(command.words) > 1 and "node_modules/" in command.words[1]:
        return [_from(command, 1)]
    return None


def _from(command: Command, start: int) -> Command:
    """The command that begins at a word."""
    at = command.at + start if command.at is not None else None
    return replace(command, words=command.words[start:], at=at)


def _skip(words: Sequence[str], start: int, valued: frozenset[str]) -> int:
    """The place of the first word that is no option; `--` ends options."""
    while start < len(words) and words[start].startswith("-") and words[start] != "-":
        if words[start] == "--":
            return start + 1
        start += 2 if words[start] in valued else 1
    return start


def _prefix(command: Command, start: int, valued: frozenset[str]) -> list[Command]:
    words = command.words
    end = _skip(words, start, valued)
    if words[0] == "uv" and {"-m", "--module"} & set(words[start:end]):
        return [_from(command, end)]
    if {"--directory", "--project", "-C", "-c", "--call", *_MANY} & set(words[start:end]):
        return []
    inner = _from(command, end)
    if words[0] == "hatch" and inner.words:
        inner = replace(inner, words=(inner.words[0].rpartition(":")[2], *inner.words[1:]))
    return [inner]


def _python(command: Command) -> list[Command] | None:
    """`python -m MODULE` as the module's own command, and a script as a program."""
    words, place = command.words, 2 if command.words[0] == "coverage" else 1
    valued = frozenset({"-W", "-X", "--source", "--rcfile", "--data-file", "--include", "--omit"})
    while place < len(words) and words[place].startswith("-"):
        if words[place] in ("-m", "--module"):
            return [_from(command, place + 1)]
        if words[place] == "-c":
            return None
        place += 2 if words[place] in valued else 1
    return [_from(command, place)] if place < len(words) else None


def _env(command: Command) -> list[Command]:
    words, place, sets = command.words, 1, set(command.sets)
    while place < len(words):
        word = words[place]
        if word in ("-i", "-", "--ignore-environment"):
            sets.add(ALL)
        elif word in ("-u", "--unset", "-C", "--chdir", "-S", "--split-string"):
            return []
        elif "=" in word and not word.startswith("-"):
            sets.add(word.partition("=")[0])
        elif not word.startswith("-"):
            break
        place += 1
    return [replace(_from(command, place), sets=frozenset(sets))]


def _shell(command: Command) -> list[Command] | None:
    """`sh -c TEXT`; a script file is a program of its own."""
    for place, word in enumerate(command.words[1:], 1):
        if re.fullmatch(r"-[a-z]*c", word):
            text = command.words[place + 1] if place + 1 < len(command.words) else ""
            return _text(text, replace(command, at=None, after=None))
        if not word.startswith("-") and word != "sh":
            return None
    return None


def _text(text: str, command: Command) -> list[Command]:
    """The commands of a shell's text, in the folder and with the variables of the one that runs it."""
    found = simple_commands(text)
    if found is None:
        return []
    inner = []
    for each in found:
        folder = _below(command.folder, each.folder) if each.folder is not None else None
        if folder is None:
            return []
        after = command.after if each.last else None
        inner.append(Command(each.words, folder, command.sets | each.sets, None, after))
    return inner


def _below(folder: str, relative: str) -> str | None:
    """A folder of the worktree, `""` for its root; None outside."""
    moved = normpath(join(folder or ".", relative.lstrip("/") or ".")) if relative else folder
    if moved == "..":
        return None
    return None if moved.startswith("../") else ("" if moved == "." else moved)


def _script(command: Command, read: Read) -> list[Command] | None:
    """`npm test`, `pnpm run NAME`, `yarn NAME`: the script's text in package.json, or a package's program."""
    manager, words = command.program, list(command.words)
    folder: str | None = command.folder
    place = 1
    names: list[str] = []
    while place < len(words) and words[place] != "--" and (not names or names == ["run"]):
        word = words[place]
        if word in _MANY or word.startswith(("--workspace=", "--filter=")):
            return []
        if word in _FOLDER_OPTIONS and place + 1 < len(words):
            folder = _below(folder or "", words[place + 1])
            place += 1
        elif not word.startswith("-"):
            names.append("run" if word == "run-script" else word)
        place += 1
    if folder is None:
        return []
    if not names:
        return None
    if manager == "npm" and names[0] in ("t", "tst"):
        names = ["test"]
    if manager == "npm" and names[0] not in ("run", "test"):
        return None
    name = names[-1]
    text = package_script(read(join(folder, "package.json")) or "", name)
    if text is None:  # yarn, pnpm and bun also run the programs of packages by their names
        return [_from(command, place - 1)] if manager != "npm" and name not in ("run", "test") else []
    after = ("--",) if manager == "npm" else ()
    reached = command.at is not None or command.after is not None
    scripted = replace(command, folder=folder, at=None, after=after if reached else None)
    found = _text(text, scripted)
    if "\n" in text:  # further words go to the script's own line, not to `post...`
        return [replace(each, after=None) for each in found]
    if found and found[-1].after is not None:
        further = words[place + 1 :] if words[place : place + 1] == ["--"] else words[place:]
        found[-1] = replace(found[-1], words=(*found[-1].words, *further))
    return found


def _make(command: Command, read: Read) -> list[Command]:
    valued = {"-f", "--file", "--makefile", "-I", "-o", "-W", "-l", "-j"}
    words, folder = command.words, command.folder
    files: tuple[str, ...] = _MAKEFILES
    targets: list[str | None] = []
    place = 1
    while place < len(words):
        word, following = words[place], words[place + 1] if place + 1 < len(words) else ""
        if word in ("-C", "--directory"):
            moved = _below(folder, following)
            if moved is None:
                return []
            folder, place = moved, place + 1
        elif word in ("-f", "--file", "--makefile"):
            files, place = (following,), place + 1
        elif word in valued and (word != "-j" or following.isdigit()):
            place += 1
        elif not word.startswith("-") and "=" not in word:
            targets.append(word)
        place += 1
    text = next(filter(None, (read(join(folder, name)) for name in files)), None)
    found: list[Command] = []
    for target in targets or [None]:
        recipe = make_recipe(text or "", target)
        found += _lines(recipe or "", replace(command, folder=folder, at=None, after=None))
    return found


def _just(command: Command, read: Read) -> list[Command]:
    place = _skip(command.words, 1, frozenset({"-f", "--justfile", "-d", "--working-directory", "--set"}))
    if place > 1 and {"-f", "--justfile", "-d", "--working-directory"} & set(command.words[1:place]):
        return []
    text = next(filter(None, (read(join(command.folder, name)) for name in _JUSTFILES)), None)
    recipe = just_recipe(text or "", command.words[place] if place < len(command.words) else None)
    return _lines(recipe or "", replace(command, at=None, after=None))


def _lines(recipe: str, command: Command) -> list[Command]:
    """Each line of a recipe is a shell's text of its own."""
    return [each for line in recipe.splitlines() for each in _text(line, command)]

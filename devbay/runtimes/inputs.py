"""Install inputs: the files of the worktree that an `install` may read, and that decide its result."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from devbay.errors import WORK_FAILED, DevbayError

MAX_BYTES = 256 * 1024 * 1024
_NEVER_ENTERED = frozenset({".git", ".devbay", "node_modules", ".venv", "__pycache__"})


@dataclass(frozen=True)
class InputFile:
    """A file as the install sees it. path: relative to the worktree, with `/`."""

    path: str
    data: bytes
    executable: bool


@dataclass(frozen=True)
class Tool:
    """A package manager family.

    commands: words of an argv that mean it. files: patterns in the folder where it runs. nested: a file that
    makes that folder the root of a workspace, the text it must hold, and the members' patterns.
    """

    commands: frozenset[str]
    files: tuple[str, ...]
    nested: tuple[tuple[str, bytes, tuple[str, ...]], ...] = ()


def _tool(commands: str, files: str, *nested: tuple[str, bytes, str]) -> Tool:
    members = tuple((marker, text, tuple(patterns.split())) for marker, text, patterns in nested)
    return Tool(frozenset(commands.split()), tuple(files.split()), members)


TOOLS: tuple[Tool, ...] = (
    _tool(
        "npm npx pnpm pnpx yarn yarnpkg bun bunx corepack node",
        "package.json package-lock.json npm-shrinkwrap.json pnpm-lock.yaml pnpm-workspace.yaml yarn.lock"
        " bun.lock bun.lockb bunfig.toml .npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs .nvmrc .node-version"
        " .yarn/releases/** .yarn/plugins/** .yarn/patches/** patches/**",
        ("package.json", b'"workspaces"', "**/package.json"),
        ("pnpm-workspace.yaml", b"", "**/package.json"),
    ),
    _tool(
        "pip pip3 python python3 uv poetry pipenv pdm",
        "requirements*.txt requirements*.in requirements/** constraints*.txt pyproject.toml setup.py"
        " setup.cfg uv.lock uv.toml poetry.lock poetry.toml pdm.lock Pipfile Pipfile.lock pip.conf"
        " .python-version",
        ("pyproject.toml", b"tool.uv.workspace", "**/pyproject.toml"),
    ),
    _tool(
        "bundle bundler gem ruby",
        "Gemfile Gemfile.lock gems.rb gems.locked *.gemspec .ruby-version .bundle/config",
    ),
    _tool("composer php", "composer.json composer.lock symfony.lock auth.json"),
    _tool("go", "go.mod go.sum go.work go.work.sum", ("go.work", b"", "**/go.mod **/go.sum")),
    _tool(
        "cargo rustup",
        "Cargo.toml Cargo.lock rust-toolchain rust-toolchain.toml .cargo/config .cargo/config.toml",
        ("Cargo.toml", b"[workspace]", "**/Cargo.toml"),
    ),
    _tool(
        "mvn mvnw gradle gradlew",
        "pom.xml mvnw .mvn/** build.gradle* settings.gradle* gradle.properties gradle.lockfile gradlew"
        " gradle/**",
        ("pom.xml", b"<modules>", "**/pom.xml"),
        ("settings.gradle", b"include", "**/build.gradle"),
        ("settings.gradle.kts", b"include", "**/build.gradle.kts"),
    ),
    _tool("mix", "mix.exs mix.lock", ("mix.exs", b"apps_path", "**/mix.exs")),
    _tool(
        "dotnet",
        "*.sln *.slnx *.csproj *.fsproj nuget.config NuGet.config global.json Directory.*.props"
        " packages.lock.json **/*.csproj **/*.fsproj **/packages.lock.json",
    ),
    _tool("dart flutter", "pubspec.yaml pubspec.lock", ("pubspec.yaml", b"workspace:", "**/pubspec.yaml")),
    _tool("deno", "deno.json deno.jsonc deno.lock package.json"),
)


def install_inputs(
    worktree: Path, folder: str, argv: Sequence[str], patterns: Sequence[str]
) -> tuple[InputFile, ...]:
    """The inputs of `argv` run in `folder` (relative to the worktree, `.` for its root), by path.

    With `patterns` (globs relative to the worktree; one that names a folder means all below it) exactly what
    they match. Without: lock and manifest files of the tools the command names (of every tool if it names
    none), in `folder`, in folders that the command names and in the workspace root above; files the command
    names, and what requirement files include. Links are read through. Raises `unsafe_install_input` for
    what leads out of the worktree and `install_inputs_too_big`.
    """
    try:
        if patterns:
            found = [path for pattern in patterns for path in _expand(worktree, PurePosixPath(pattern).parts)]
        else:
            found = _default_inputs(worktree, worktree / folder, argv)
    except OSError as error:
        raise DevbayError(
            "unsafe_install_input", f"the install inputs cannot be listed: {error}", exit_code=WORK_FAILED
        ) from error
    top = worktree.resolve()
    files: dict[str, InputFile] = {}
    size = 0
    for path in found:
        name = PurePosixPath(os.path.normpath(path)).relative_to(worktree).as_posix()
        if name not in files:
            files[name] = _read(path, name, top)
            size += len(files[name].data)
        if size > MAX_BYTES:
            raise DevbayError(
                "install_inputs_too_big",
                f"the install inputs in {worktree} have more than {MAX_BYTES // 2**20} MiB",
                next="name fewer files in `install_inputs`",
                exit_code=WORK_FAILED,
            )
    return tuple(files[name] for name in sorted(files))


def tools_of(argv: Sequence[str]) -> tuple[Tool, ...]:
    """The tools whose commands stand in an argv, also inside a shell's text; all of them if none does."""
    words = {word.rpartition("/")[2] for word in _words(argv)}
    return tuple(tool for tool in TOOLS if tool.commands & words) or TOOLS


def without_scripts(argv: Sequence[str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """The command and the environment that keep packages from running scripts of their own.

    npm, pnpm, yarn and bun get `--ignore-scripts` where they are the command itself; the variables hold where
    a shell or a script calls them. Yarn 2 and later refuse the flag, and honour their variable alone.
    """
    env = {"npm_config_ignore_scripts": "true", "YARN_ENABLE_SCRIPTS": "false", "YARN_IGNORE_SCRIPTS": "true"}
    name = argv[0].rpartition("/")[2]
    if name not in ("npm", "pnpm", "yarn", "bun") or "--ignore-scripts" in argv:
        return tuple(argv), env
    end = argv.index("--") if "--" in argv else len(argv)
    return (*argv[:end], "--ignore-scripts", *argv[end:]), env


def _words(argv: Iterable[str]) -> list[str]:
    return [word for text in argv for word in re.split(r"[\s;&|()<>'\"=]+", text) if word]


def _default_inputs(worktree: Path, folder: Path, argv: Sequence[str]) -> list[Path]:
    tools, found, folders = tools_of(argv), list[Path](), [folder]
    for word in _words(argv):
        named = Path(os.path.normpath(folder / re.sub(r"^-[rc](?=\S)", "", word)))
        if not named.is_relative_to(worktree):
            continue
        if named.is_file():
            found.append(named)
        elif named.is_dir() and named not in folders:
            folders.append(named)
    for place in folders:
        for tool in tools:
            found += _tool_files(place, tool)
        if place.is_relative_to(worktree):
            above = [parent for parent in place.parents if parent.is_relative_to(worktree)]
            for parent, tool in ((parent, tool) for parent in above for tool in tools):
                if _members(parent, tool):
                    found += _tool_files(parent, tool)
    for path in list(found):
        found += _included_requirements(worktree, path)
    return found


def _tool_files(folder: Path, tool: Tool) -> list[Path]:
    patterns = (*tool.files, *_members(folder, tool))
    return [path for pattern in patterns for path in _expand(folder, PurePosixPath(pattern).parts)]


def _members(folder: Path, tool: Tool) -> tuple[str, ...]:
    """The patterns of workspace members, if the folder is the root of a workspace."""
    for marker, text, patterns in tool.nested:
        path = folder / marker
        if path.is_file() and text in path.read_bytes():
            return patterns
    return ()


def _included_requirements(worktree: Path, path: Path) -> Iterator[Path]:
    if path.suffix not in (".txt", ".in") or not path.is_file():
        return
    pending, seen = [path], {path}
    while pending:
        current = pending.pop()
        text = current.read_text("utf-8", "replace")
        for name in re.findall(
            r"^\s*(?:-r|-c|--requirement|--constraint)[ =]?\s*([^\s#]+)", text, re.MULTILINE
        ):
            named = Path(os.path.normpath(current.parent / name))
            if named not in seen and named.is_relative_to(worktree) and named.is_file():
                seen.add(named)
                pending.append(named)
                yield named


def _expand(place: Path, parts: Sequence[str]) -> Iterator[Path]:
    """The files that a pattern's components lead to; `**` follows no links, so that it ends."""
    if not parts:
        if place.is_file():
            yield place
        elif place.is_dir():
            yield from _expand(place, ("**", "*"))
        return
    head, rest = parts[0], parts[1:]
    if head == "**":
        if not rest:
            rest = ("*",)
        yield from (path for path in _expand(place, rest) if path.is_file())
        for entry in _listed(place):
            if entry.is_dir(follow_symlinks=False) and entry.name not in _NEVER_ENTERED:
                yield from _expand(place / entry.name, parts)
    elif any(char in head for char in "*?["):
        for entry in _listed(place):
            if fnmatch.fnmatchcase(entry.name, head) and (rest or entry.is_file()):
                yield from _expand(place / entry.name, rest)
    else:
        yield from _expand(place / head, rest)


def _listed(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _read(path: Path, name: str, top: Path) -> InputFile:
    try:
        if not path.resolve(strict=True).is_relative_to(top):
            raise DevbayError(
                "unsafe_install_input",
                f"the install input {name} is a link that leads out of the worktree",
                next="name the files themselves in `install_inputs`",
                exit_code=WORK_FAILED,
            )
        return InputFile(name, path.read_bytes(), bool(path.stat().st_mode & 0o100))
    except OSError as error:
        raise DevbayError(
            "unsafe_install_input", f"the install input {name} cannot be read: {error}", exit_code=WORK_FAILED
        ) from error

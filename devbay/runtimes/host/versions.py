"""Which versions of a language the machine has: on PATH, and where version managers keep theirs."""

from __future__ import annotations

import functools
import glob
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from devbay.runtimes.host.families import FAMILIES, NUMBERS, Layout, Wanted, numbers_of
from devbay.runtimes.host.machine import TOOLCHAINS, Machine

ASK_TIMEOUT_S = 20
_SETTINGS = (
    ".pyenv/version", ".rbenv/version", ".tool-versions", ".config/mise/config.toml",
    ".volta/tools/user/platform.json", ".rustup/settings.toml", ".nvm/alias/default",
)  # fmt: skip
"""Files of the user's home that decide which version a shim starts."""


@dataclass(frozen=True)
class Installed:
    """One version that is there. origin: a version manager's name, or the folder of PATH it was found in."""

    version: str
    program: Path
    origin: str

    @property
    def numbers(self) -> tuple[int, ...]:
        numbers = numbers_of(self.version)
        return numbers[1:] if numbers[:1] == (1,) and self.program.name == "java" else numbers  # Java 1.8


def on_path(asked: Wanted, machine: Machine) -> Iterator[Installed]:
    """What the family's programs on PATH say of themselves, in the order of names and folders."""
    family = FAMILIES[asked.family]
    seen: set[Path] = set()
    for name in _names(family.programs, asked.numbers):
        for folder in machine.folders:
            program = folder / name
            real = _real(program)
            if real is None or real in seen:
                continue
            seen.add(real)
            for one in _ask(asked.family, program, machine):
                if one.program != program or folder.name != "shims":  # that would be no one's in another home
                    yield Installed(one.version, one.program, _manager(asked.family, one.program, machine))


def kept(family: str, layout: Layout, machine: Machine) -> Iterator[Installed]:
    """What a version manager keeps, newest first, without asking where its folders' names tell."""
    root = machine.folder(layout.variable, layout.default) if layout.variable else _below(layout, machine)
    depth = layout.pattern.split("/").index("*") if "*" in layout.pattern else None
    found: list[Installed] = []
    # not `root.glob`, which raises where the folder is another user's
    for program in sorted(root / name for name in glob.glob(layout.pattern, root_dir=root)):  # noqa: PTH207
        folder = program.relative_to(root).parts[depth] if depth is not None else ""
        if depth is not None and root.joinpath(*program.relative_to(root).parts[: depth + 1]).is_symlink():
            continue  # `3.12 -> 3.12.1`
        if not os.access(program, os.X_OK) or not program.is_file():
            continue
        if layout.name:
            said = re.fullmatch(layout.name, folder)
            found += [Installed(said.group(1), program, layout.origin)] if said else []
        elif version := _release(program):
            found.append(Installed(version, program, layout.origin))
        else:
            found += [
                Installed(one.version, program, layout.origin) for one in _ask(family, program, machine)
            ]
    yield from sorted(found, key=lambda one: one.numbers, reverse=True)


def works(family: str, one: Installed, machine: Machine) -> bool:
    """Whether the program starts and says a version at all: what is left of an uninstalled one does not."""
    return bool(_ask(family, one.program, machine))


def _below(layout: Layout, machine: Machine) -> Path:
    return machine.user_home / layout.default


def _names(patterns: tuple[str, ...], numbers: tuple[int, ...]) -> list[str]:
    """The names that can be spelled with as many numbers as are wanted."""
    names = [
        pattern.format(*numbers)
        for pattern in patterns
        if len(numbers) > 1 or "{1}" not in pattern
        if numbers or "{0}" not in pattern
    ]
    return list(dict.fromkeys(names))


def _real(program: Path) -> Path | None:
    """The file behind a name on PATH; shims of one manager are one file each, or links to one, by name."""
    if not (os.access(program, os.X_OK) and program.is_file()):
        return None
    real = program.resolve()
    return real if real.name.startswith(program.name[:2]) else program


def _manager(family: str, program: Path, machine: Machine) -> str:
    """The version manager below whose folder a program lies, else the program's folder."""
    for layout in FAMILIES[family].layouts:
        root = machine.folder(layout.variable, layout.default) if layout.variable else _below(layout, machine)
        if program.is_relative_to(root):
            return layout.origin
    return str(program.parent)


def _release(program: Path) -> str | None:
    """What a Java's `release` file says (JEP 223): much quicker than starting it."""
    try:
        text = (program.parent.parent / "release").read_text()
    except OSError:
        return None
    said = re.search(rf'^JAVA_VERSION="({NUMBERS})', text, re.MULTILINE)
    return said.group(1) if said else None


def _ask(family: str, program: Path, machine: Machine) -> tuple[Installed, ...]:
    """What a program says of itself; remembered until it or what steers shims changes."""
    stamps = tuple(_stamp(path) for path in (program, *(machine.user_home / name for name in _SETTINGS)))
    return _answers(
        family, program, machine.path, machine.user_home, tuple(sorted(machine.env.items())), stamps
    )


def _stamp(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return (0, 0)
    return (found.st_mtime_ns, found.st_size)


@functools.lru_cache(maxsize=512)
def _answers(
    family: str,
    program: Path,
    path: str,
    user_home: Path,
    env: tuple[tuple[str, str], ...],
    stamps: tuple[tuple[int, int], ...],
) -> tuple[Installed, ...]:
    """`stamps` belong to the key of the cache only."""
    own = {name: value for name, value in env if name in TOOLCHAINS}
    # GOTOOLCHAIN: Go would download the version that a file asks for; LC_ALL: translated texts
    steady = {"PATH": path, "HOME": str(user_home), "LC_ALL": "C", "GOTOOLCHAIN": "local", "GOENV": "off"}
    try:
        done = subprocess.run(
            [program, *FAMILIES[family].ask],
            env={**own, **steady, "DOTNET_CLI_TELEMETRY_OPTOUT": "1", "DOTNET_NOLOGO": "1"},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=ASK_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    if done.returncode != 0:
        return ()
    return tuple(said_by(done.stdout.decode("utf-8", "replace"), program))


def said_by(output: str, program: Path) -> Iterator[Installed]:
    """The versions that a program's answer tells, and the real program where it tells that."""
    home = re.search(r"^\s*java\.home = (.+?)\s*$", output, re.MULTILINE)
    named = [home.group(1)] if home else [line.strip() for line in output.splitlines() if line[:1] == "/"]
    real = program
    for path in (Path(name) for name in named):
        for candidate in (path, path / "bin" / program.name):
            if os.access(candidate, os.X_OK) and candidate.is_file():
                real = candidate
    sdks = re.findall(rf"^({NUMBERS}\S*) \[", output, re.MULTILINE)
    if not sdks:
        java = re.search(r"^\s*java\.version = (\S+)", output, re.MULTILINE)
        said = java or re.search(rf"(?<![\w.])v?(?:go)?(\d+\.{NUMBERS}[\w.+-]*)", output)
        sdks = [said.group(1)] if said else []
    yield from (Installed(version, real, str(real.parent)) for version in reversed(sdks))

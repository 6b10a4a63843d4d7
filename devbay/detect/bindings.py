"""Commands of development servers, made to listen on every address of their container."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from posixpath import basename

from devbay.detect.node import Package

EVERY = "0.0.0.0"  # noqa: S104 - inside a container, whose ports devbay publishes on the loopback only
_HOST = ("--host", EVERY)
FLAGS: dict[str, tuple[tuple[str, ...], tuple[str, str]]] = {
    "vite": ((), _HOST),
    "astro": (("dev", "preview"), _HOST),
    "nuxt": (("dev", "preview"), _HOST),
    "ng": (("serve",), _HOST),
    "webpack": (("serve",), _HOST),
    "webpack-dev-server": ((), _HOST),
    "next": (("dev", "start"), ("-H", EVERY)),
    "rails": (("server", "s"), ("-b", EVERY)),
    "flask": (("run",), _HOST),
    "fastapi": (("dev", "run"), _HOST),
    "uvicorn": ((), _HOST),
}
"""Program to (the subcommands that serve, the option), from the tools' own documentation."""
_SPELLINGS = {"--host": ("--host",), "-H": ("-H", "--hostname"), "-b": ("-b", "--binding")}
_MANAGERS = ("npm", "pnpm", "yarn", "bun")
_FOLDER_OPTIONS = ("--prefix", "--dir", "-C", "--cwd")
_SHELLS = ("sh", "bash", "ash", "dash")
_SHELL_SYNTAX = re.compile(r"[;&|<>$`()\n*?~#]")


def on_every_address(
    argv: Sequence[str], port: int | None, packages: Sequence[Package] = ()
) -> tuple[str, ...] | None:
    """The command with its tool's option to listen everywhere; None where the tool is not known.

    port: what Django's `runserver` is to listen on if the command does not say. packages: where scripts that
    `npm run` and its like name are looked up.
    """
    words = tuple(argv)
    if len(words) == 3 and basename(words[0]) in _SHELLS and re.fullmatch(r"-\w*c", words[1]):
        inner = None if _SHELL_SYNTAX.search(words[2]) else _split(words[2])
        changed = on_every_address(inner, port, packages) if inner else None
        return (*words[:2], shlex.join(changed)) if changed else None
    if words and words[0] in _MANAGERS and (script := _script(words, packages)) is not None:
        option = _option(_split(script) or ())
        if option is None:
            return None
        return (*words, *(("--",) if words[0] == "npm" and "--" not in words else ()), *option)
    if "runserver" in words:
        return _django(words, port)
    option = _option(words)
    return None if option is None else _with(words, option)


def _split(line: str) -> list[str] | None:
    try:
        return shlex.split(line)
    except ValueError:
        return None


def _option(words: Sequence[str]) -> tuple[str, str] | None:
    """The option of the first known server among the words."""
    for place, word in enumerate(words):
        known = FLAGS.get(basename(word))
        if known and (not known[0] or any(each in known[0] for each in words[place + 1 :])):
            return known[1]
    return None


def _with(words: tuple[str, ...], option: tuple[str, str]) -> tuple[str, ...]:
    """The option's value replaced where the command has one already, else the option at the end."""
    for place, word in enumerate(words):
        name, equals, _ = word.partition("=")
        if name not in _SPELLINGS[option[0]]:
            continue
        if equals:
            return (*words[:place], f"{name}={option[1]}", *words[place + 1 :])
        return (*words[: place + 1], option[1], *words[place + 2 :])
    return (*words, *option)


def _django(words: tuple[str, ...], port: int | None) -> tuple[str, ...] | None:
    place = words.index("runserver") + 1
    for at in range(place, len(words)):
        given = re.fullmatch(r"(?:[\w.\[\]:-]*:)?(\d{2,5})", words[at])
        if given:
            return (*words[:at], f"{EVERY}:{given[1]}", *words[at + 1 :])
    return (*words[:place], f"{EVERY}:{port or 8000}", *words[place:])


def _script(words: tuple[str, ...], packages: Sequence[Package]) -> str | None:
    """The text of the script that a package manager's command runs; None if it runs none that is known."""
    rest, folder = list(words[1:]), "."
    while len(rest) > 1 and rest[0] in _FOLDER_OPTIONS:
        folder, rest = rest[1].strip("/"), rest[2:]
    if rest[:1] == ["run"]:
        rest = rest[1:]
    if not rest:
        return None
    holding = [package for package in packages if rest[0] in package.scripts]
    here = [package for package in holding if package.folder == folder] or holding
    return here[0].scripts[rest[0]] if len(here) == 1 else None

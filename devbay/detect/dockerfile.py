"""Dockerfiles: stages and what each leaves to its container, arguments filled in as far as the file tells."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

_INSTRUCTION = re.compile(r"^\s*([A-Za-z]+)\s+(.*)$", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)(?::?([-+])([^{}]*))?\})")
_HEALTH_OPTION = re.compile(r"^--[a-z-]+=\S+\s+")
_HEREDOC = re.compile(r"<<-?\s*[\"']?([A-Za-z_]\w*)[\"']?")


@dataclass(frozen=True)
class Stage:
    """One stage. lines: instruction name to the line it stands on. copied: (source in the context, target).

    cmd, entrypoint, health: argv, with a shell around the shell form; None where the file says nothing.
    """

    name: str
    base: str
    expose: tuple[int, ...] = ()
    cmd: tuple[str, ...] | None = None
    entrypoint: tuple[str, ...] | None = None
    health: tuple[str, ...] | None = None
    workdir: str | None = None
    user: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    copied: tuple[tuple[str, str], ...] = ()
    runs: tuple[str, ...] = ()
    lines: Mapping[str, int] = field(default_factory=dict)


def stages(text: str, args: Mapping[str, str] | None = None) -> tuple[Stage, ...]:
    """The stages in order, each with what it inherits from an earlier one. `args`: given build arguments."""
    given = dict(args or {})
    top: dict[str, str] = {}
    found: list[Stage] = []
    known: dict[str, str] = {}
    for line, name, rest in _instructions(text):
        if name == "ARG" and not found:
            top |= _arguments(rest, given, top)
        elif name == "FROM":
            words = [word for word in rest.split() if not word.startswith("--")]
            base = _filled(words[0], top) if words else ""
            title = words[2] if len(words) > 2 and words[1].lower() == "as" else str(len(found))
            parent = next((stage for stage in found if stage.name.lower() == base.lower()), None)
            known = dict(parent.env) if parent else {}
            stage = replace(parent, name=title, base=parent.base) if parent else Stage(title, base)
            found.append(replace(stage, lines={**stage.lines, "FROM": line}))
        elif found and name == "ARG":
            known |= _arguments(rest, given, {**top, **known})
        elif found:
            found[-1] = _applied(found[-1], name, rest, line, known)
    return tuple(found)


def stage_of(text: str, target: str | None = None, args: Mapping[str, str] | None = None) -> Stage | None:
    """The stage that a build makes: the target, else the last one."""
    all_of_them = stages(text, args)
    if target is None:
        return all_of_them[-1] if all_of_them else None
    return next((stage for stage in all_of_them if stage.name.lower() == target.lower()), None)


def _instructions(text: str) -> list[tuple[int, str, str]]:
    found: list[tuple[int, str, str]] = []
    lines = text.splitlines()
    place = 0
    while place < len(lines):
        first = place + 1
        line = lines[place]
        place += 1
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        while line.rstrip().endswith("\\") and place < len(lines):
            following = lines[place]
            place += 1
            if not following.lstrip().startswith("#"):
                line = line.rstrip()[:-1] + " " + following.strip()
        match = _INSTRUCTION.match(line)
        if match is None:
            continue
        found.append((first, match[1].upper(), match[2].strip()))
        if match[1].upper() in ("RUN", "COPY"):
            for word in _HEREDOC.findall(match[2]):
                while place < len(lines) and lines[place].strip() != word:
                    place += 1
                place += 1
    return found


def _arguments(rest: str, given: Mapping[str, str], known: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in _words(rest):
        name, equals, default = word.partition("=")
        value = given.get(name, _filled(default, known) if equals else known.get(name))
        if value is not None:
            found[name] = value
    return found


def _applied(stage: Stage, name: str, rest: str, line: int, known: dict[str, str]) -> Stage:
    lines = {**stage.lines, name: line}
    match name:
        case "EXPOSE":
            words = [word.removesuffix("/tcp") for word in _filled(rest, known).split()]
            ports = [int(word) for word in words if word.isdigit() and 0 < int(word) < 65536]
            return replace(stage, expose=tuple(dict.fromkeys((*stage.expose, *ports))), lines=lines)
        case "ENV":
            pairs = _pairs(rest, known)
            known |= pairs
            return replace(stage, env={**stage.env, **pairs}, lines=lines)
        case "CMD":
            return replace(stage, cmd=_command(rest), lines=lines)
        case "ENTRYPOINT":
            return replace(stage, entrypoint=_command(rest), cmd=None, lines=lines)
        case "WORKDIR":
            folder = _filled(rest, known)
            base = "" if folder.startswith("/") else (stage.workdir or "")
            return replace(stage, workdir=f"{base.rstrip('/')}/{folder.strip('/')}", lines=lines)
        case "USER":
            return replace(stage, user=_filled(rest, known), lines=lines)
        case "HEALTHCHECK":
            while _HEALTH_OPTION.match(rest):
                rest = _HEALTH_OPTION.sub("", rest)
            test = rest[3:].strip() if rest.upper().startswith("CMD") else ""
            return replace(stage, health=_command(test) if test else None, lines=lines)
        case "COPY" | "ADD" if "--from" not in rest and "<<" not in rest:
            words = [word for word in _words(rest) if not word.startswith("--")]
            pairs_of = tuple((source, words[-1]) for source in words[:-1])
            return replace(stage, copied=(*stage.copied, *pairs_of), lines=lines)
        case "RUN":
            return replace(stage, runs=(*stage.runs, rest), lines=lines)
    return stage


def _pairs(rest: str, known: Mapping[str, str]) -> dict[str, str]:
    words = _words(rest)
    if words and "=" not in words[0]:
        name, _, value = rest.partition(" ")
        return {name: _filled(value.strip(), known)}
    found = (word.partition("=") for word in words)
    return {name: _filled(value, known) for name, equals, value in found if equals}


def _command(rest: str) -> tuple[str, ...] | None:
    if rest.startswith("["):
        try:
            words = json.loads(rest)
        except ValueError:
            words = None
        if isinstance(words, list) and all(isinstance(word, str) for word in words):
            return tuple(words) or None
    return ("/bin/sh", "-c", rest) if rest else None


def _words(rest: str) -> list[str]:
    try:
        return shlex.split(rest)
    except ValueError:
        return rest.split()


def _filled(text: str, known: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if match[3] == "+":
            return match[4] if known.get(name) else ""
        return known.get(name) or (match[4] or "" if match[3] else known.get(name, ""))

    return _VARIABLE.sub(value, text)

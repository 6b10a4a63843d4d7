"""Makefiles, justfiles, Taskfiles and shell scripts: named commands, and which compose files people start."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from devbay.detect import documents, words
from devbay.detect.facts import Origin
from devbay.detect.files import View
from devbay.runners.recipes import just_recipe, make_recipe

MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
JUSTFILES = ("justfile", "Justfile", ".justfile")
TASKFILES = ("Taskfile.yml", "Taskfile.yaml", "taskfile.yml", "taskfile.yaml")
MAX_SCRIPTS = 200
_MAKE_TARGET = re.compile(r"^([A-Za-z0-9][\w.-]*(?:[ \t]+[A-Za-z0-9][\w.-]*)*)[ \t]*::?(?!=)")
_JUST_TARGET = re.compile(r"^@?([A-Za-z_][\w-]*)(?=[^:=]*:(?!=))")
_COMPOSE = re.compile(r"\bdocker(?:-compose|\s+compose)\b(?P<rest>[^&|;\n]*)")


@dataclass(frozen=True)
class Recipe:
    """One named command. runs: how it is called (`make test`). text: what it runs, one line a command."""

    name: str
    runs: tuple[str, ...]
    text: str
    origin: Origin


@dataclass(frozen=True)
class ComposeCall:
    """One `docker compose` call. files: of `-f`, as written. verb: up, run, exec... words: what follows."""

    files: tuple[str, ...]
    verb: str
    words: tuple[str, ...]
    origin: Origin
    named: str = ""


def recipes(view: View) -> tuple[Recipe, ...]:
    """Every target of the root's Makefile, justfile and Taskfile, in the order of the files."""
    return (*_make(view), *_just(view), *_taskfile(view))


def _make(view: View) -> Iterator[Recipe]:
    file = next((name for name in MAKEFILES if view.exists(name)), None)
    text = view.text(file) if file else None
    for number, line in enumerate((text or "").splitlines(), 1):
        match = _MAKE_TARGET.match(line)
        for name in match[1].split() if match else []:
            recipe = make_recipe(text or "", name)
            if recipe:
                yield Recipe(name, ("make", name), recipe, Origin(file or "", number, name))


def _just(view: View) -> Iterator[Recipe]:
    file = next((name for name in JUSTFILES if view.exists(name)), None)
    text = view.text(file) if file else None
    for number, line in enumerate((text or "").splitlines(), 1):
        match = _JUST_TARGET.match(line)
        if match and (recipe := just_recipe(text or "", match[1])):
            yield Recipe(match[1], ("just", match[1]), recipe, Origin(file or "", number, match[1]))


def _taskfile(view: View) -> Iterator[Recipe]:
    file = next((name for name in TASKFILES if view.exists(name)), None)
    tasks = documents.mapping(documents.mapping(documents.yaml(view, file)).get("tasks")) if file else {}
    for name, task in tasks.items():
        listed = task.get("cmds", task.get("cmd", [])) if isinstance(task, dict) else task
        items = listed if isinstance(listed, list) else [listed]
        lines = [
            str(item.get("cmd") or "") if isinstance(item, dict) else str(item) for item in items if item
        ]
        if any(lines):
            origin = Origin(file or "", documents.line(tasks, name), str(name))
            yield Recipe(str(name), ("task", str(name)), "\n".join(filter(None, lines)), origin)


def compose_calls(text: str, origin: Origin, named: str = "") -> Iterator[ComposeCall]:
    """The `docker compose` calls of a text; `named`: what the script or target is called."""
    for line in words.joined(text).splitlines():
        if line.lstrip().startswith("#"):
            continue
        for match in _COMPOSE.finditer(line):
            yield from _call(match["rest"], origin, named)


def _call(rest: str, origin: Origin, named: str) -> Iterator[ComposeCall]:
    parts = re.findall(r"\"[^\"]*\"|'[^']*'|\S+", rest)
    files: list[str] = []
    place = 0
    while place < len(parts) and parts[place].startswith("-"):
        flag, equals, value = parts[place].partition("=")
        takes = flag in (
            "-f",
            "--file",
            "-p",
            "--project-name",
            "--profile",
            "--env-file",
            "--project-directory",
        )
        if takes and not equals:
            place += 1
            value = parts[place] if place < len(parts) else ""
        if flag in ("-f", "--file"):
            files.append(value.strip("'\""))
        place += 1
    if place < len(parts):
        yield ComposeCall(tuple(files), parts[place], tuple(parts[place + 1 :]), origin, named)


def scripts(view: View) -> Iterable[tuple[str, str]]:
    """Shell scripts near the root with their texts: those people start a repository with."""
    found = [
        file for file in view.files()
        if file.count("/") <= 2 and re.search(r"(^|/)(bin|script|scripts|dev|tools|ci)/[\w.-]+$|\.sh$", file)
        and re.search(r"(^|/)[\w-]+(\.(sh|bash))?$", file)
    ]  # fmt: skip
    for file in found[:MAX_SCRIPTS]:
        text = view.text(file)
        if text and (file.endswith((".sh", ".bash")) or text.startswith("#!")):
            yield file, text

"""Procfiles: the processes of a platform or of a process manager, as commands."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from posixpath import join

from devbay.detect import documents, words
from devbay.detect.facts import Origin
from devbay.detect.files import View

NAMES = ("Procfile.dev", "Procfile")
_LINE = re.compile(r"^([A-Za-z0-9_-]+):\s*(\S.*)$")


@dataclass(frozen=True)
class Process:
    """One line. shell: it needs one, so its words are not split. text: as written."""

    name: str
    argv: tuple[str, ...]
    text: str
    origin: Origin
    env: Mapping[str, str] = field(default_factory=dict)
    shell: bool = False


@dataclass(frozen=True)
class AppJson:
    """What an `app.json` says: names of variables, and the test script."""

    variables: tuple[tuple[str, Origin], ...] = ()
    test: str | None = None
    origin: Origin = field(default_factory=lambda: Origin("app.json"))


def processes(view: View, folder: str = ".") -> tuple[Process, ...]:
    """The processes of the folder's `Procfile.dev`, else of its `Procfile`."""
    for name in NAMES:
        file = join(folder, name).removeprefix("./")
        found = []
        for number, line in enumerate(view.lines(file), 1):
            match = _LINE.match(line.strip())
            if match:
                argv, env = words.argv(match[2])
                origin = Origin(file, number, match[1])
                found.append(Process(match[1], argv, match[2], origin, env, argv[:2] == ("sh", "-c")))
        if found:
            return tuple(found)
    return ()


def app_json(view: View) -> AppJson:
    """Variables and test command of `app.json`; no value of it is kept."""
    data = documents.json_object(view, "app.json")
    text = view.lines("app.json")

    def line(needle: str) -> int:
        return next((number for number, each in enumerate(text, 1) if f'"{needle}"' in each), 0)

    names = tuple(
        (str(name), Origin("app.json", line(str(name)), "env")) for name in documents.mapping(data.get("env"))
    )
    test = documents.mapping(documents.mapping(data.get("environments")).get("test"))
    script = documents.mapping(test.get("scripts")).get("test")
    origin = Origin("app.json", line("test"), "environments.test.scripts.test")
    return AppJson(names, script if isinstance(script, str) else None, origin)

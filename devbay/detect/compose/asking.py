"""The real compose's reading of a stack, asked of a copy of its files without environment and `.env`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from devbay.detect.compose.merging import Fault
from devbay.detect.compose.model import ComposeResult, Service
from devbay.detect.compose.services import service
from devbay.detect.compose.tree import Map, Text, mapping
from devbay.detect.facts import Origin
from devbay.detect.files import View

TIMEOUT = 5.0
"""Seconds; an answer takes about a tenth of one."""
_DEPTH = 12
"""Folders between the copy and the temporary folder, so that `../` of a file stays inside that."""
_NOT_COMPARED = ("name", "env_files")


@dataclass(frozen=True)
class Answer:
    """What compose made of the files: its services, or why it refuses them."""

    services: Mapping[str, Service] = field(default_factory=dict)
    refusal: str | None = None


def ask(view: View, result: ComposeResult, chosen: Sequence[str], work: str) -> Answer | None:
    """Compose's reading of the files that `result` was read from; None where there is no compose to ask.

    It sees a copy of these files alone: it reads the `.env` of an included folder and every `env_file`
    whatever it is told, so these are not there, or empty where their absence would be an error.
    """
    commands = _commands()
    if not commands:
        return None
    with tempfile.TemporaryDirectory(prefix="devbay-compose-") as temporary:
        base = Path(temporary).resolve()
        root = base.joinpath(*"u" * _DEPTH, view.root.resolve().name or "root")
        _copy(view, result, root, work)
        settings = base / "docker"
        settings.mkdir()
        plugins = Path.home() / ".docker" / "cli-plugins"
        if plugins.is_dir():
            (settings / "cli-plugins").symlink_to(plugins)
        options = ["--project-directory", str(root / work), "--env-file", os.devnull, "--profile", "*"]
        for file in chosen:
            options += ["-f", str(root / file)]
        for command in commands:
            front = (
                [command, "--config", str(settings), "compose"] if command.endswith("docker") else [command]
            )
            done = _run([*front, *options, "config", "--format", "json"], root)
            if done is not None and done.returncode == 0:
                return _answer(done.stdout, base, root)
            if done is not None and f"{root / chosen[0]}: no such file" in done.stderr:
                continue  # an engine in a sandbox of its own (snap) does not see the temporary folder
            if done is not None and _is_there(front, root):
                return Answer(refusal=_reason(done.stderr, root))
    return None


def differences(mine: Service, theirs: Service) -> dict[str, Any]:
    """The fields that compose reads otherwise, with its values; what it has the same keeps its place."""
    found: dict[str, Any] = {}
    for each in fields(Service):
        if not each.compare or each.name in _NOT_COMPARED:
            continue
        own, other = getattr(mine, each.name), getattr(theirs, each.name)
        if each.name == "build" and own is not None:  # arguments that the shell gives are not in the answer
            own = replace(
                own, args={name: value for name, value in own.args.items() if value.text is not None}
            )
        if own != other:
            found[each.name] = other
    if "environment" in found:
        other = found["environment"]
        found["environment"] = {
            name: mine.environment[name] if mine.environment.get(name) == value else value
            for name, value in other.items()
        }
    return found


def _commands() -> list[str]:
    return [found for name in ("docker", "docker-compose") if (found := shutil.which(name))]


def _copy(view: View, result: ComposeResult, root: Path, work: str) -> None:
    (root / work).mkdir(parents=True)
    for file in result.files:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(view.text(file) or "", encoding="utf-8", newline="")
    stand_ins = [each.path for made in result.services for each in made.env_files if each.exists]
    for file in (*stand_ins, *(each.file for each in result.skipped if view.exists(each.file))):
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).touch()


def _run(argv: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str] | None:
    try:
        return subprocess.run(
            argv, cwd=folder, env={}, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8",
            errors="replace", timeout=TIMEOUT,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None


def _is_there(front: Sequence[str], folder: Path) -> bool:
    """Whether the command is a compose of version 2 or later, of which alone the answers count."""
    done = _run([*front, "version", "--short"], folder)
    return (
        done is not None
        and done.returncode == 0
        and not done.stdout.strip().removeprefix("v").startswith("1.")
    )


def _answer(output: str, base: Path, root: Path) -> Answer | None:
    try:
        data = json.loads(output)
    except ValueError:
        return None
    model = mapping(_tree(data, str(base), str(root)))
    faults: list[Fault] = []
    services = mapping(model.get("services"))
    return Answer({name: service(name, mapping(each), Origin(""), faults) for name, each in services.items()})


def _tree(value: Any, base: str, root: str) -> Any:
    """The JSON as a model: `$$` is one `$`, paths are relative to the root of the view."""
    if isinstance(value, dict):
        return Map((key.replace("$$", "$"), _tree(each, base, root)) for key, each in value.items())
    if isinstance(value, list):
        return [_tree(each, base, root) for each in value]
    if not isinstance(value, str):
        return value
    text = value.replace("$$", "$")
    is_below = text == base or text.startswith(f"{base}/")
    return Text(os.path.relpath(text, root) if is_below else text)


def _reason(output: str, root: Path) -> str:
    lines = [line for line in output.splitlines() if line.strip() and "level=" not in line]
    return " ".join(" ".join(lines[-3:]).replace(f"{root}/", "").replace(str(root), ".").split())[:300]

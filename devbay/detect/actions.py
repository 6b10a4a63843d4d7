"""GitHub Actions: services of jobs, what steps run, and what each job has at hand while they do."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from devbay.detect import documents, words
from devbay.detect.facts import Origin
from devbay.detect.files import View

MAX_WORKFLOWS = 60
MAX_STEPS = 400
_EXPRESSION = re.compile(r"\$\{\{.*?\}\}", re.DOTALL)
_SECRET = re.compile(r"secrets\.([A-Za-z_]\w*)")
_RUNNER_VALUE = re.compile(r"\$\{?(RUNNER|GITHUB)_\w+\}?|\x00")
_STORE_ACTION = re.compile(r"postgres|mysql|mariadb|redis|mongo|rabbitmq|elasticsearch", re.IGNORECASE)
_DEPLOYS = re.compile(r"deploy|release|publish|production|rollout", re.IGNORECASE)


@dataclass(frozen=True)
class CiService:
    """A service container. image: None where an expression stands for it. asked: variables that are secrets.

    env: literal values of the service itself, which the file makes public.
    """

    name: str
    image: str | None
    origin: Origin
    env: Mapping[str, str] = field(default_factory=dict)
    asked: Mapping[str, str] = field(default_factory=dict)
    ports: tuple[int, ...] = ()
    health: str | None = None
    credentials: bool = False


@dataclass(frozen=True)
class CiStep:
    """One command line of a step. argv: None where it is more than one plain command. left: flags cut off."""

    text: str
    argv: tuple[str, ...] | None
    folder: str
    origin: Origin
    env: Mapping[str, str] = field(default_factory=dict)
    left: tuple[str, ...] = ()
    expression: bool = False


@dataclass(frozen=True)
class CiJob:
    """One job. stores: actions that set up a datastore. composes: the `docker compose up` lines before tests.

    asked: names in `env` of workflow, job and steps, whose values are never used.
    """

    name: str
    file: str
    services: tuple[CiService, ...] = ()
    steps: tuple[CiStep, ...] = ()
    image: str | None = None
    stores: tuple[str, ...] = ()
    composes: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    python: str | None = None
    node: str | None = None
    deploys: bool = False
    foreign: bool = False


def jobs(view: View) -> tuple[CiJob, ...]:
    """The jobs of every workflow that can be read, in the order of files and of the file."""
    files = [file for file in view.files() if re.fullmatch(r"\.github/workflows/[^/]+\.ya?ml", file)]
    if len(files) > MAX_WORKFLOWS:
        view.skip(".github/workflows", f"only the first {MAX_WORKFLOWS} of {len(files)} are read")
    found: list[CiJob] = []
    for file in files[:MAX_WORKFLOWS]:
        workflow = documents.mapping(documents.yaml(view, file))
        for name, data in documents.mapping(workflow.get("jobs")).items():
            if isinstance(data, dict) and "uses" not in data:
                found.append(_job(str(name), data, workflow, file))
    return tuple(found)


def _job(name: str, data: dict[Any, Any], workflow: dict[Any, Any], file: str) -> CiJob:
    container = data.get("container")
    image = container if isinstance(container, str) else documents.mapping(container).get("image")
    folder = _default_folder(data) or _default_folder(workflow) or "."
    steps: list[CiStep] = []
    stores: list[str] = []
    composes: list[str] = []
    asked = [*documents.mapping(workflow.get("env")), *documents.mapping(data.get("env"))]
    versions: dict[str, str] = {}
    foreign = False
    listed = data.get("steps")
    for step in (listed if isinstance(listed, list) else [])[:MAX_STEPS]:
        if not isinstance(step, dict):
            continue
        asked += documents.mapping(step.get("env"))
        uses, options = str(step.get("uses") or ""), documents.mapping(step.get("with"))
        if uses and _STORE_ACTION.search(uses):
            stores.append(uses)
        for tool in ("python", "node"):
            version = options.get(f"{tool}-version")
            if (
                uses.startswith(f"actions/setup-{tool}@")
                and version is not None
                and "${{" not in str(version)
            ):
                versions.setdefault(tool, str(getattr(version, "_original", version)))
        foreign = foreign or ("checkout" in uses and "repository" in options)
        if isinstance(step.get("run"), str):
            where = str(step.get("working-directory") or folder)
            origin = Origin(file, documents.line(step, "run"), f"jobs.{name}")
            for found in _commands(step["run"], where, origin):
                steps.append(found)
                composes += (
                    [found.text] if re.search(r"docker[ -]compose\b.*\b(up|start)\b", found.text) else []
                )
    return CiJob(
        name=name, file=file, services=tuple(_services(name, data, file)), steps=tuple(steps),
        image=image if isinstance(image, str) and "${{" not in image else None,
        stores=tuple(stores), composes=tuple(composes), asked=tuple(map(str, dict.fromkeys(asked))),
        python=versions.get("python"), node=versions.get("node"),
        deploys=bool(_DEPLOYS.search(name)) or "environment" in data, foreign=foreign,
    )  # fmt: skip


def _default_folder(data: dict[Any, Any]) -> str | None:
    run = documents.mapping(documents.mapping(data.get("defaults")).get("run"))
    given = run.get("working-directory")
    return str(given) if isinstance(given, str) and "${{" not in given else None


def _services(job: str, data: dict[Any, Any], file: str) -> Iterator[CiService]:
    services = data.get("services")
    if isinstance(services, str):
        yield CiService(job, None, Origin(file, documents.line(data, "services"), f"jobs.{job}.services"))
    for name, service in documents.mapping(services).items():
        if not isinstance(service, dict):
            service = {"image": service}
        image = str(service.get("image") or "").strip()
        origin = Origin(file, documents.line(services, name), f"jobs.{job}.services.{name}")
        if not image:
            continue
        env: dict[str, str] = {}
        asked: dict[str, str] = {}
        options = _words(str(service.get("options") or ""))
        for key, value in documents.mapping(service.get("env")).items():
            secret = _SECRET.search(str(value))
            if "${{" in str(value):
                asked[str(key)] = secret[1] if secret else "an expression"
            else:
                env[str(key)] = (
                    "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
                )
        for flag, value in pairwise(options):
            if flag in ("-e", "--env") and "=" in value and "${{" not in value:
                env.setdefault(*value.split("=", 1))
        health = next((value for flag, value in pairwise(options) if flag == "--health-cmd"), None)
        health = health or next((word[13:] for word in options if word.startswith("--health-cmd=")), None)
        yield CiService(
            str(name), None if "${{" in image else image.removeprefix("docker://"), origin, env, asked,
            tuple(_ports(service.get("ports"))), health, "credentials" in service,
        )  # fmt: skip


def _ports(listed: Any) -> Iterator[int]:
    for each in documents.texts(listed or []):
        number = each.rsplit(":", 1)[-1].partition("/")[0]
        if number.isdigit() and 0 < int(number) < 65536:
            yield int(number)


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _commands(script: str, folder: str, origin: Origin) -> Iterator[CiStep]:
    """The lines of a script; `cd` moves those after it, and what only prepares a shell is left out."""
    text = _EXPRESSION.sub("\x00", words.joined(script))
    for raw in text.splitlines():
        line = raw.strip()
        if not line or line.startswith("#") or re.match(r"(set|export|echo|source|\.|shopt|umask)\s", line):
            continue
        moved = re.fullmatch(r"cd\s+([\w./-]+)", line)
        if moved:
            folder = f"{folder}/{moved[1]}"
            continue
        step = _step(line, folder, origin)
        if step is not None:
            yield step


def _step(line: str, folder: str, origin: Origin) -> CiStep | None:
    inside = re.fullmatch(r"cd\s+([\w./-]+)\s*&&\s*(.+)", line)
    if inside:
        folder, line = f"{folder}/{inside[1]}", inside[2]
    shown = line.replace("\x00", "...")
    kept, left = _without_runner_values(line)
    plain = words.plain(kept) if kept is not None else None
    if plain is None or any("\x00" in word for word in plain):
        return CiStep(shown, None, folder, origin, expression="\x00" in line)
    argv, env = words.with_env(plain)
    return CiStep(shown, argv, folder, origin, env, left)


def _without_runner_values(line: str) -> tuple[str | None, tuple[str, ...]]:
    """The line without options whose value only the runner has; None where such a value is an argument."""
    if not _RUNNER_VALUE.search(line):
        return line, ()
    try:
        parts = shlex.split(line)
    except ValueError:
        return None, ()
    kept: list[str] = []
    left: list[str] = []
    for part in parts:
        if not _RUNNER_VALUE.search(part):
            kept.append(part)
        elif part.startswith("-") and "=" in part:
            left.append(part.partition("=")[0])
        elif kept and kept[-1].startswith("-"):
            left.append(kept.pop())
        else:
            return None, ()
    return shlex.join(kept), tuple(left)

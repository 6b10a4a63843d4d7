"""From facts to a draft manifest: one pass a subject, each adding to the draft, none asking anything else."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from devbay.detect import apps as programs
from devbay.detect import (
    coded,
    compose_stack,
    containers,
    envfiles,
    environment,
    families,
    finish,
    hosts,
    mounting,
    rewire,
    setup,
    stacks,
    starters,
    tasking,
)
from devbay.detect.containers import Placed
from devbay.detect.draft import Draft
from devbay.detect.facts import Evidence, Origin, is_secret, slug
from devbay.detect.facts_of import UNFORESEEN, Facts, gather, misread
from devbay.detect.files import View
from devbay.detect.stack import Part, PortFact, Stack
from devbay.manifest import images

T = TypeVar("T")


@dataclass(frozen=True)
class Parts:
    """The declared containers, and whether they run the program itself."""

    stack: Stack
    complete: bool


def propose(view: View, name: str) -> Draft:
    """The draft for a repository whose folder is called `name`; the same files give the same draft.

    Never raises: a pass that fails on what it reads leaves the draft as it was and is named as skipped.
    """
    facts = gather(view)
    draft = Draft()
    nothing: dict[str, Placed] = {}
    parts = _passed(draft, view, "services", lambda: _parts(facts, draft), Parts(Stack(), complete=False))
    draft.project = slug(parts.stack.name or name)
    placed = _passed(
        draft, view, ", ".join(parts.stack.files) or "services",
        lambda: containers.place(parts.stack, draft, _context(facts, parts.stack, name)), nothing,
    )  # fmt: skip
    _passed(draft, view, "ports", lambda: finish.ports_of(placed, draft, view), None)
    for one in placed.values():
        _passed(draft, view, f"volumes of {one.part.origin}", partial(mounting.put, one, draft, view), None)
    _passed(draft, view, "shared volumes", lambda: mounting.shared(placed, draft), None)
    complete = parts.complete and bool(placed)
    found: list[programs.App] = []
    if not complete:
        found = _passed(draft, view, "programs", lambda: programs.place(facts, draft), found)
    if not draft.services and not found and not _hints(facts):
        found = _passed(draft, view, "starters", lambda: starters.place(facts, draft), found)
    bare = environment.Around(rewire.Map(environment.targets(draft), {}), {})
    around = _passed(draft, view, "variables", lambda: _variables(facts, draft, placed, found), bare)
    _passed(draft, view, "addresses in code", lambda: coded.put(view, found, draft), None)
    _passed(draft, view, "primary", lambda: finish.primary(placed, found, draft), None)
    _passed(draft, view, "host names", lambda: hosts.put(placed, found, facts, draft), None)
    _passed(draft, view, "health", lambda: finish.health(placed, draft), None)
    homes: list[tasking.Home] = []
    homes = _passed(
        draft, view, "tasks", lambda: tasking.homes(facts, draft, placed, parts.stack.parts, found), homes
    )
    _passed(draft, view, "tasks", lambda: tasking.put(facts, draft, homes, placed, around), None)
    _passed(draft, view, "migrations", lambda: setup.put(facts, draft, homes), None)
    _passed(draft, view, "the program's server", lambda: _server(facts, draft, parts, found), None)
    _passed(draft, view, "variables that nothing sets", lambda: _leftovers(facts, draft, parts, found), None)
    _evidence(draft)
    return draft


def _passed(draft: Draft, view: View, source: str, make: Callable[[], T], otherwise: T) -> T:
    """What one pass makes. One that fails leaves nothing half done, and costs its part alone."""
    kept = draft.kept()
    try:
        return make()
    except UNFORESEEN as error:
        draft.restore(kept)
        view.skip(source, misread(error))
        return otherwise


def _parts(facts: Facts, draft: Draft) -> Parts:
    choice = stacks.choose(facts)
    stack = compose_stack.read(facts.view, choice, draft) if choice.found else Stack()
    stacks.say(choice, draft)
    parts = list(stack.parts)
    complete = bool(parts) and stacks.runs_the_app(parts)
    for config in facts.devcontainers[:1]:
        draft.questions += config.questions
        if facts.editor is config and programs.starts(facts):
            draft.note(f"the programs run in the editor's container [{config.file}]")
        elif not parts and not config.compose and (config.build or config.image):
            parts.append(stacks.from_devcontainer(config, draft))
            complete = True
        elif config.compose == stack.files and config.service:
            parts = [
                _forwarded(part, config.ports) if part.name == config.service else part for part in parts
            ]
    for config in facts.devcontainers[1:]:
        draft.ask(
            "services", f"{config.file} is another devcontainer ({config.name}), left alone", config.file
        )
    if not stack.parts:
        known = {images.family(part.image) for part in parts}
        parts += [
            part for part in stacks.from_ci(facts.jobs, draft) if images.family(part.image) not in known
        ]
    return Parts(replace(stack, parts=tuple(parts)), complete)


def _forwarded(part: Part, ports: tuple[int, ...]) -> Part:
    """The editor's service with the ports that the editor forwards, if the stack gives it none of its own."""
    own = [port for port in ports if port not in families.PORTS.values() or port in (80, 8080)]
    return part if part.ports else replace(part, ports=tuple(PortFact(port) for port in own))


def _context(facts: Facts, stack: Stack, name: str) -> containers.Context:
    own = {
        name.lower(),
        *(each.name.rsplit("/", 1)[-1].lower() for each in facts.packages if each.folder == "."),
    }
    for package in facts.packages:
        if package.folder == "." and package.repository:
            own.add(package.repository.rstrip("/").rsplit("/", 1)[-1].removesuffix(".git").lower())
    own |= {each.name.lower() for each in facts.projects if each.folder == "." and each.name}
    run_by: dict[str, Origin] = {}
    names = {part.name for part in stack.parts}
    for call in facts.calls:
        if call.verb == "run":
            for word in call.words:
                if word in names:
                    run_by.setdefault(word, call.origin)
                    break
    return containers.Context(facts.view, frozenset(filter(None, own)), run_by)


def _variables(
    facts: Facts, draft: Draft, placed: Mapping[str, Placed], found: list[programs.App]
) -> environment.Around:
    """Datastores first, since others take their logins from them; then everything else."""
    envs = {one.name: environment.read(one, draft, facts.view, facts.shapes) for one in placed.values()}
    shared: dict[str, str] = {}
    for one in placed.values():
        if stacks.is_infrastructure(one.part):
            env = envs.pop(one.name)
            bare = rewire.Map(environment.targets(draft), {})
            environment.write(one.name, env, environment.Around(bare, {}), draft)
            shared |= {
                key: text for key, text in env.texts.items() if is_secret(key) and text == families.THROWAWAY
            }
    places = _places(draft, placed)
    scheme = _sql_scheme(facts)
    for one in placed.values():
        if one.name in envs:
            reachable = _reachable(one.name, draft, places)
            around = environment.Around(places, reachable, shared, scheme)
            environment.write(one.name, envs[one.name], around, draft)
    stores = {name: target for name, target in places.targets.items() if target.family is not None}
    for app in found:
        env = environment.Env(dict(app.env), dict(app.origins))
        env.named = _asked_by_ci(facts) | coded.stores(facts.view, app, found)
        env.named |= {variable.name: variable for variable in facts.shapes if not is_secret(variable.name)}
        environment.write(app.name, env, environment.Around(places, stores, shared, scheme), draft)
        _app_needs(app, draft)
    for name, target in environment.targets(draft).items():
        if name in places.targets:
            stores[name] = target
    return environment.Around(replace(places, targets=environment.targets(draft)), stores, shared, scheme)


def _asked_by_ci(facts: Facts) -> dict[str, envfiles.Variable]:
    """What CI gives its jobs, by name alone: of use where the name says which datastore is meant."""
    named = {key: job.file for job in facts.jobs for key in job.asked if not is_secret(key)}
    return {key: envfiles.Variable(key, Origin(file, 0, "env")) for key, file in named.items()}


def _app_needs(app: programs.App, draft: Draft) -> None:
    """A program needs the datastores that its variables refer to."""
    env = draft.services[app.name].get("env", {})
    named = re.findall(r"\$\{bay\.([\w-]+)\.(?!public)", " ".join(env.values()))
    needs = [
        name
        for name in dict.fromkeys(named)
        if name != app.name and families.is_store(draft.services[name].get("image"))
    ]
    if needs:
        draft.put(("services", app.name, "needs"), needs, "its variables")


def _places(draft: Draft, placed: Mapping[str, Placed]) -> rewire.Map:
    hosts: dict[str, str] = {}
    published: dict[int, tuple[str, int]] = {}
    for one in placed.values():
        for name in (one.part.name, one.name, *one.part.aliases):
            hosts.setdefault(name, one.name)
        for alias, service in one.part.links.items():
            if service in placed:
                hosts.setdefault(alias, placed[service].name)
        for port in one.part.ports:
            if port.published is not None and port.protocol == "tcp":
                published.setdefault(port.published, (one.name, port.target))
    for name in draft.services:
        hosts.setdefault(name, name)
    return rewire.Map(environment.targets(draft), hosts, published)


def _reachable(name: str, draft: Draft, places: rewire.Map) -> dict[str, rewire.Target]:
    """The datastores that a service needs; all of them where it declares none."""
    needs = draft.services[name].get("needs", [])
    stores = {key: target for key, target in places.targets.items() if target.family and key != name}
    return {key: target for key, target in stores.items() if key in needs} or stores


def _sql_scheme(facts: Facts) -> str:
    """How the program's driver writes a Postgres URL: SQLAlchemy takes the driver's name along."""
    depends = {name for project in facts.projects for name in project.depends}
    if "sqlalchemy" in depends and "psycopg" in depends and "psycopg2" not in depends:
        return "postgresql+psycopg"
    if "sqlalchemy" in depends and "asyncpg" in depends:
        return "postgresql+asyncpg"
    if depends & {"pymysql", "mysqlclient"} and not depends & {
        "psycopg",
        "psycopg2",
        "psycopg2-binary",
        "asyncpg",
    }:
        return "mysql+pymysql" if "sqlalchemy" in depends else "mysql"
    return "postgresql"


def _server(facts: Facts, draft: Draft, parts: Parts, found: list[programs.App]) -> None:
    """Where no file starts the program, say so, with what a CI script or an editor's configuration shows."""
    if found or parts.complete:
        return
    targets = [line for each in facts.targets for line in each.text.splitlines() if _SERVES.search(line)]
    hints = [*_hints(facts), *targets]
    text = "no file says how the application's server starts, so no service runs it"
    draft.ask("services", text, *dict.fromkeys(hint.strip("@& ") for hint in hints[:3]))


_SERVES = re.compile(r"\b(uvicorn|gunicorn|flask\b.*\brun|runserver|npm (run )?(start|dev))\b")


def _hints(facts: Facts) -> list[str]:
    """Steps of CI that start the program's server."""
    return [step.text for job in facts.jobs for step in job.steps if _SERVES.search(step.text)]


def _leftovers(facts: Facts, draft: Draft, parts: Parts, found: list[programs.App]) -> None:
    """Variables that example files and app.json name and nothing sets; packages that nothing starts."""
    said = " ".join(str(question) for question in draft.questions)
    known = {key for data in (*draft.services.values(), *draft.tasks.values()) for key in data.get("env", {})}
    names = [(variable.name, variable.origin) for variable in facts.shapes]
    names += list(facts.app.variables)
    for name, origin in names:
        if (
            name not in known
            and not re.search(rf"\b{re.escape(name)}\b", said)
            and not name.startswith(("COMPOSE_", "DOCKER_"))
        ):
            kind = "a secret" if is_secret(name) else "a setting"
            draft.ask("services", f"{name} is named as {kind} and no service sets it", origin=origin)
    if parts.complete:
        built = {folder for part in parts.stack.parts for folder in stacks.folders_of(facts, part)}
        for package in facts.packages:
            if (
                package.folder not in built
                and package.folder != "."
                and "dev" in package.scripts
                and not found
            ):
                script = package.scripts["dev"]
                text = f"{package.folder} has a development server (`{script}`) that the stack does not run"
                draft.ask("services", text, origin=package.origin("dev"))
    for job in facts.jobs:
        for step in job.steps:
            if step.expression and step.argv is None and not job.deploys:
                draft.ask(
                    "tasks",
                    f"CI runs `{step.text[:80]}`, which an expression (a matrix) decides",
                    origin=step.origin,
                )


def _evidence(draft: Draft) -> None:
    for path, source in sorted(draft.sources.items()):
        draft.evidence.append(Evidence("/".join(path), source))

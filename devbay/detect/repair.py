"""What a failed boot says about its manifest: the known kinds of mistake, each with the one way to mend it.

Pure: a manifest's data and what was seen go in, changes come out. Whether they help, the next boot says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from posixpath import join
from typing import Any

from devbay.detect import bindings, families, migrations
from devbay.detect.dockerfile import Stage, stage_of
from devbay.detect.facts_of import Facts
from devbay.detect.files import normal
from devbay.detect.ports import DEBUG
from devbay.manifest import images

ENGINE_RESOLVER = "127.0.0.11"
"""Docker's own name server listens there in every container of a network."""
_MISSING_TABLE = re.compile(
    r'relation "[^"]+" does not exist|no such table|UndefinedTable|Table \'[^\']+\' doesn\'t exist|\bP2021\b'
    r"|PendingMigrationError|migrations are pending|unapplied migration",
    re.IGNORECASE,
)
_COPIED = ("build", "image", "install", "env", "volumes", "mounts", "workdir")
Path = tuple[str, ...]
Data = Mapping[str, Any]


@dataclass(frozen=True)
class Problem:
    """What was seen of one service that failed, or of the one that a failed task ran in.

    code, reason, log: of the error. listening: TCP addresses and ports of its processes. on_host: they are
    this machine's, and not those of a container.
    """

    service: str
    code: str
    reason: str = ""
    log: tuple[str, ...] = ()
    listening: tuple[tuple[str, int], ...] = ()
    on_host: bool = False


@dataclass(frozen=True)
class Repair:
    """why: what was seen, and what is changed for it. changes: path of the manifest to its new value."""

    why: str
    changes: Mapping[Path, Any]


def repair(manifest: Data, problem: Problem, facts: Facts) -> Repair | None:
    """The change that mends a problem of a known kind; None where it is of none."""
    data = manifest.get("services", {}).get(problem.service)
    if data is None:
        return None
    kinds: tuple[Callable[[], Repair | None], ...] = (
        lambda: _migration(manifest, data, problem, facts),
        lambda: _probe(data, problem),
        lambda: _address(data, problem, facts),
    )
    return next((found for kind in kinds if (found := kind()) is not None), None)


def _probe(data: Data, problem: Problem) -> Repair | None:
    """A path that answers 404 is no probe: first the root, then whether the port answers at all."""
    health, port = data.get("health") or {}, data.get("port")
    if problem.code != "probe_failed" or "http" not in health or problem.reason != "HTTP 404":
        return None
    here = ("services", problem.service, "health")
    if health["http"] != "/":
        why = f"{problem.service}: its probe path {health['http']} answers 404, so / is asked"
        return Repair(why, {here: {**health, "http": "/"}})
    kept = {key: value for key, value in health.items() if key not in ("http", "accept")}
    why = f"{problem.service}: / answers 404 too, so it counts as up once port {port} answers"
    return Repair(why, {here: {"tcp": port, **kept}})


def _address(data: Data, problem: Problem, facts: Facts) -> Repair | None:
    """A server that listens elsewhere: on another port, or for its own container only."""
    port = data.get("port")
    if problem.code != "probe_failed" or port is None:
        return None
    spoken_for = {*DEBUG, *(data.get("ports") or {}).values()} - {port}
    heard = [at for at in problem.listening if at[0] != ENGINE_RESOLVER and at[1] not in spoken_for]
    ports = {number for _, number in heard}
    if problem.on_host:
        # devbay chooses the port there, and puts it in place of the number in the command
        named = [number for number in ports if re.search(rf"(?<!\d){number}(?!\d)", _words(data))]
        return _moved(data, problem, port, named[0]) if ports == set(named) and len(named) == 1 else None
    reachable = {number for address, number in heard if not _loopback(address)}
    found = port if port in ports else _only(reachable) or (None if reachable else _only(ports))
    if found is None:
        return None
    moved = _moved(data, problem, port, found) if found != port else None
    if found in reachable:
        return moved
    bound = _bound(data, problem, found, facts)
    if bound is None or moved is None:
        return bound
    return Repair(f"{moved.why}; {bound.why}", {**moved.changes, **bound.changes})


def _only(numbers: set[int]) -> int | None:
    return next(iter(numbers)) if len(numbers) == 1 else None


def _loopback(address: str) -> bool:
    return address.startswith("127.") or address in ("::1", "::ffff:127.0.0.1")


def _moved(data: Data, problem: Problem, port: int, found: int) -> Repair | None:
    if found == port:
        return None
    here, health = ("services", problem.service), data.get("health") or {}
    changes: dict[Path, Any] = {(*here, "port"): found}
    if health.get("tcp") == port:
        changes[*here, "health"] = {**health, "tcp": found}
    return Repair(f"{problem.service}: it listens on port {found} and not on {port}", changes)


def _bound(data: Data, problem: Problem, port: int, facts: Facts) -> Repair | None:
    """Where the tool's option is known; else nobody can tell how this server is told its address."""
    stage = _stage(data, facts)
    own = data.get("start")
    if own is None and stage is not None and not stage.entrypoint and "entrypoint" not in data:
        own = stage.cmd
    argv = bindings.on_every_address(own, port, facts.packages) if own else None
    if argv is None or list(argv) == list(own or ()):
        return None
    why = f"{problem.service}: it listens for its own container only (127.0.0.1:{port}); it is told to listen"
    return Repair(
        f"{why} on every address of it: {' '.join(argv)}",
        {("services", problem.service, "start"): list(argv)},
    )


def _migration(manifest: Data, data: Data, problem: Problem, facts: Facts) -> Repair | None:
    """A table that is not there, and a migration tool that no service runs: its command sets the store up."""
    services: Data = manifest.get("services", {})
    if not _MISSING_TABLE.search("\n".join((problem.reason, *problem.log))):
        return None
    store = next((name for name in data.get("needs", ()) if _is_sql(services.get(name))), None)
    steps = [step for step in facts.steps if step.argv or len(step.candidates) == 1]
    if store is None or len(steps) != 1 or "migrate" in services:
        return None
    step = steps[0]
    if any(migrations.moves(step.tool, _words(other)) for other in services.values()):
        return None
    argv = list(step.argv or step.candidates[0].split())
    added: dict[str, Any] = {"kind": "oneshot", "run": argv, "needs": [store]}
    added |= {key: data[key] for key in _COPIED if key in data}
    stage = _stage(data, facts)
    if stage is not None and stage.entrypoint:
        added |= {"entrypoint": argv[:1], "run": argv[1:]}
    if step.folder != "." and "build" not in data and "workdir" not in data:
        added["workdir"] = f"/workspace/{step.folder}"
    why = (
        f"{problem.service}: a table is missing, and nothing runs the {step.tool} migrations [{step.origin}]"
    )
    changes = {
        ("services", "migrate"): added,
        ("services", store, "setup"): [*services[store].get("setup", ()), "migrate"],
    }
    return Repair(f"{why}; `{' '.join(argv)}` now sets {store} up", changes)


def _is_sql(data: Data | None) -> bool:
    return data is not None and images.family(data.get("image")) in families.SQL


def _words(data: Data) -> str:
    return " ".join(str(word) for key in ("entrypoint", "start", "run") for word in data.get(key) or ())


def _stage(data: Data, facts: Facts) -> Stage | None:
    """The Dockerfile's stage that a service is built from."""
    build = data.get("build")
    if build is None:
        return None
    given = build if isinstance(build, Mapping) else {"context": build}
    file = normal(join(str(given.get("context", ".")), str(given.get("dockerfile", "Dockerfile"))))
    text = facts.view.text(file)
    return stage_of(text, given.get("target")) if text else None

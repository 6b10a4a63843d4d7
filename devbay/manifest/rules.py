"""What a well-formed manifest may still have wrong: rules across services, on paths, and by judgement.

Each rule yields findings; the order of `_RULES` is the order they run in. R1 and most of R5 are in the
models, because the JSON Schema states them too.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from pathlib import Path

from devbay.manifest import graph, images, paths, screening
from devbay.manifest.capabilities import capabilities
from devbay.manifest.diagnostics import Finding, near
from devbay.manifest.diagnostics import Path as KeyPath
from devbay.manifest.models import HOST, Container, Manifest, Service, Task
from devbay.manifest.onhost import asked_of

WORKSPACE = "/workspace"
RUN_DIR = "${run.dir}/"
_APPROVE = "a person approves it with `devbay approve`"
_LEAST_MEMORY = 6 * 1024 * 1024  # the engine refuses less


def check(manifest: Manifest, root: Path | None) -> list[Finding]:
    """Every finding about a well-formed manifest; with `root`, paths are looked at on disk."""
    found: list[Finding] = []
    for rule in (_names, _needs, _primary, _tasks, _without_engine, screening.check):
        found += rule(manifest)
    for path, container in containers(manifest):
        found += _container(path, container, root)
        if isinstance(container, Service):
            found += _service(path, str(path[1]), container)
        if isinstance(container, Task):
            found += _report(path, container, root)
    found += _capabilities(manifest)
    return found


def containers(manifest: Manifest) -> Iterator[tuple[KeyPath, Container]]:
    """Every service and task with its path."""
    for name, service in manifest.services.items():
        yield ("services", name), service
    for name, task in manifest.tasks.items():
        yield ("tasks", name), task


def _error(rule: str, path: KeyPath, message: str, fix: str) -> Finding:
    return Finding("error", rule, path, message, fix)


def _warning(rule: str, path: KeyPath, message: str, fix: str) -> Finding:
    return Finding("warning", rule, path, message, fix)


def _unknown(rule: str, path: KeyPath, name: str, manifest: Manifest) -> Finding:
    guess = near(name, manifest.services)
    known = ", ".join(manifest.services) or "there are none"
    fix = f"write `{guess}`" if guess else f"name a service of this manifest ({known})"
    return _error(rule, path, f"`{name[:60]}` is no service", fix)


def _names(manifest: Manifest) -> Iterator[Finding]:
    if not manifest.services and not manifest.tasks:
        yield _warning(
            "empty", (), "the manifest has neither services nor tasks", "add `services:` or `tasks:`"
        )
    primary = manifest.primary()
    for name in manifest.services[primary].ports if primary else ():
        if name in manifest.services:
            yield _error(
                "ports", ("services", primary or "", "ports", name),
                f"the port {name} of the primary service has the host name of the service {name}",
                f"rename the port, such as `{name}-port`",
            )  # fmt: skip


def _needs(manifest: Manifest) -> Iterator[Finding]:
    sound = True
    for name, service in manifest.services.items():
        for key, wanted in (("needs", service.needs), ("setup", service.setup)):
            for index, other in enumerate(wanted):
                path = ("services", name, key, index)
                if other == name:
                    sound = False
                    yield _error(key, path, f"`{name}` needs itself", f"remove `{name}`")
                elif other not in manifest.services:
                    yield _unknown(key, path, other, manifest)
                elif key == "setup" and manifest.services[other].kind != "oneshot":
                    fix = f"set `kind: oneshot` on {other}, or move it to `needs`"
                    yield _error(key, path, f"`{other}` is no one-shot", fix)
                elif other in wanted[:index]:
                    yield _error(key, path, f"`{other}` is listed twice", "remove one of the two")
    edges = {name: (service.needs, service.setup) for name, service in manifest.services.items()}
    if sound and (circle := graph.cycle(edges)):
        yield _error(
            "cycle", ("services", circle[0], "needs"),
            f"services wait for each other: {' -> '.join(circle)}",
            f"remove `{circle[1]}` from what {circle[0]} needs, or break the circle elsewhere",
        )  # fmt: skip


def _primary(manifest: Manifest) -> Iterator[Finding]:
    declared = [name for name, service in manifest.services.items() if service.primary]
    ported = [name for name, service in manifest.services.items() if service.port is not None]
    for name in declared[1:]:
        message = f"both {declared[0]} and {name} are primary"
        yield _error("primary", ("services", name, "primary"), message, "keep one `primary: true`")
    if not declared and len(ported) > 1:
        guess = next((name for name in ported if not images.family(manifest.services[name].image)), ported[0])
        yield _error(
            "primary", ("services",),
            f"{', '.join(ported)} have ports and none is primary",
            f"add `primary: true` to the service that a browser opens first, such as {guess}",
        )  # fmt: skip
    if manifest.services and not ported:
        yield _warning(
            "ports", ("services",), "no service has a `port`, so the bay has no site", "add `port: <number>`"
        )


def _tasks(manifest: Manifest) -> Iterator[Finding]:
    for name, task in manifest.tasks.items():
        for index, other in enumerate(task.needs):
            path = ("tasks", name, "needs", index)
            if other not in manifest.services:
                yield _unknown("R6", path, other, manifest)
            elif other in task.needs[:index]:
                yield _error("R6", path, f"`{other}` is listed twice", "remove one of the two")
        if task.in_ == HOST:
            yield from _host_task(("tasks", name), task)
        elif task.in_ is not None:
            if task.in_ not in manifest.services:
                yield _unknown("task-image", ("tasks", name, "in"), task.in_, manifest)
        elif not (task.image or task.build) and manifest.task_service(name) is None:
            yield _error(
                "task-image", ("tasks", name),
                "the task has no image, and no application service lends it one",
                "add `in: <service>`, `in: host`, `image: <name:tag>` or `build: <folder>`",
            )  # fmt: skip


def _host_task(path: KeyPath, task: Task) -> Iterator[Finding]:
    """A command of this machine has the bay's worktree, and neither folders nor limits of a container's."""
    workdir = posixpath.normpath(task.workdir) if task.workdir else WORKSPACE
    if workdir != WORKSPACE and not workdir.startswith(f"{WORKSPACE}/"):
        yield _error(
            "path", (*path, "workdir"), "a task `in: host` runs in the worktree",
            f"write a folder of it, such as `{WORKSPACE}/web`",
        )  # fmt: skip


def _without_engine(manifest: Manifest) -> Iterator[Finding]:
    """What `runtime: host` cannot meet; another runtime may be chosen where the file is used."""
    if manifest.runtime != HOST:
        return
    for path, container in containers(manifest):
        if container.build:
            message, fix = "`runtime: host` builds no images", "name an `image` whose tools this machine has"
            yield _warning("runtime", (*path, "build"), message, fix)
        if isinstance(container, Service) and container.docker_socket:
            message = "`runtime: host` has no engine whose socket could be given"
            yield _warning("runtime", (*path, "docker_socket"), message, "remove it, or `runtime: host`")


def _service(path: KeyPath, name: str, service: Service) -> Iterator[Finding]:
    health = service.health
    if health and health.tcp is not None and health.tcp not in service.port_map().values():
        fix = f"add `port: {health.tcp}`" if service.port is None else f"write `tcp: {service.port}`"
        yield _error("R5", (*path, "health", "tcp"), f"{health.tcp} is no port of {name}", fix)
    if health and health.process:
        message = "`process: true` says only that the process has not ended"
        yield _warning(
            "R5", (*path, "health", "process"), message, "probe with `http`, `tcp`, `cmd` or `log`"
        )
    seen = {} if service.port is None else {service.port: "port"}
    for label, number in service.ports.items():
        where = (*path, "ports", label)
        if label == "port":
            yield _error("ports", where, "`port` is the name of the primary port", "choose another name")
        elif number in seen:
            message = f"{number} is already the port `{seen[number]}`"
            yield _error("ports", where, message, "remove it; one port has one name")
        seen.setdefault(number, label)
    for label in service.labels:
        if label.startswith("dev.devbay."):
            fix = "choose another prefix"
            yield _error("labels", (*path, "labels", label), "labels `dev.devbay.*` are devbay's own", fix)


def _container(path: KeyPath, container: Container, root: Path | None) -> Iterator[Finding]:
    yield from _targets(path, container)
    if container.image and _floats(container.image):
        message = f"the tag of {container.image} can change under the bay"
        yield _warning("image", (*path, "image"), message, "name a version, such as `:16-alpine`")
    if container.egress:
        message = "`egress` is not enforced yet: the container reaches every address"
        yield _warning("R4", (*path, "egress"), message, "keep it for later, and do not rely on it")
    memory = container.limits.memory if container.limits else None
    if memory is not None and memory < _LEAST_MEMORY:
        yield _error(
            "limits", (*path, "limits", "memory"), "the engine needs at least 6m", "write `6m` or more"
        )
    inside: list[tuple[KeyPath, str]] = []
    if container.build:
        context, dockerfile = container.build.context, container.build.dockerfile
        inside.append(((*path, "build", "context"), context))
        inside.append(((*path, "build", "dockerfile"), posixpath.join(context, dockerfile)))
    for index, glob in enumerate(container.install_inputs):
        inside.append(((*path, "install_inputs", index), paths.fixed_part(glob)))
    for index, mount in enumerate(container.mounts):
        where = (*path, "mounts", index, "source")
        if paths.in_git_folder(mount.source):
            yield _error("path", where, "git's own files are never mounted", "use the top level key `git`")
        elif not mount.source.startswith("/"):
            inside.append((where, mount.source))
    for where, relative in inside:
        yield from _on_disk(where, relative, root)


def _on_disk(path: KeyPath, relative: str, root: Path | None) -> Iterator[Finding]:
    if root is None:
        return
    if problem := paths.escape_problem(root, relative):
        yield _error("path", path, f"{relative} {problem}", "name a path that stays inside the repository")
    elif path[-2] != "install_inputs" and not (root / relative).exists():
        yield _warning("path", path, f"{relative} does not exist", "correct the path or add the file")


def _targets(path: KeyPath, container: Container) -> Iterator[Finding]:
    """Everything laid over a path in the container: none over another, none over the worktree or its git."""
    base = container.workdir or WORKSPACE
    laid = [
        *(((*path, "mounts", place, "target"), mount.target) for place, mount in enumerate(container.mounts)),
        *(((*path, key, place), target) for key in ("volumes", "caches", "tmpfs")
          for place, target in enumerate(getattr(container, key))),
    ]  # fmt: skip
    seen: dict[str, KeyPath] = {}
    for where, target in laid:
        full = posixpath.normpath(posixpath.join(base, target))
        if full == WORKSPACE:
            message = f"{WORKSPACE} is the worktree itself"
            yield _error(
                "path", where, message, f"name a folder below it, such as `{WORKSPACE}/node_modules`"
            )
        elif full.startswith(f"{WORKSPACE}/") and paths.in_git_folder(full):
            yield _error("path", where, "nothing is laid over git's own files", "use the top level key `git`")
        elif full in seen:
            other = "/".join(str(part) for part in seen[full])
            yield _error("path", where, f"{full} is already taken by {other}", "remove one of the two")
        seen.setdefault(full, where)


def _report(path: KeyPath, task: Task, root: Path | None) -> Iterator[Finding]:
    if task.report is None or task.report == "auto":
        return
    where = (*path, "report", "path")
    relative = task.report.path.removeprefix(RUN_DIR)
    if not paths.parts(relative):
        yield _error("path", where, "a report is a file, not a whole folder", "write `${run.dir}/junit.xml`")
    if "${" in relative:
        fix = "write `${run.dir}/` at its start or nowhere"
        yield _error("R7", where, "only `${run.dir}/` at its start is filled in here", fix)
    elif paths.in_git_folder(relative):
        yield _error(
            "path", where, "a report is not kept in git's own folder", "write `${run.dir}/junit.xml`"
        )
    elif relative == task.report.path and root and (problem := paths.escape_problem(root, relative)):
        yield _error("path", where, f"{relative} {problem}", "write `${run.dir}/junit.xml`")


def _floats(image: str) -> bool:
    if "@" in image:
        return False
    _, separator, tag = image.rsplit("/", 1)[-1].partition(":")
    return not separator or tag == "latest"


def _capabilities(manifest: Manifest) -> Iterator[Finding]:
    for each in capabilities(manifest):
        path: KeyPath = tuple(int(part) if part.isdigit() else part for part in each.path.split("/"))
        yield Finding("approval", each.kind, path, each.detail, _APPROVE)
    for service, task, _ in asked_of(manifest, whole=manifest.runtime == HOST):
        where: KeyPath = ("services", service) if service else ("tasks", task or "")
        yield Finding("approval", HOST, where, "runs commands on this machine itself", _APPROVE)

"""From a manifest and a bay's surroundings to resolved service and task specs. Pure.

The rules on where paths lie: the worktree is mounted at its own host path; a path given relative to the
repository, or below `/workspace`, becomes a path below the worktree (decision 2).
"""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from devbay.errors import DevbayError
from devbay.manifest import Addresses, Manifest, Service, Task, resolve
from devbay.manifest.images import family
from devbay.manifest.interpolate import Plane
from devbay.manifest.models import HOST
from devbay.runtimes.base import BayRef, BindMount, BuildSpec, ServiceSpec
from devbay.runtimes.host import rewrite

WORKSPACE = PurePosixPath("/workspace")


@dataclass(frozen=True)
class Surroundings:
    """What a bay adds to its manifest.

    git_mounts and git_env make git work inside containers; secret(ref) yields a value or raises.
    host_ports maps (service, port name) to the host port. plane: where the bay's processes stand, by which
    addresses are given to them: in containers, or on this machine.
    """

    ref: BayRef
    worktree: Path
    addresses: Addresses
    host_ports: Mapping[tuple[str, str], int]
    secret: Callable[[str], str]
    git_mounts: tuple[BindMount, ...] = ()
    git_env: Mapping[str, str] = field(default_factory=dict)
    plane: Plane = "container"
    main_worktree: Path | None = None


def service_spec(manifest: Manifest, name: str, around: Surroundings) -> ServiceSpec:
    """The spec of one service; raises `secret_missing` if a secret it is given cannot be had."""
    service = manifest.services[name]
    command = service.run if service.kind == "oneshot" else service.start
    spec = _base(service, name, around)
    ports = {
        port: (inner, around.host_ports[name, port])
        for port, inner in service.port_map().items()
        if (name, port) in around.host_ports  # a bay that never started has none yet
    }
    env: Mapping[str, str] = service.env
    if around.plane == "host":  # before references are filled in: those are other services' ports
        env = rewrite.env(env, rewrite.Given(dict(ports.values()))).env
    return dataclasses.replace(
        spec,
        kind=service.kind,
        entrypoint=service.entrypoint,
        command=command,
        env=_env(manifest, name, env, around, worktree=spec.worktree is not None, run_dir=None),
        restart=service.restart,
        labels=dict(service.labels),
        ports=ports,
        health=service.health,
    )


def task_spec(
    manifest: Manifest, name: str, args: Sequence[str], around: Surroundings, *, run_dir: Path
) -> ServiceSpec:
    """The spec of one run of a task: in the container of a service, in its own, or in none (`in: host`).

    A task runs exactly its argv: no image's or service's entry point stands before it, no port is
    published, no restart policy or probe applies.
    """
    task = manifest.tasks[name]
    host = manifest.task_service(name)
    env: dict[str, str] = {}
    if task.image or task.build or task.in_ == HOST:
        spec = _base(task, f"task--{name}", around)  # no service can have such a name
    elif host is None:
        raise DevbayError(
            "no_task_container",
            f"task {name!r} has no image and there is no service whose image it could run in",
            next=f"add `in: <service>` or `image: <name:tag>` to tasks/{name} in devbay.yaml",
        )
    else:
        service = manifest.services[host]
        spec = _base(service, host, around)
        env.update(service.env)
        if task.workdir:
            spec = dataclasses.replace(spec, workdir=_inside(task.workdir, around.worktree))
        if task.limits:
            spec = dataclasses.replace(spec, limits=task.limits)
    env.update(task.env)
    resolved = _env(manifest, host or name, env, around, worktree=True, run_dir=str(run_dir))
    return dataclasses.replace(
        spec,
        kind="task",
        worktree=around.worktree,
        git_mounts=around.git_mounts,
        workdir=spec.workdir or (str(around.worktree) if not spec.build else None),
        entrypoint=(),
        command=(*task.run, *args),
        peers=tuple(manifest.services),
        env={**resolved, "DEVBAY_TASK": name, "DEVBAY_RUN_DIR": str(run_dir)},
    )


def config_hash(spec: ServiceSpec, fingerprint: str, key: str) -> str:
    """32 hex over all that makes a running service outdated when it changes; keyed, since env holds secrets.

    `fingerprint` stands for the content of image, build context and install inputs.
    """
    data = dataclasses.asdict(dataclasses.replace(spec, health=None, config_hash="", bay=_NOBODY))
    del data["main_worktree"]  # that the checkout moved makes no service outdated
    text = json.dumps([data, fingerprint], default=_plain, sort_keys=True)
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()[:32]


_NOBODY = BayRef("", "", "", "", "")


def _plain(value: object) -> Any:
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    raise TypeError(type(value).__name__)


def _base(part: Service | Task, name: str, around: Surroundings) -> ServiceSpec:
    """What services and tasks with an image of their own have in common."""
    worktree = around.worktree
    gets_worktree = wants_worktree(part)
    workdir = _inside(part.workdir, worktree) if part.workdir else None
    if workdir is None and gets_worktree and not part.build:
        workdir = str(worktree)
    build = None
    if part.build:
        build = BuildSpec(
            context=worktree / part.build.context,
            dockerfile=part.build.dockerfile,
            target=part.build.target,
            args=dict(part.build.args),
        )
    return ServiceSpec(
        bay=around.ref,
        name=name,
        kind="task",
        image=part.image,
        build=build,
        platform=part.platform,
        install=part.install,
        install_inputs=part.install_inputs,
        install_scripts=part.install_scripts,
        user=part.user,
        workdir=workdir,
        worktree=worktree if gets_worktree else None,
        main_worktree=around.main_worktree,
        git_mounts=around.git_mounts if gets_worktree else (),
        mounts=tuple(
            BindMount(_source(m.source, worktree), _inside(m.target, worktree)) for m in part.mounts
        ),
        volumes=tuple(_volume(path, worktree, workdir) for path in part.volumes),
        caches=tuple(_inside(path, worktree) for path in part.caches),
        tmpfs=tuple(_inside(path, worktree) for path in part.tmpfs),
        shm_size=part.shm_size,
        limits=part.limits,
        docker_socket=isinstance(part, Service) and part.docker_socket,
    )


def wants_worktree(part: Service | Task) -> bool:
    """Whether the worktree is mounted (decision 26): into every task, all that is built, and pulled images
    that are given something to run, install or keep beside the sources, unless their family runs nothing of
    the user's.
    """
    if isinstance(part, Task) or part.build is not None:
        return True
    if family(part.image):
        return False
    relative = any(not path.startswith("/") for path in part.volumes)
    return bool(part.install or part.start or part.run or part.workdir or relative)


def _inside(path: str, worktree: Path) -> str:
    """A relative path, or one below `/workspace`, as a path below the worktree; any other as it is."""
    pure = PurePosixPath(path)
    if not pure.is_absolute():
        return str(worktree / pure)
    if pure == WORKSPACE or WORKSPACE in pure.parents:
        return str(worktree / pure.relative_to(WORKSPACE))
    return path


def _volume(path: str, worktree: Path, workdir: str | None) -> str:
    """Volumes are relative to the working directory; a built image's own one only the runtime knows."""
    pure = PurePosixPath(path)
    if pure.is_absolute():
        return _inside(path, worktree)
    return str(PurePosixPath(workdir) / pure) if workdir else path


def _source(path: str, worktree: Path) -> str:
    return path if PurePosixPath(path).is_absolute() else str(worktree / path)


def _env(
    manifest: Manifest,
    receiver: str,
    env: Mapping[str, str],
    around: Surroundings,
    *,
    worktree: bool,
    run_dir: str | None,
) -> dict[str, str]:
    resolved = {
        key: resolve(
            value,
            manifest=manifest,
            plane=around.plane,
            addresses=around.addresses,
            secret=around.secret,
            run_dir=run_dir,
        )
        for key, value in env.items()
    }
    own = {
        "DEVBAY_BAY": around.ref.name,
        "DEVBAY_PROJECT": around.ref.project,
        "DEVBAY_SERVICE": receiver,
    }
    return {**(around.git_env if worktree else {}), **resolved, **own}

"""What one container is made from, and the engine's form of it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from devbay.errors import DevbayError
from devbay.manifest.models import Limits
from devbay.runtimes.base import BindMount
from devbay.runtimes.docker.archives import Entry
from devbay.runtimes.docker.engine import EngineInfo

WORKSPACE = "/workspace"
LOG_CONFIG = {"Type": "json-file", "Config": {"max-size": "32m", "max-file": "2"}}
"""Readable whatever the engine's default is, and a service that floods its log cannot fill the disk."""


@dataclass(frozen=True)
class ContainerSpec:
    """Everything one container is made from.

    env: with secrets, never shown. volumes: path in the container to volume name. ports: port of the
    container to port of 127.0.0.1. network: name; None is the engine's default bridge. files: put in before
    the start. worktree: absolute path that `/workspace` becomes a link to, None for no link; it must be
    among `binds`. stop_timeout_s: seconds between TERM and KILL.
    """

    name: str
    image: str
    command: tuple[str, ...] | None = None
    entrypoint: tuple[str, ...] | None = None
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    workdir: str | None = None
    user: str | None = None
    binds: tuple[BindMount, ...] = ()
    volumes: Mapping[str, str] = field(default_factory=dict)
    tmpfs: tuple[str, ...] = ()
    shm_size: int | None = None
    limits: Limits | None = None
    restart: str = "no"
    ports: Mapping[int, int] = field(default_factory=dict)
    network: str | None = None
    aliases: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    platform: str | None = None
    init: bool = False
    stop_timeout_s: int = 10
    files: tuple[Entry, ...] = ()
    worktree: str | None = None


def create_body(spec: ContainerSpec, info: EngineInfo) -> dict[str, Any]:
    """The body of `POST /containers/create`. Limits beyond what the engine has are cut to what it has."""
    host: dict[str, Any] = {
        "Mounts": _mounts(spec),
        "Tmpfs": dict.fromkeys(spec.tmpfs, _tmpfs_owner(spec.user)),
        "RestartPolicy": {"Name": spec.restart},
        "NetworkMode": spec.network or "bridge",
        "LogConfig": LOG_CONFIG,
        "PortBindings": {
            f"{inner}/tcp": [{"HostIp": "127.0.0.1", "HostPort": str(outer)}]
            for inner, outer in spec.ports.items()
        },
    }
    if spec.shm_size is not None:
        host["ShmSize"] = spec.shm_size
    if spec.init and info.init:
        host["Init"] = True
    if spec.limits is not None and info.limits:
        host |= _limits(spec.limits, info)
    body: dict[str, Any] = {
        "Image": spec.image,
        "Env": [f"{name}={value}" for name, value in spec.env.items()],
        "Labels": dict(spec.labels),
        "ExposedPorts": {f"{inner}/tcp": {} for inner in spec.ports},
        "StopTimeout": spec.stop_timeout_s,
        "Healthcheck": {"Test": ["NONE"]},  # devbay probes; the image's own check would cost CPU at rest
        "HostConfig": host,
    }
    if spec.command is not None:
        body["Cmd"] = list(spec.command)
    if spec.entrypoint is not None:
        body["Entrypoint"] = list(spec.entrypoint)
    if spec.workdir is not None:
        body["WorkingDir"] = spec.workdir
    if spec.user is not None:
        body["User"] = spec.user
    if spec.network is not None:
        body["NetworkingConfig"] = {"EndpointsConfig": {spec.network: {"Aliases": list(spec.aliases)}}}
    return body


def with_workspace_mounts(spec: ContainerSpec) -> ContainerSpec:
    """`spec` for an image with a folder `/workspace` of its own: instead of the link, the worktree and all
    that is mounted at or below it is mounted there a second time (decision 2).
    """
    root = spec.worktree
    if root is None:
        return spec
    again = tuple(
        replace(bind, target=_moved(bind.target, root)) for bind in spec.binds if _within(bind.target, root)
    )
    volumes = {_moved(path, root): name for path, name in spec.volumes.items() if _within(path, root)}
    tmpfs = tuple(_moved(path, root) for path in spec.tmpfs if _within(path, root))
    return replace(
        spec,
        binds=spec.binds + again,
        volumes={**spec.volumes, **volumes},
        tmpfs=spec.tmpfs + tmpfs,
        worktree=None,
    )


def refuse_files_in_binds(spec: ContainerSpec) -> None:
    """An entry at or below a bind would change files of this machine; volumes laid over a bind are fine."""
    for entry in spec.files:
        holding = [
            path for path in (*spec.volumes, *(b.target for b in spec.binds)) if _within(entry.path, path)
        ]
        nearest = max(holding, key=lambda path: len(posixpath.normpath(path)), default=None)
        if nearest is not None and nearest not in spec.volumes:
            raise DevbayError(
                "unsafe_file",
                f"{entry.path} in {spec.name} lies in the mounted folder {nearest} of this machine",
            )


def _mounts(spec: ContainerSpec) -> list[dict[str, Any]]:
    # `Mounts`, not `Binds`: a bind whose source is missing is an error, and is not made as root's folder
    binds = [
        {"Type": "bind", "Source": bind.source, "Target": bind.target, "ReadOnly": bind.read_only}
        for bind in spec.binds
    ]
    volumes = [{"Type": "volume", "Source": name, "Target": path} for path, name in spec.volumes.items()]
    return binds + volumes


def _tmpfs_owner(user: str | None) -> str:
    """Over a folder that exists a tmpfs takes its mode but root as owner (runc 1.1), so a numeric user is
    named; elsewhere it is open to all anyway.
    """
    owner = re.fullmatch(r"(\d+)(?::(\d+))?", user or "")
    return f"uid={owner[1]},gid={owner[2] or owner[1]}" if owner else ""


def _limits(limits: Limits, info: EngineInfo) -> dict[str, Any]:
    wanted: dict[str, Any] = {}
    if limits.memory is not None:
        wanted |= {"Memory": limits.memory, "MemorySwap": limits.memory}
    if limits.cpus is not None:
        wanted["NanoCpus"] = int(min(limits.cpus, info.cpus) * 1e9)
    if limits.pids is not None:
        wanted["PidsLimit"] = limits.pids
    return wanted


def _within(path: str, root: str) -> bool:
    path, root = posixpath.normpath(path), posixpath.normpath(root)
    return path == root or path.startswith(root.rstrip("/") + "/")


def _moved(path: str, root: str) -> str:
    return posixpath.normpath(posixpath.join(WORKSPACE, posixpath.relpath(path, root)))

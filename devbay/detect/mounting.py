"""What a stack lays over paths of a container: the repository's kept, everything else asked about."""

from __future__ import annotations

import posixpath
import re

from devbay.detect.containers import Placed
from devbay.detect.draft import Draft
from devbay.detect.files import View, normal
from devbay.detect.stack import VolumeFact

SOCKET = re.compile(r"(^|/)(docker|podman|containerd)\.sock$")
WORKSPACE = "/workspace"


def put(one: Placed, draft: Draft, view: View) -> None:
    """The mounts, volumes and memory folders of a service."""
    part, here = one.part, ("services", one.name)
    mounts: dict[str, str] = {}
    volumes: list[str] = []
    memory = [path.partition(":")[0] for path in part.tmpfs]
    for volume in part.volumes:
        target = posixpath.normpath(volume.target)
        if volume.kind in ("volume", "anonymous"):
            volumes.append(target)
        elif volume.kind == "tmpfs":
            memory.append(target)
        elif _usable(one, volume, draft):
            source = normal(volume.source)
            if target == WORKSPACE or target.startswith(f"{WORKSPACE}/"):
                draft.put((*here, "workdir"), part.workdir or target, part.at("volumes"))
                continue
            mounts[target] = source if source == "." else f"./{source}"
            if view.exists(posixpath.join(source, "package.json")):
                volumes.append(posixpath.join(target, "node_modules"))  # else hidden behind the mount
    for file, target in part.secrets:
        if file is not None and view.exists(file):
            mounts[target] = f"./{normal(file)}"
        else:
            text = f"the secret {target} is no file of the repository"
            draft.ask(f"services/{one.name}/mounts", text, origin=part.at("secrets"))
    if mounts:
        listed = [{"source": source, "target": target} for target, source in mounts.items()]
        draft.put((*here, "mounts"), listed, part.at("volumes" if part.volumes else "secrets"))
    if kept := [path for path in dict.fromkeys(volumes) if path not in mounts]:
        draft.put((*here, "volumes"), kept, part.at("volumes"))
    if memory:
        draft.put((*here, "tmpfs"), list(dict.fromkeys(memory)), part.at("tmpfs"))


def shared(placed: dict[str, Placed], draft: Draft) -> None:
    """Say which named volumes several services share: in a bay each service has its own."""
    users: dict[str, list[str]] = {}
    for one in placed.values():
        for volume in one.part.volumes:
            if volume.kind == "volume" and volume.source:
                users.setdefault(volume.source, []).append(one.name)
    for name, services in users.items():
        if len(set(services)) > 1:
            listed = ", ".join(dict.fromkeys(services))
            draft.ask("services", f"{listed} share the volume {name}; in a bay each has one of its own")


def _usable(one: Placed, volume: VolumeFact, draft: Draft) -> bool:
    where, about = one.part.at("volumes"), f"services/{one.name}/mounts"
    if SOCKET.search(volume.source) or SOCKET.search(volume.target):
        text = f"{one.part.name} wants the engine's socket (docker.sock), and with it this machine: left out"
        draft.ask(f"services/{one.name}/docker_socket", text, "docker_socket: true", origin=where)
    elif volume.unset:
        text = f"the host path at {volume.target} depends on {', '.join(volume.unset)}, which has no value"
        draft.ask(about, text, origin=where)
    elif not volume.inside:
        folder = posixpath.basename(volume.target)
        text = f"a host path outside the repository is not mounted ({folder}): does {one.part.name} need it?"
        draft.ask(about, text, origin=where)
    else:
        return True
    return False

"""What in a manifest reaches beyond the bay's containers and so waits for a person (decision 20)."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from devbay.manifest import images
from devbay.manifest.interpolate import references, secret_refs
from devbay.manifest.models import Container, Manifest, Service

Kind = Literal["docker_socket", "mount", "git", "install_scripts", "secret", "host"]


@dataclass(frozen=True)
class Capability:
    """One thing to approve. key: 32 hex over kind and content; path: slash-separated keys of the receiver.

    service, task: who gets it; both None means every container of the bay.
    """

    key: str
    kind: Kind
    path: str
    service: str | None
    task: str | None
    summary: str
    detail: str


def capabilities(manifest: Manifest) -> tuple[Capability, ...]:
    """Every capability that the manifest asks for, in the order of the file."""
    found: list[Capability] = []
    if manifest.git == "rw":
        detail = "git: rw lets every container of a bay that has the worktree commit and move branches"
        found.append(capability("git", "git", None, None, "write to the git repository", detail, "rw"))
    for name, service in manifest.services.items():
        found += _of_container(manifest, service, f"services/{name}", name, None)
    for name, task in manifest.tasks.items():
        found += _of_container(manifest, task, f"tasks/{name}", None, name)
    return tuple(found)


def _of_container(
    manifest: Manifest, container: Container, path: str, service: str | None, task: str | None
) -> Iterator[Capability]:
    """The content that a key covers is what would make another approval necessary if it changed."""
    who = service or f"task {task}"
    if isinstance(container, Service) and container.docker_socket:
        runs = container.model_dump(
            mode="json", include={"image", "build", "entrypoint", "start", "run", "install", "user"}
        )
        detail = f"the engine's socket gives {who} ({_origin(container)}) control of this machine"
        yield capability(
            "docker_socket",
            f"{path}/docker_socket",
            service,
            task,
            f"{who}: the engine's socket",
            detail,
            runs,
        )
    for index, mount in enumerate(container.mounts):
        if mount.source.startswith("/"):
            yield capability(
                "mount", f"{path}/mounts/{index}", service, task,
                f"{who}: {mount.source} of this machine",
                f"{mount.source} is mounted read-write at {mount.target} in {who}",
                [mount.source, mount.target, container.image],
            )  # fmt: skip
    if container.install_scripts:
        yield capability(
            "install_scripts", f"{path}/install_scripts", service, task,
            f"{who}: packages run scripts when installed",
            f"{json.dumps(list(container.install or ()))} runs the install scripts of every dependency",
            list(container.install or ()),
        )  # fmt: skip
    receivers: dict[str, list[str]] = {}
    for variable, value in container.env.items():
        for ref in received_secrets(value, manifest):
            receivers.setdefault(ref, []).append(variable)
    for ref, variables in receivers.items():
        yield capability(
            "secret", f"{path}/env/{variables[0]}", service, task,
            f"{who}: the secret {ref}",
            f"{who} ({_origin(container)}) reads the secret {ref} as {', '.join(variables)}",
            ref,
        )  # fmt: skip


def received_secrets(value: str, manifest: Manifest) -> tuple[str, ...]:
    """The secrets in an env value: named in it, or in the login of a service whose address it holds."""
    found = list(secret_refs(value))
    for reference in references(value):
        service = manifest.services.get(reference.service or "")
        if service is None:
            continue
        access = dataclasses.asdict(images.access(service.image, service.env))
        fields = access if reference.field == "url" else {reference.field}
        for field in fields:
            found += secret_refs(access.get(field) or "")
    return tuple(dict.fromkeys(found))


def _origin(container: Container) -> str:
    if container.build:
        return f"built from {container.build.context}"
    return container.image or "in a service's image"


def capability(
    kind: Kind, path: str, service: str | None, task: str | None, summary: str, detail: str, content: object
) -> Capability:
    """A capability whose key covers `content`, any JSON value."""
    text = json.dumps([kind, service, task, content], sort_keys=True, ensure_ascii=False)
    key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return Capability(key, kind, path, service, task, summary, detail)

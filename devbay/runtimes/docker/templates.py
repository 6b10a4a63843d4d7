"""What an install is, decided before anything is done: its key, its command, and where its paths lie."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Literal, Protocol

from devbay.names import site_label
from devbay.runtimes.base import ServiceSpec
from devbay.runtimes.docker.images import ImageInfo
from devbay.runtimes.docker.users import Identity
from devbay.runtimes.inputs import InputFile, install_inputs, without_scripts

WORKSPACE = "/workspace"
_FORMAT = 1  # counted up when installs are done otherwise, so that older results are not taken


@dataclass(frozen=True)
class Template:
    """The result of one install, or the intent to make it.

    image: id of what to start from, the service's own image where the install changed nothing but volumes.
    committed: the image was made here and goes with the template. volumes: path in the install's container
    (`/workspace/...` for those of the worktree) to volume. notes: what a person should know. size: bytes.
    """

    key: str
    state: Literal["building", "ready"]
    image: str = ""
    committed: bool = False
    volumes: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    size: int = 0
    last_used_at: str = ""


class TemplateStore(Protocol):
    """What must be remembered of templates. Every method is one transaction, also between processes.

    A holder is any text that is unique to one use of one template, such as `<bay id>/<service>/<key>`.
    """

    def template(self, key: str) -> Template | None: ...

    def templates(self) -> list[Template]:
        """All of them, least recently used first."""

    def begin_template(self, key: str) -> None:
        """Write the intent: state `building`, replacing whatever was under the key."""

    def finish_template(self, template: Template) -> None:
        """The template is whole: state `ready`, used now."""

    def hold_template(self, key: str, bay: str, holder: str) -> Template | None:
        """If it is ready: count the holder, mark it used now, and return it; else None."""

    def held(self, key: str) -> int:
        """How many holders it has."""

    def forget_template(self, key: str) -> bool:
        """Drop the record unless it has holders; False if it has."""

    def release_templates(self, bay: str, *, service: str = "", keep: str = "") -> None:
        """Drop a bay's holders: all, or those of one service (`<bay>/<service>/...`), except `keep`."""


@dataclass(frozen=True)
class InstallPlan:
    """Everything one install runs with. volumes: container paths whose content belongs to the result, the
    home among them. scratch: paths that the image declares volumes; each bay has its own data there, so what
    an install writes to them is dropped. owner: `uid:gid` that the volumes are given to afterwards. user: who
    runs the command.
    """

    key: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    workdir: str
    user: str
    owner: str | None
    files: Mapping[str, InputFile]
    volumes: tuple[str, ...]
    scratch: tuple[str, ...]
    caches: tuple[str, ...]
    dropped_env: tuple[str, ...]


def placed(path: str, spec: ServiceSpec, workdir: str = WORKSPACE) -> str:
    """A container path as the install sees it: the worktree's path is `/workspace`; relative ones are below
    the working directory.
    """
    pure = PurePosixPath(workdir) / path
    if spec.worktree is not None and pure.is_relative_to(spec.worktree):
        pure = PurePosixPath(WORKSPACE) / pure.relative_to(spec.worktree)
    return str(pure)


def plan_install(
    spec: ServiceSpec,
    image: ImageInfo,
    identity: Identity,
    files: Sequence[InputFile],
    source: str | None,
    *,
    salt: str,
) -> InstallPlan:
    """The install of a service. `files` and `source` are what `read_inputs` gives.

    The key is public (labels carry it) and covers the environment, so it is salted with a secret.
    """
    argv, env = spec.install or (), dict[str, str]()
    if not spec.install_scripts:
        argv, env = without_scripts(argv)
    portable, dropped = portable_env(spec)
    workdir = placed(spec.workdir or image.workdir or "/", spec)
    volumes = {placed(path, spec, workdir) for path in spec.volumes}
    if identity.home and spec.user is None:
        volumes.add(identity.home)
    user = "0:0" if spec.user is None else (image.user or "0:0") if spec.user == "image" else spec.user
    owner = f"{identity.uid}:{identity.gid}" if spec.user is None and identity.uid is not None else None
    if spec.user is None:
        env = {**identity.env, **env}
    places = _places(spec, workdir, files, source)
    caches = tuple(sorted({placed(path, spec, workdir) for path in spec.caches}))
    identified = [
        [_FORMAT, image.id, spec.platform, user, owner, workdir, list(argv)],
        sorted({**portable, **env}.items()),
        sorted(volumes),
        list(caches),
        sorted((place, file.executable, hashlib.sha256(file.data).hexdigest()) for place, file in places),
    ]
    return InstallPlan(
        key=hmac.new(salt.encode(), json.dumps(identified).encode(), hashlib.sha256).hexdigest()[:32],
        argv=tuple(argv),
        env={**portable, **env},
        workdir=workdir,
        user=user,
        owner=owner,
        files=dict(places),
        volumes=tuple(sorted(volumes)),
        scratch=tuple(path for path in image.volumes if path not in volumes and path not in caches),
        caches=caches,
        dropped_env=dropped,
    )


def read_inputs(spec: ServiceSpec, image: ImageInfo) -> tuple[tuple[InputFile, ...], str | None]:
    """The input files, and the folder of the worktree (relative) that the install runs in, if any."""
    if spec.worktree is None or spec.install is None:
        return (), None
    source = source_folder(spec, image)
    return install_inputs(spec.worktree, source or ".", spec.install, spec.install_inputs), source


def source_folder(spec: ServiceSpec, image: ImageInfo) -> str | None:
    """The folder of the worktree that the working directory is, directly or through a mount; None for one
    of the image's own.
    """
    if spec.worktree is None:
        return None
    workdir = PurePosixPath(placed(spec.workdir or image.workdir or "/", spec))
    if workdir.is_relative_to(WORKSPACE):
        return str(workdir.relative_to(WORKSPACE))
    for mount in sorted(spec.mounts, key=lambda mount: len(mount.target), reverse=True):
        source = PurePosixPath(mount.source)
        if workdir.is_relative_to(mount.target) and source.is_relative_to(spec.worktree):
            return str(source.relative_to(spec.worktree) / workdir.relative_to(mount.target))
    return None


def portable_env(spec: ServiceSpec) -> tuple[dict[str, str], tuple[str, ...]]:
    """The service's environment without what differs from bay to bay or run to run, and the names left out.

    An install runs once for all, so it must see no bay's name, host, id or folder, and no run's folder.
    """
    marks = [site_label(spec.bay.name, spec.bay.project), spec.bay.id, spec.env.get("DEVBAY_RUN_DIR", "")]
    if spec.worktree is not None:
        marks.append(str(spec.worktree))
    own = ("DEVBAY_", "GIT_CONFIG_")
    kept = {
        name: value
        for name, value in spec.env.items()
        if not name.startswith(own) and not any(mark and mark in value for mark in marks)
    }
    return kept, tuple(name for name in spec.env if name not in kept and not name.startswith(own))


def _places(
    spec: ServiceSpec, workdir: str, files: Sequence[InputFile], source: str | None
) -> list[tuple[str, InputFile]]:
    """Where each input lies in the container: below `/workspace`, and again where a mount shows it to a
    working directory elsewhere.
    """
    places = [(f"{WORKSPACE}/{file.path}", file) for file in files]
    if source is None or PurePosixPath(workdir).is_relative_to(WORKSPACE):
        return places
    for file in files:
        path = PurePosixPath(file.path)
        if path.is_relative_to(source):
            places.append((str(PurePosixPath(workdir) / path.relative_to(source)), file))
    return places


def worth_keeping(changes: Sequence[Mapping[str, Any]], mounted: Sequence[str]) -> bool:
    """Whether a container's difference (`GET /containers/{id}/changes`) holds anything but traces.

    Traces are folders that lead to other changes or mount points, `/workspace`, temporary files, npm's cache,
    and the compiled files that any run of Python leaves.
    """
    paths = [PurePosixPath(change["Path"]) for change in changes]
    leading = {parent for path in (*paths, *map(PurePosixPath, mounted)) for parent in path.parents}
    hidden = (*mounted, WORKSPACE, "/tmp", "/var/tmp", "/run", "/dev", "/proc", "/sys")  # noqa: S108
    return any(
        path not in leading
        and not any(path.is_relative_to(place) for place in hidden)
        and not {"__pycache__", ".npm"} & set(path.parts)
        for path in paths
    )


def lost_paths(changes: Sequence[Mapping[str, Any]], plan: InstallPlan) -> tuple[str, ...]:
    """What the install wrote into the workspace beside its inputs and volumes, which no bay will see: the
    topmost paths, relative to the worktree.
    """
    known = {*plan.files, *plan.volumes, *plan.caches}
    above = {str(parent) for path in known for parent in PurePosixPath(path).parents}
    lost: list[str] = []
    for path in sorted(str(change["Path"]) for change in changes if change["Kind"] == 1):
        pure = PurePosixPath(path)
        if not pure.is_relative_to(WORKSPACE) or path in known or path in above or path == WORKSPACE:
            continue
        if any(pure.is_relative_to(place) for place in (*lost, *plan.volumes, *plan.caches)):
            continue
        lost.append(path)
    return tuple(str(PurePosixPath(path).relative_to(WORKSPACE)) for path in lost)

"""The volumes of one service of one bay: forks of what was installed, and fresh ones for everything else."""

from __future__ import annotations

import hashlib
import secrets
import tarfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import IO, cast

from devbay.errors import WORK_FAILED, DevbayError
from devbay.jobs import Job
from devbay.runtimes.base import ServiceSpec
from devbay.runtimes.docker import archives, containers, volumes
from devbay.runtimes.docker.engine import Engine
from devbay.runtimes.docker.images import ImageInfo
from devbay.runtimes.docker.install import cache_labels, cache_volume
from devbay.runtimes.docker.objects import helper_labels
from devbay.runtimes.docker.specs import ContainerSpec
from devbay.runtimes.docker.templates import Template, placed
from devbay.runtimes.docker.users import Identity


def volume_paths(spec: ServiceSpec, image: ImageInfo, identity: Identity) -> tuple[str, ...]:
    """The container paths of a service that have a volume of the bay: its own, those that the image declares
    (decision 23) and the home. A declared path with something else mounted on it has none.
    """
    workdir = spec.workdir or image.workdir or "/"
    own = [str(PurePosixPath(workdir) / path) for path in spec.volumes]
    taken = {*(mount.target for mount in spec.mounts), *spec.tmpfs, *spec.caches, *own}
    declared = [path for path in image.volumes if path not in taken]
    home = [identity.home] if identity.home and identity.home not in taken else []
    return tuple(dict.fromkeys((*own, *declared, *home)))


def bay_volume(spec: ServiceSpec, path: str) -> str:
    """The volume's name. The worktree's own path does not count, so that moving it loses nothing."""
    digest = hashlib.sha256(placed(path, spec).encode()).hexdigest()[:8]
    return f"{spec.bay.prefix}-{spec.name}-{digest}"


def mounts(spec: ServiceSpec, image: ImageInfo, identity: Identity) -> dict[str, str]:
    """What every container of the service mounts: path to volume, the bay's own and the shared caches."""
    own = {path: bay_volume(spec, path) for path in volume_paths(spec, image, identity)}
    return {**own, **{path: cache_volume(spec, path) for path in spec.caches}}


@dataclass
class BayVolumes:
    """Makes volumes on one engine. Remembers whether its driver can do overlays, and where images have
    content that the engine copies into a fresh volume.
    """

    engine: Engine
    _can_fork: bool | None = None
    _content: dict[tuple[str, str], bool] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ensure(
        self, spec: ServiceSpec, image: ImageInfo, identity: Identity, template: Template | None, job: Job
    ) -> None:
        """Make what is missing of `mounts`, as forks of the template where it has the path.

        Where the install wrote to a path, that path holds dependencies, and a volume that is no fork of the
        wanted template's is replaced: the service's container must be gone by then (`volume_in_use`).
        Everything else is never touched once it is there. The user gets what the engine copies into a fresh
        volume from the image; the mount point itself is for `Identity.owned`.
        """
        labels = spec.bay.labels(spec.name)
        there = {volume.name: volume for volume in volumes.find(self.engine, labels)}
        workdir = spec.workdir or image.workdir or "/"
        fresh: dict[str, str] = {}
        for path in volume_paths(spec, image, identity):
            job.check()
            name = bay_volume(spec, path)
            source = template.volumes.get(placed(path, spec, workdir)) if template else None
            known = there.get(name)
            if source is not None and template is not None:
                if known is None or known.labels.get(volumes.TEMPLATE_LABEL) != source:
                    volumes.remove_fork(self.engine, name)
                    known = None
                complete = known is not None and name + volumes.SCRATCH_SUFFIX in there
                self._fork(name, source, labels, template.image, complete=complete)
            elif known is None or volumes.TEMPLATE_LABEL in known.labels:
                volumes.remove_fork(self.engine, name)
                volumes.ensure(self.engine, name, labels)
                fresh[path] = name
        for path in spec.caches:
            name = cache_volume(spec, path)
            if volumes.inspect(self.engine, name) is None:
                volumes.ensure(self.engine, name, cache_labels(spec, path))
                fresh[path] = name
        if identity.uid is not None and fresh:
            self._give(spec, image, f"{identity.uid}:{identity.gid}", fresh)

    def _give(self, spec: ServiceSpec, image: ImageInfo, owner: str, fresh: Mapping[str, str]) -> None:
        """Change the owner of what fresh volumes get from the image; most get nothing."""
        filled = {path: fresh[path] for path in self._with_content(image, tuple(fresh), spec.bay.home)}
        if filled:
            argv = ("chown", "-hR", owner, *filled)
            self._run(image.id, "owner", argv, filled, spec.bay.labels())

    def _with_content(self, image: ImageInfo, paths: tuple[str, ...], home: str) -> list[str]:
        with self._lock:
            unknown = [path for path in paths if (image.id, path) not in self._content]
            if unknown:
                with self._container("content", image.id, ("true",), {}, helper_labels(home)) as container:
                    for path in unknown:
                        self._content[image.id, path] = _has_entries(self.engine, container, path)
            return [path for path in paths if self._content[image.id, path]]

    def _fork(
        self, name: str, template: str, labels: Mapping[str, str], image: str, *, complete: bool
    ) -> None:
        if self._forks(labels, image):
            volumes.fork(self.engine, name, template, labels, helper_image=image)
        elif not complete:
            self._copy(name, template, labels, image)

    def _forks(self, labels: Mapping[str, str], image: str) -> bool:
        with self._lock:
            if self._can_fork is None:
                self._can_fork = volumes.can_fork(self.engine, labels, helper_image=image)
            return self._can_fork

    def _copy(self, name: str, template: str, labels: Mapping[str, str], image: str) -> None:
        """A full copy where overlays are impossible. The second volume, which a fork needs for its changes,
        is made when the copy is whole, so that half a copy is seen and made again.
        """
        labels = {**labels, volumes.TEMPLATE_LABEL: template}
        volumes.remove_fork(self.engine, name)
        volumes.ensure(self.engine, name, labels)
        argv = ("cp", "-a", "/from/.", "/to/")
        self._run(image, "copy", argv, {"/from": template, "/to": name}, labels)
        volumes.ensure(self.engine, name + volumes.SCRATCH_SUFFIX, labels)

    def _run(
        self,
        image: str,
        name: str,
        argv: tuple[str, ...],
        mounted: Mapping[str, str],
        labels: Mapping[str, str],
    ) -> None:
        """Run a command as root in a throwaway container that sees nothing but volumes."""
        with self._container(name, image, argv, mounted, labels) as container:
            containers.start(self.engine, container, doing=f"run {argv[0]}")
            code = containers.wait(self.engine, container, Job())
        if code != 0:
            raise DevbayError(
                "volume_failed",
                f"`{' '.join(argv)}` in the image {image[:19]} ended with exit code {code}",
                exit_code=WORK_FAILED,
            )

    @contextmanager
    def _container(
        self,
        name: str,
        image: str,
        argv: tuple[str, ...],
        mounted: Mapping[str, str],
        labels: Mapping[str, str],
    ) -> Iterator[str]:
        spec = ContainerSpec(
            name=f"devbay-{name}-{secrets.token_hex(6)}",
            image=image,
            user="0:0",
            entrypoint=argv[:1],
            command=argv[1:],
            volumes=mounted,
            labels=labels,
        )
        container = containers.create(self.engine, spec)
        try:
            yield container
        finally:
            containers.remove(self.engine, container)


def _has_entries(engine: Engine, container: str, path: str) -> bool:
    """Whether a folder of a container holds anything; False if there is none. Only its start is read."""
    if archives.stat(engine, container, path) is None:
        return False
    read = engine.stream("GET", f"/containers/{container}/archive", params={"path": path})
    with read as stream, tarfile.open(fileobj=cast("IO[bytes]", stream), mode="r|") as tar:
        return tar.next() is not None and tar.next() is not None  # the folder itself comes first

"""The volumes of one service of one bay: forks of what was installed, and fresh ones for everything else."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from devbay.errors import WORK_FAILED, DevbayError
from devbay.jobs import Job
from devbay.runtimes.base import ServiceSpec
from devbay.runtimes.docker import containers, volumes
from devbay.runtimes.docker.archives import Entry
from devbay.runtimes.docker.engine import Engine
from devbay.runtimes.docker.images import ImageInfo
from devbay.runtimes.docker.install import cache_labels, cache_volume
from devbay.runtimes.docker.specs import ContainerSpec
from devbay.runtimes.docker.templates import Template, placed
from devbay.runtimes.docker.users import Identity


@dataclass(frozen=True)
class ServiceVolumes:
    """What a container of the service mounts: path to volume, without the caches in `fresh`.

    entries: folders to put into the first container that mounts fresh volumes, which gives them to the user.
    """

    mounts: Mapping[str, str]
    entries: tuple[Entry, ...] = ()


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


@dataclass
class BayVolumes:
    """Makes volumes on one engine; asks once whether its driver can do overlays."""

    engine: Engine
    _can_fork: bool | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ensure(
        self, spec: ServiceSpec, image: ImageInfo, identity: Identity, template: Template | None, job: Job
    ) -> ServiceVolumes:
        """Make what is missing. Where the install wrote to a path, that path holds dependencies, and a volume
        that is no fork of the wanted template's is replaced: the service's container must be gone by then
        (`volume_in_use`). Everything else is never touched once it is there.
        """
        labels = spec.bay.labels(spec.name)
        there = {volume.name: volume for volume in volumes.find(self.engine, labels)}
        workdir = spec.workdir or image.workdir or "/"
        mounts: dict[str, str] = {}
        fresh: list[str] = []
        for path in volume_paths(spec, image, identity):
            job.check()
            name = mounts[path] = bay_volume(spec, path)
            source = template.volumes.get(placed(path, spec, workdir)) if template else None
            known = there.get(name)
            if source is not None and template is not None:
                if known is None or known.labels.get(volumes.TEMPLATE_LABEL) != source:
                    volumes.remove_fork(self.engine, name)
                self._fork(
                    name, source, labels, template.image, complete=name + volumes.SCRATCH_SUFFIX in there
                )
            elif known is None or volumes.TEMPLATE_LABEL in known.labels:
                volumes.remove_fork(self.engine, name)
                volumes.ensure(self.engine, name, labels)
                fresh.append(path)
        for path in spec.caches:
            name = mounts[path] = cache_volume(spec, path)
            if volumes.inspect(self.engine, name) is None:
                volumes.ensure(self.engine, name, cache_labels(spec, path))
                fresh.append(path)
        return ServiceVolumes(mounts, tuple(self._given(fresh, identity)))

    @staticmethod
    def _given(paths: list[str], identity: Identity) -> list[Entry]:
        if identity.uid is None or identity.gid is None:
            return []
        return [Entry(path, "dir", uid=identity.uid, gid=identity.gid) for path in paths]

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
        copier = containers.create(
            self.engine,
            ContainerSpec(
                name=f"{name}-copy",
                image=image,
                user="0:0",
                entrypoint=("cp",),
                command=("-a", "/from/.", "/to/"),
                volumes={"/from": template, "/to": name},
                labels=labels,
            ),
        )
        try:
            containers.start(self.engine, copier, doing=f"copy {template}")
            code = containers.wait(self.engine, copier, Job())
        finally:
            containers.remove(self.engine, copier)
        if code != 0:
            raise DevbayError(
                "install_failed", f"copying {template} ended with exit code {code}", exit_code=WORK_FAILED
            )
        volumes.ensure(self.engine, name + volumes.SCRATCH_SUFFIX, labels)

"""Containers for a service or task of a bay: from its resolved spec to what the engine is asked for."""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Mapping
from pathlib import Path

from devbay.errors import WORK_FAILED, DevbayError
from devbay.runtimes.base import BindMount, ServiceSpec
from devbay.runtimes.docker import archives, bayvolumes, containers, users
from devbay.runtimes.docker.archives import Entry
from devbay.runtimes.docker.engine import Engine
from devbay.runtimes.docker.images import ImageInfo, find_image
from devbay.runtimes.docker.objects import helper_labels, is_of, network_name
from devbay.runtimes.docker.specs import ContainerSpec
from devbay.runtimes.docker.users import Accounts, Identity
from devbay.runtimes.mountpoints import make_mount_points, with_git_kept
from devbay.runtimes.outbound import Outbound

ENGINE_SOCKET = "/var/run/docker.sock"


@dataclasses.dataclass(frozen=True)
class Host:
    """Of this machine: whose worktrees they are, and how containers reach the outside."""

    uid: int
    gid: int
    outbound: Outbound
    env: Mapping[str, str]


class Assembler:
    """Makes containers on one engine. Remembers what it learned of images, and which worktrees it sees."""

    def __init__(self, engine: Engine, home: str, host: Host) -> None:
        self.engine = engine
        self.home = home
        self._host = host
        self._lock = threading.Lock()
        self._accounts: dict[str, Accounts] = {}
        self._images: dict[str, ImageInfo] = {}
        self._visible: set[Path] = set()

    def container_spec(
        self,
        spec: ServiceSpec,
        image: str,
        *,
        name: str,
        labels: Mapping[str, str],
        ports: Mapping[int, int] | None = None,
        restart: str = "no",
        aliases: tuple[str, ...] = (),
        binds: tuple[BindMount, ...] = (),
        env: Mapping[str, str] | None = None,
    ) -> ContainerSpec:
        info = self.image(image)
        who = self.identity(spec, info)
        named = bayvolumes.mounts(spec, info, who)
        mounts: list[BindMount] = []
        if spec.worktree is not None:
            mounts.append(BindMount(str(spec.worktree), str(spec.worktree)))
            mounts += spec.git_mounts
        mounts += [*with_git_kept(spec), *binds]
        if env:
            mounts += self._host.outbound.mounts()
        if spec.docker_socket:
            socket = self.engine.endpoint.socket
            mounts.append(BindMount(str(socket) if socket else ENGINE_SOCKET, ENGINE_SOCKET))
        files = [Entry(path, "file", data, mode=0o644) for path, data in who.files().items()]
        if who.uid is not None:
            uid, gid = who.uid, who.gid or 0
            files += [
                Entry(path, "dir", mode=0o755, uid=uid, gid=gid) for path in dict.fromkeys(who.owned(named))
            ]
        if spec.worktree is not None:
            files_below = [m.target for m in mounts if Path(m.source).is_file()]
            folders = [*named, *(m.target for m in mounts if m.target not in files_below), *spec.tmpfs]
            make_mount_points(spec.worktree, folders, files_below)
        return ContainerSpec(
            name=name,
            image=image,
            command=spec.command,
            entrypoint=spec.entrypoint,
            env={**(env or {}), **who.env, **spec.env},
            workdir=spec.workdir,
            user=who.user,
            binds=tuple(mounts),
            volumes=named,
            tmpfs=spec.tmpfs,
            shm_size=spec.shm_size,
            limits=spec.limits,
            restart=restart,
            ports=ports or {},
            network=network_name(spec.bay),
            aliases=aliases,
            labels=labels,
            platform=spec.platform,
            init=spec.worktree is not None,  # the user's own programs rarely expect to be process 1
            files=tuple(files),
            worktree=str(spec.worktree) if spec.worktree else None,
        )

    def make(self, wanted: ContainerSpec, spec: ServiceSpec) -> str:
        """Create the container; one of that name left by a crash is replaced if it is this bay's."""
        try:
            made = containers.create(self.engine, wanted)
        except DevbayError as error:
            if error.code != "name_conflict":
                raise
            old = containers.inspect(self.engine, wanted.name)
            if old is None or not is_of(old.labels, spec.bay):
                raise
            containers.remove(self.engine, old.id)
            made = containers.create(self.engine, wanted)
        if spec.worktree is not None and spec.worktree not in self._visible:
            try:
                archives.check_visible(self.engine, made, spec.worktree)
            except DevbayError:
                containers.remove(self.engine, made)
                raise
            self._visible.add(spec.worktree)
        return made

    def know(self, image: ImageInfo) -> str:
        """Remember an image; its id."""
        self._images[image.id] = image
        return image.id

    def forget(self, image: str) -> None:
        self._images.pop(image, None)

    def image(self, image: str) -> ImageInfo:
        known = self._images.get(image) or find_image(self.engine, image)
        if known is None:
            raise DevbayError(
                "image_not_found", f"the image {image} is gone from the engine", exit_code=WORK_FAILED
            )
        self._images[image] = known
        return known

    def identity(self, spec: ServiceSpec, image: ImageInfo) -> Identity:
        needed = spec.worktree is not None and spec.user is None
        accounts = self._image_accounts(image.id) if needed else Accounts()
        owner = spec.worktree.stat() if spec.worktree is not None else None
        uid, gid = (owner.st_uid, owner.st_gid) if owner else (self._host.uid, self._host.gid)
        return users.identity(accounts, spec, self.engine.info().kind, uid, gid)

    def _image_accounts(self, image: str) -> Accounts:
        """The image's account files, read once per image through a container that is never started."""
        with self._lock:
            known = self._accounts.get(image)
        if known is not None:
            return known
        helper = containers.create(
            self.engine,
            ContainerSpec(
                name=f"devbay-accounts-{os.urandom(6).hex()}",
                image=image,
                command=("true",),
                labels=helper_labels(self.home),
            ),
        )
        try:
            found = Accounts(
                archives.read_file(self.engine, helper, "/etc/passwd"),
                archives.read_file(self.engine, helper, "/etc/group"),
            )
        finally:
            containers.remove(self.engine, helper)
        with self._lock:
            self._accounts[image] = found
        return found

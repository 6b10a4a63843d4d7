"""From a service's spec to the process that is started for it on this machine."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from devbay.errors import WORK_FAILED, DevbayError
from devbay.home import Home
from devbay.runtimes.base import BindMount, ServiceSpec
from devbay.runtimes.host import rewrite
from devbay.runtimes.host.environment import Folders, environment
from devbay.runtimes.host.hidden import hiding
from devbay.runtimes.host.launch import Launch
from devbay.runtimes.host.machine import Machine
from devbay.runtimes.host.meet import Met
from devbay.runtimes.host.place import Place
from devbay.runtimes.host.sandbox import Disk, bwrap_argv, trial
from devbay.runtimes.host.target import LOOPBACK
from devbay.runtimes.host.view import View, has_workspace
from devbay.runtimes.mountpoints import make_mount_points, with_git_kept
from devbay.runtimes.outbound import Outbound


@dataclasses.dataclass(frozen=True)
class Assembler:
    """How processes are started, for one home and one caller's machine."""

    home: Home
    place: Place
    outbound: Outbound
    machine: Machine

    def launch(
        self,
        spec: ServiceSpec,
        met: Met,
        *,
        name: str,
        words: Sequence[str] | None = None,
        writable: Sequence[Path] = (),
    ) -> Launch:
        """The process of an application service, of a task, or (`words`) of a command beside a service.

        name: of the mark: the service's, or the run's. Raises `no_command`, `needs_namespaces`,
        `unsafe_mount`, `unsafe_mount_point`.
        """
        bay, own = spec.bay, self._folders(spec, met, name)
        argv = tuple(words) if words is not None else (*(spec.entrypoint or ()), *(spec.command or ()))
        if not argv:
            raise DevbayError(
                "no_command",
                f"{spec.name} starts what its image says, and without containers there is no image",
                next=f"write `start: [...]` under services/{spec.name}",
                exit_code=WORK_FAILED,
            )
        if met.is_this_machine:
            return self._on_the_machine(spec, own, argv, name=name)
        view = self._view(spec, met, own, writable)
        sandbox = trial(self.machine.path).sandbox
        prefix: tuple[str, ...] = ()
        worktree = str(spec.worktree) if spec.worktree else None
        if sandbox is not None:
            self._make_mount_points(spec, view)
            prefix = bwrap_argv(view, sandbox, Disk())
            rewritten = None if has_workspace(view) else worktree
        else:
            self._refuse_without_mounts(spec)
            rewritten = worktree
        given = rewrite.Given(dict(spec.ports.values()), rewritten)
        seen = dataclasses.replace(own, tmp=Path("/tmp")) if prefix else own  # noqa: S108 - its own there
        values = rewrite.env(spec.env, rewrite.Given({}, rewritten)).env
        if met.provider is not None and met.server is not None:
            clients = {"PATH": str(met.server.bin), **met.provider.client_env(spec, met.server)}
            values = {**clients, **values}
        env = environment(met.toolchain, seen, self.machine, self.outbound, values)
        if "port" in spec.ports:
            env = {"HOST": LOOPBACK, "PORT": str(spec.ports["port"][1]), **env}
        return Launch(
            mark=f"{bay.home}/{bay.id}/{name}",
            argv=rewrite.argv(argv, given).argv,
            env=env,
            cwd="/" if prefix else view.cwd,
            prefix=prefix,
            restart=spec.restart if spec.kind != "task" else "no",
            limits=spec.limits,
        )

    def _on_the_machine(self, spec: ServiceSpec, own: Folders, argv: tuple[str, ...], *, name: str) -> Launch:
        """A task `in: host`: approved to run as the user himself would run it, outside of every sandbox."""
        env = environment(None, own, self.machine, self.outbound, spec.env)
        env |= {"HOME": str(self.machine.user_home), "PATH": self.machine.path}
        return Launch(
            mark=f"{spec.bay.home}/{spec.bay.id}/{name}",
            argv=rewrite.argv(argv, rewrite.Given({}, str(spec.worktree))).argv,
            env=env,
            cwd=spec.workdir or str(spec.worktree),
            limits=spec.limits,
        )

    def _folders(self, spec: ServiceSpec, met: Met, name: str) -> Folders:
        """What a process writes to; a task has the home of the service whose image it runs in."""

        def own(of: str, kind: str) -> Path:
            folder = self.place.own(spec.bay.id, of, kind)
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            return folder

        caches = self.place.caches / spec.bay.repository
        caches.mkdir(mode=0o700, parents=True, exist_ok=True)
        python = met.toolchain is not None and met.toolchain.family == "python"
        return Folders(
            home=own(spec.name, "home"),
            tmp=own(name, "tmp"),
            caches=caches,
            venv=self.place.venv(spec.bay.id, spec.name) if python else None,
            project_venv=any(PurePosixPath(path).name == ".venv" for path in spec.volumes),
        )

    def _view(self, spec: ServiceSpec, met: Met, own: Folders, writable: Sequence[Path]) -> View:
        hidden = hiding(self.machine.user_home, self.machine.path)
        devbays = (
            self.place.root, self.home.state_dir, self.home.config_dir, self.home.runtime_parent,
            self.home.machine_dir,
        )  # fmt: skip
        main = spec.main_worktree  # with its `.env` files; it may hold the bay's own worktree, which stays
        others = [main] if main is not None and main != spec.worktree else []
        volumes = (BindMount(str(source), path) for path, source in self.volumes(spec).items())
        caches = (BindMount(str(self._cache(spec, path)), path) for path in spec.caches)
        return View(
            worktree=spec.worktree,
            home=own.home,
            tmp=own.tmp,
            cwd=spec.workdir or str(spec.worktree or own.home),
            writable=(own.caches, *([own.venv] if own.venv and own.venv.is_dir() else []), *writable),
            binds=(*volumes, *caches, *with_git_kept(spec)),
            tmpfs=spec.tmpfs,
            shm_size=spec.shm_size,
            hidden=(*hidden.hidden, *devbays, *others),
            visible=(*hidden.visible, *met.folders, *(f for f in self.machine.folders if _in_tmp(f))),
            git_mounts=spec.git_mounts,
        )

    def volumes(self, spec: ServiceSpec) -> dict[str, Path]:
        """Path in the service to the folder behind it: of the bay's own, or in the worktree itself where
        nothing can be mounted.
        """
        sandbox = trial(self.machine.path).sandbox
        found: dict[str, Path] = {}
        for path in spec.volumes:
            absolute = path if path.startswith("/") else str(PurePosixPath(spec.workdir or "/") / path)
            inside = spec.worktree is not None and PurePosixPath(absolute).is_relative_to(spec.worktree)
            if sandbox is None and inside:
                found[absolute] = Path(absolute)
            else:
                found[absolute] = self.place.volume(spec.bay.id, spec.name, absolute)
        return found

    def _cache(self, spec: ServiceSpec, path: str) -> Path:
        folder = self.place.caches / spec.bay.repository / "declared" / path.strip("/").replace("/", "--")
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _make_mount_points(self, spec: ServiceSpec, view: View) -> None:
        if spec.worktree is None:
            return
        binds = (*view.binds, *view.git_mounts)
        files = [m.target for m in binds if Path(m.source).is_file()]
        folders = [*(m.target for m in binds if m.target not in files), *view.tmpfs]
        make_mount_points(spec.worktree, folders, files)

    def _refuse_without_mounts(self, spec: ServiceSpec) -> None:
        """What only a mount can give, where this machine lets nobody mount."""
        worktree = PurePosixPath(spec.worktree) if spec.worktree else None

        def elsewhere(path: str) -> bool:
            return worktree is None or not PurePosixPath(path).is_relative_to(worktree)

        asked = [
            *(f"the volume {path}" for path in spec.volumes if path.startswith("/") and elsewhere(path)),
            *(f"{mount.source} at {mount.target}" for mount in spec.mounts if mount.source != mount.target),
            *(f"a tmpfs at {path}" for path in spec.tmpfs if path not in {"/tmp", "/var/tmp"}),  # noqa: S108
        ]
        if asked:
            why = trial(self.machine.path).isolation.why
            raise DevbayError(
                "needs_namespaces",
                f"{spec.name} wants {asked[0]}, and nothing can be mounted here: {why}",
                next="use a path of the repository, allow user namespaces, or start a container engine",
                exit_code=WORK_FAILED,
            )


def _in_tmp(folder: Path) -> bool:
    """Whether a folder of PATH would be hidden by the process's own temporary folder."""
    return any(folder.is_relative_to(place) for place in ("/tmp", "/var/tmp"))  # noqa: S108

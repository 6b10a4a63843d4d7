"""Dependencies on this machine: installed once per content of their inputs, and copied into each bay.

A template is made in a folder that holds the install's inputs and nothing else of the worktree. Its virtual
environment, its home and the service's volumes are copied; bays share nothing that one could change. Services
of one bay with the same install share its virtual environment: a disk may take a millisecond per file.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import shutil
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from devbay.errors import WORK_FAILED, DevbayError
from devbay.home import write_private
from devbay.jobs import Job
from devbay.runtimes.base import Exit, ServiceSpec, Sink
from devbay.runtimes.host.environment import Folders, environment
from devbay.runtimes.host.hidden import hiding
from devbay.runtimes.host.launch import Launch
from devbay.runtimes.host.machine import Machine
from devbay.runtimes.host.place import STAMP, Place
from devbay.runtimes.host.relocate import NOTE, note, relocate
from devbay.runtimes.host.sandbox import Disk, bwrap_argv, trial
from devbay.runtimes.host.templates import Templates
from devbay.runtimes.host.toolchains import Toolchain
from devbay.runtimes.host.view import View
from devbay.runtimes.inputs import InputFile, install_inputs, without_scripts
from devbay.runtimes.outbound import Outbound

TIME_LIMIT_S = 7200.0
SHOWN_LINES, LINE_LIMIT = 40, 2000
OUTDATED = "volume_in_use"
ADDRESS = "127.0.0.1:"
_FORMAT = 1

Run = Callable[[Launch, Sink, float, Job], Exit]


@dataclass(frozen=True)
class Plan:
    """An install as it will run: everything in it goes into the template's key.

    folder: where it runs; volumes: those that it can fill; both relative to the worktree.
    """

    key: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    folder: str
    files: tuple[InputFile, ...]
    volumes: tuple[str, ...]
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True)
class Installs:
    """Installs of one home for one caller's machine. salt: a secret of the home, since keys cover
    environments.
    """

    place: Place
    templates: Templates
    run: Run
    machine: Machine
    outbound: Outbound
    salt: str

    def digest(self, spec: ServiceSpec, toolchain: Toolchain | None) -> str:
        """Changes when the service's dependencies would be installed anew."""
        return self._plan(spec, toolchain).key

    def notes(self, spec: ServiceSpec) -> tuple[str, ...]:
        """What a person should know of the install."""
        dropped = [name for name in self._dropped(spec)[1] if ADDRESS not in spec.env[name]]
        if not dropped:
            return ()
        return (f"its install did not see {', '.join(dropped)}, which differ from bay to bay",)

    def ensure(self, spec: ServiceSpec, toolchain: Toolchain | None, job: Job) -> Path:
        """The template of the service's dependencies; raises `install_failed`, `unsafe_install_input`."""
        plan = self._plan(spec, toolchain)

        def make(draft: Path) -> None:
            self._make(draft, plan, spec, toolchain, job)

        return self.templates.ensure("install", plan.key, make, job)

    def give(
        self,
        spec: ServiceSpec,
        toolchain: Toolchain | None,
        volumes: Mapping[str, Path],
        *,
        running: bool,
        job: Job,
    ) -> None:
        """Give the bay its own copy of what the template has; what it has already stays.

        volumes: path in the service to the bay's folder behind it. Raises `volume_in_use` if the service runs
        on what would be replaced.
        """
        python = toolchain is not None and toolchain.family == "python"
        if not spec.install and not python:
            return
        if spec.install:
            template, key = self.ensure(spec, toolchain, job), self._plan(spec, toolchain).key
        else:
            assert toolchain is not None
            template = self._bare(spec, toolchain, job, pip=False)
            key = template.name
        had = self.place.installed(spec.bay.id, spec.name)
        if had == key:
            return
        if running:
            raise DevbayError(
                OUTDATED,
                f"{spec.name} runs on dependencies that are installed anew",
                next=f"bay_up(bay={spec.bay.name!r}) restarts it on the new ones",
                exit_code=WORK_FAILED,
            )
        stamp = self.place.own(spec.bay.id, spec.name, STAMP)
        stamp.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _lock_of(spec.bay.id):
            self._copy(spec, template, key, volumes, job, first=had == "none")
            write_private(stamp, key)
            self._forget_venvs(spec.bay.id)

    def _forget_venvs(self, bay: str) -> None:
        """Remove what no service of the bay runs in any more: a service is stopped before its key changes."""
        services = self.place.bay(bay) / "own"
        used = {self.place.installed(bay, each.name)[:16] for each in services.iterdir()}
        for folder in self.place.venvs(bay).iterdir() if self.place.venvs(bay).is_dir() else ():
            if folder.name not in used:
                shutil.rmtree(folder)

    def _copy(
        self,
        spec: ServiceSpec,
        template: Path,
        key: str,
        volumes: Mapping[str, Path],
        job: Job,
        *,
        first: bool,
    ) -> None:
        own = {
            "venv": self.place.venvs(spec.bay.id) / key[:16],
            "home": self.place.own(spec.bay.id, spec.name, "home"),
        }
        targets = {kind: folder for kind, folder in own.items() if (template / kind).is_dir()}
        if own["venv"].is_dir():
            targets.pop("venv", None)  # another service of the bay has the same
        for path, folder in volumes.items():
            relative = _below(path, spec)
            if relative is None or not (template / "worktree" / relative).is_dir():
                continue
            if first and folder == Path(path) and folder.is_dir() and any(folder.iterdir()):
                continue  # a checkout of the user's own, with dependencies of his own
            targets[f"worktree/{relative}"] = folder
        moved = {**own, "worktree": spec.worktree or own["home"]}
        for relative, folder in targets.items():
            source = template / relative

            def adjust(draft: Path, source: Path = source) -> None:
                relocate(draft, source, moved)
                (draft / NOTE).unlink()

            self.templates.copy(source, folder, adjust=adjust, job=job)

    # -- making ----------------------------------------------------------------------------------------

    def _plan(self, spec: ServiceSpec, toolchain: Toolchain | None) -> Plan:
        argv, env = spec.install or (), dict[str, str]()
        if not spec.install_scripts:
            argv, env = without_scripts(argv)
        kept, dropped = self._dropped(spec)
        folder = _below(spec.workdir or str(spec.worktree or "/"), spec) or "."
        files: tuple[InputFile, ...] = ()
        if spec.worktree is not None and spec.install is not None:
            files = install_inputs(spec.worktree, folder, spec.install, spec.install_inputs)
        within = (_below(path, spec) for path in spec.volumes)
        volumes = tuple(sorted(path for path in within if path is not None and path != "."))
        identified = [
            [_FORMAT, toolchain.identity if toolchain else "", spec.platform, folder, list(argv)],
            sorted({**kept, **env}.items()),
            list(volumes),
            sorted((each.path, each.executable, hashlib.sha256(each.data).hexdigest()) for each in files),
        ]
        key = hmac.new(self.salt.encode(), json.dumps(identified).encode(), hashlib.sha256).hexdigest()[:32]
        return Plan(key, argv, {**kept, **env}, folder, files, volumes, dropped)

    def _dropped(self, spec: ServiceSpec) -> tuple[dict[str, str], tuple[str, ...]]:
        """The service's environment without what differs from bay to bay, and the names left out.

        An install runs once for all, so it must see no bay's name, id, folder or address.
        """
        marks = [spec.bay.name, spec.bay.id, ADDRESS, *([str(spec.worktree)] if spec.worktree else [])]
        own = ("DEVBAY_", "GIT_CONFIG_")
        kept = {
            name: value
            for name, value in spec.env.items()
            if not name.startswith(own) and not any(mark in value for mark in marks)
        }
        return kept, tuple(n for n in spec.env if n not in kept and not n.startswith(own))

    def _make(
        self, draft: Path, plan: Plan, spec: ServiceSpec, toolchain: Toolchain | None, job: Job
    ) -> None:
        worktree, home, tmp, venv = (draft / name for name in ("worktree", "home", "tmp", "venv"))
        for folder in (worktree / plan.folder, home, tmp):
            folder.mkdir(parents=True, exist_ok=True)
        for each in plan.files:
            path = worktree / each.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(each.data)
            path.chmod(0o755 if each.executable else 0o644)
        python = toolchain is not None and toolchain.family == "python"
        if toolchain is not None and python:
            bare = self._bare(spec, toolchain, job, pip=True)
            self.templates.copy(bare / "venv", venv)
            relocate(venv, bare / "venv", {"venv": venv})
        caches = self.place.caches / spec.bay.repository
        caches.mkdir(mode=0o700, parents=True, exist_ok=True)
        folders = Folders(
            home, tmp, caches, venv if python else None,
            project_venv=any(PurePosixPath(path).name == ".venv" for path in plan.volumes),
        )  # fmt: skip
        job.progress(f"installing dependencies of {spec.name}")
        self._run(plan, spec, toolchain, folders, worktree, draft, job)
        shutil.rmtree(tmp)
        shutil.rmtree(home / ".cache", ignore_errors=True)
        if not any(home.iterdir()):
            home.rmdir()
        for part in (venv, home, *(worktree / name for name in plan.volumes)):
            if part.is_dir():
                note(part, draft)

    def _run(
        self, plan: Plan, spec: ServiceSpec, toolchain: Toolchain | None, folders: Folders, worktree: Path,
        draft: Path, job: Job,
    ) -> None:  # fmt: skip
        cwd = str(worktree / plan.folder)
        sandbox = trial(self.machine.path).sandbox
        seen, prefix = folders, tuple[str, ...]()
        if sandbox is not None:
            hidden = hiding(self.machine.user_home, self.machine.path)
            view = View(
                worktree=worktree, home=folders.home, tmp=folders.tmp, cwd=cwd,
                writable=(draft, folders.caches), visible=hidden.visible,
                hidden=(*hidden.hidden, self.place.root, self.place.sockets),
            )  # fmt: skip
            prefix = bwrap_argv(view, sandbox, Disk())
            seen = Folders(folders.home, Path("/tmp"), folders.caches, folders.venv, folders.project_venv)  # noqa: S108
        env = environment(toolchain, seen, self.machine, self.outbound, plan.env)
        mark = f"{spec.bay.home}/{spec.bay.id}/install-{spec.name}"
        launch = Launch(mark, plan.argv, env, "/" if prefix else cwd, prefix, limits=spec.limits)
        lines: deque[str] = deque(maxlen=SHOWN_LINES)
        output = _Lines(lines)
        ended = self.run(launch, output.take, TIME_LIMIT_S, job)
        output.close()
        job.check()
        if ended.code != 0 or ended.timed_out:
            raise _failed(spec, plan, ended, list(lines))

    def _bare(self, spec: ServiceSpec, toolchain: Toolchain, job: Job, *, pip: bool) -> Path:
        """A virtual environment of the toolchain with nothing in it (or with pip), as a template."""
        key = hashlib.sha256(f"{toolchain.identity} {pip}".encode()).hexdigest()[:32]

        def make(draft: Path) -> None:
            venv = draft / "venv"
            options = () if pip else ("--without-pip",)
            words = (str(toolchain.program), "-I", "-m", "venv", *options, str(venv))
            lines: deque[str] = deque(maxlen=SHOWN_LINES)
            output = _Lines(lines)
            # a mark of its own: what ends a run ends all that carry its mark
            mark = f"{spec.bay.home}/{spec.bay.id}/venv-{spec.name}"
            env = {"PATH": self.machine.path, "HOME": str(draft), "LANG": "C.UTF-8"}
            ended = self.run(Launch(mark, words, env, str(draft)), output.take, 300.0, job)
            output.close()
            job.check()
            if ended.code != 0:
                raise DevbayError(
                    "install_failed",
                    "\n".join([f"{toolchain.program} cannot make a virtual environment:", *lines]),
                    next="install its `venv` module (on Debian and Ubuntu: apt-get install python3-venv)",
                    exit_code=WORK_FAILED,
                    log=list(lines),
                )
            note(venv, draft)

        return self.templates.ensure("venv", key, make, job)


_locks: dict[str, threading.Lock] = {}


def _lock_of(bay: str) -> threading.Lock:
    """One gift to a bay at a time: its services may share what is given."""
    return _locks.setdefault(bay, threading.Lock())


class _Lines:
    """Keeps the last lines of an output that comes in pieces."""

    def __init__(self, lines: deque[str]) -> None:
        self._lines, self._rest = lines, b""

    def take(self, data: bytes) -> None:
        *whole, self._rest = (self._rest + data).split(b"\n")
        for line in whole:
            self._add(line)
        self._rest = self._rest[-LINE_LIMIT:]

    def close(self) -> None:
        if self._rest:
            self._add(self._rest)

    def _add(self, line: bytes) -> None:
        self._lines.append(line.decode("utf-8", "replace").rstrip("\r")[:LINE_LIMIT])


def _below(path: str, spec: ServiceSpec) -> str | None:
    """A path of the service as relative to its worktree; None if it is elsewhere."""
    if spec.worktree is None:
        return None
    pure = PurePosixPath(path)
    if not pure.is_absolute():
        pure = PurePosixPath(spec.workdir or spec.worktree) / pure
    full = PurePosixPath(os.path.normpath(pure))
    return str(full.relative_to(spec.worktree)) if full.is_relative_to(spec.worktree) else None


def _failed(spec: ServiceSpec, plan: Plan, ended: Exit, lines: list[str]) -> DevbayError:
    what = "it did not end in time" if ended.timed_out else f"exit code {ended.code}"
    inputs = [each.path for each in plan.files]
    saw = f"\nit saw of the worktree only: {', '.join(inputs[:12]) or 'nothing'}"
    saw += f" and {len(inputs) - 12} more" if len(inputs) > 12 else ""
    command = " ".join(spec.install or ())
    return DevbayError(
        "install_failed",
        "\n".join([f"`install` of {spec.name} (`{command}`) failed: {what}", *lines]) + saw,
        next="correct `install`; name further files that it reads in `install_inputs`",
        exit_code=WORK_FAILED,
        log=lines,
        status=ended.code,
    )

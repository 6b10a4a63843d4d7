"""Dependencies on this machine: installed once per content of their inputs, and copied into each bay.

A template is made in a folder that holds the install's inputs and nothing else of the worktree. Its virtual
environment, its home and the service's volumes are copied; bays share nothing that one could change. Services
of one bay with the same install share its virtual environment: a disk may take a millisecond per file.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from devbay.errors import WORK_FAILED, DevbayError
from devbay.home import write_private
from devbay.jobs import Job
from devbay.runtimes.base import Exit, ServiceSpec, Sink
from devbay.runtimes.host import makevenv
from devbay.runtimes.host.environment import Folders, environment, pnpm_store
from devbay.runtimes.host.hidden import hiding
from devbay.runtimes.host.installplan import Plan, below_worktree, failed, plan_install, wrote_besides
from devbay.runtimes.host.launch import Launch
from devbay.runtimes.host.machine import Machine
from devbay.runtimes.host.place import STAMP, Place
from devbay.runtimes.host.relocate import NOTE, note, relocate
from devbay.runtimes.host.removing import open_tree, remove_tree
from devbay.runtimes.host.sandbox import Disk, bwrap_argv, ended, trial
from devbay.runtimes.host.templates import Templates
from devbay.runtimes.host.toolchains import Toolchain
from devbay.runtimes.host.view import View
from devbay.runtimes.outbound import Outbound
from devbay.sites.ports import ephemeral_start, usable_range

TIME_LIMIT_S = 7200.0
SHOWN_LINES, LINE_LIMIT = 40, 2000
OUTDATED = "volume_in_use"
RECORD = "install.json"
"""Beside a service's stamp: which parts of the template it was given, and the install's notes."""

Run = Callable[[Launch, Sink, float, Job], Exit]


@dataclass(frozen=True)
class Installs:
    """Installs of one home for one caller's machine. salt: a secret of the home, since keys cover
    environments. closed: folders of devbay's own, besides those of `place`, which an install does not see.
    """

    place: Place
    templates: Templates
    run: Run
    machine: Machine
    outbound: Outbound
    salt: str
    closed: tuple[Path, ...] = ()

    def digest(self, spec: ServiceSpec, toolchain: Toolchain | None) -> str:
        """Changes when the service's dependencies would be installed anew."""
        return self._plan(spec, toolchain).key

    def notes(self, spec: ServiceSpec) -> tuple[str, ...]:
        """What a person should know of the install that the bay was given."""
        return tuple(self._record(spec).get("notes", ()))

    def ensure(self, spec: ServiceSpec, toolchain: Toolchain | None, job: Job) -> None:
        """Install the service's dependencies, unless a template has them or the bay itself.

        Raises `install_failed` with `log` and `status`, `unsafe_install_input`, `install_inputs_too_big`,
        `Cancelled`.
        """
        plan = self._plan(spec, toolchain)
        if self.place.installed(spec.bay.id, spec.name) != plan.key:
            try:
                self._template(plan, spec, toolchain, job)
            except RecursionError as error:
                raise DevbayError(
                    "install_failed",
                    f"`install` of {spec.name} made folders nested more deeply than can be copied",
                    next="correct `install`",
                    exit_code=WORK_FAILED,
                    log=[],
                ) from error

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
        on what would be replaced, and as `ensure` does.
        """
        if not spec.install and not _is_python(toolchain):
            return
        plan = self._plan(spec, toolchain) if spec.install else None
        key = plan.key if plan else _bare_key(toolchain)
        had = self.place.installed(spec.bay.id, spec.name)
        parts = self._record(spec).get("parts", []) if had == key else None
        wanted = None if parts is None else self._missing(parts, key, spec, volumes)
        if wanted == []:
            return
        if running and had != key:
            raise DevbayError(
                OUTDATED,
                f"{spec.name} runs on dependencies that are installed anew",
                next=f"bay_up(bay={spec.bay.name!r}) restarts it on the new ones",
                exit_code=WORK_FAILED,
            )
        for attempt in (1, 2):
            template = (
                self._template(plan, spec, toolchain, job) if plan else self._bare(spec, toolchain, job)
            )
            try:
                with _lock_of(spec.bay.id):
                    self._copy(template, key, spec, volumes, wanted, job, first=had == "none")
                return
            except DevbayError as error:
                if error.code != "template_gone" or attempt == 2:
                    raise

    # -- copying ---------------------------------------------------------------------------------------

    def _copy(
        self, template: Path, key: str, spec: ServiceSpec, volumes: Mapping[str, Path],
        wanted: list[str] | None, job: Job, *, first: bool,
    ) -> None:  # fmt: skip
        """Copy the parts that are wanted (None: all that there are), and write down what the bay has now."""
        folders = self._folders(key, spec, volumes)
        parts = [part for part in folders if (template / part).is_dir()]
        venv, home = folders["venv"], folders["home"]
        moved = {"venv": venv, "home": home, "worktree": spec.worktree or home}
        for part in parts:
            source, folder = template / part, folders[part]
            if (part == "venv" and folder.is_dir()) or (wanted is not None and part not in wanted):
                continue  # another service of the bay has the same environment
            if first and folder == moved["worktree"] / part.partition("/")[2] and _holds_something(folder):
                continue  # a checkout of the user's own, with dependencies of his own

            def adjust(draft: Path, source: Path = source) -> None:
                relocate(draft, source, moved)
                (draft / NOTE).unlink()

            self.templates.copy(source, folder, adjust=adjust, job=job)
        try:
            notes = json.loads((template / RECORD).read_text())
        except FileNotFoundError:
            notes = []
        stamp = self.place.own(spec.bay.id, spec.name, STAMP)
        stamp.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(stamp.with_name(RECORD), json.dumps({"parts": parts, "notes": notes}))
        write_private(stamp, key)
        self._forget_venvs(spec.bay.id)

    def _folders(self, key: str, spec: ServiceSpec, volumes: Mapping[str, Path]) -> dict[str, Path]:
        """Parts of a template to where the bay has them."""
        below = {below_worktree(path, spec): folder for path, folder in volumes.items()}
        return {
            "venv": self.place.venvs(spec.bay.id) / key[:16],
            "home": self.place.own(spec.bay.id, spec.name, "home"),
            **{f"worktree/{path}": folder for path, folder in below.items() if path not in (None, ".")},
        }

    def _missing(
        self, parts: list[str], key: str, spec: ServiceSpec, volumes: Mapping[str, Path]
    ) -> list[str]:
        """What the bay was given and has no more: somebody cleaned the worktree, for one."""
        folders = self._folders(key, spec, volumes)
        return [part for part in parts if part in folders and not folders[part].is_dir()]

    def _record(self, spec: ServiceSpec) -> dict[str, list[str]]:
        try:
            found: dict[str, list[str]] = json.loads(
                self.place.own(spec.bay.id, spec.name, RECORD).read_text()
            )
        except FileNotFoundError:
            return {}
        return found

    def _forget_venvs(self, bay: str) -> None:
        """Remove what no service of the bay runs in any more: a service is stopped before its key changes."""
        services = self.place.bay(bay) / "own"
        used = {self.place.installed(bay, each.name)[:16] for each in services.iterdir()}
        for folder in self.place.venvs(bay).iterdir() if self.place.venvs(bay).is_dir() else ():
            if folder.name not in used:
                remove_tree(folder)

    # -- making ----------------------------------------------------------------------------------------

    def _plan(self, spec: ServiceSpec, toolchain: Toolchain | None) -> Plan:
        given = usable_range(ephemeral_start())
        return plan_install(spec, toolchain, salt=self.salt, is_given=given.__contains__)

    def _template(self, plan: Plan, spec: ServiceSpec, toolchain: Toolchain | None, job: Job) -> Path:
        def make(draft: Path) -> None:
            self._make(draft, plan, spec, toolchain, job)

        return self.templates.ensure("install", plan.key, make, job)

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
        if _is_python(toolchain):
            bare = self._bare(spec, toolchain, job)
            self.templates.copy(bare / "venv", venv)
            relocate(venv, bare / "venv", {"venv": venv})
        caches = self.place.caches / spec.bay.repository
        caches.mkdir(mode=0o700, parents=True, exist_ok=True)
        folders = Folders(
            home, tmp, caches, venv if venv.is_dir() else None, project_venv=plan.has_project_venv
        )
        job.progress(f"installing {spec.name}: {' '.join(plan.argv)}")
        self._run(plan, spec, toolchain, folders, draft, job)
        # What follows is done by devbay itself, outside of the sandbox that the install ran in.
        for part in (venv, home, *(worktree / name for name in plan.volumes)):
            if _is_led_away(part, draft):
                what = f"{part.relative_to(draft)} is a link, or a folder above it, and must be a folder"
                raise failed(spec, plan, what, [], code=0)
        open_tree(draft)
        remove_tree(tmp)
        remove_tree(home / ".cache")
        if not any(home.iterdir()):
            home.rmdir()
        for part in (venv, home, *(worktree / name for name in plan.volumes)):
            if part.is_dir():
                note(part, draft)
        write_private(draft / RECORD, json.dumps(wrote_besides(worktree, plan)))

    def _run(
        self, plan: Plan, spec: ServiceSpec, toolchain: Toolchain | None, folders: Folders, draft: Path,
        job: Job,
    ) -> None:  # fmt: skip
        worktree = draft / "worktree"
        cwd = str(worktree / plan.folder)
        sandbox = trial(self.machine.path).sandbox
        seen, prefix = folders, tuple[str, ...]()
        if sandbox is not None:
            hidden = hiding(self.machine.user_home, self.machine.path)
            view = View(
                worktree=worktree, home=folders.home, tmp=folders.tmp, cwd=cwd,
                writable=(draft, folders.caches), visible=hidden.visible,
                hidden=(*hidden.hidden, self.place.root, self.place.sockets, *self.closed),
            )  # fmt: skip
            prefix = bwrap_argv(view, sandbox, Disk())
            seen = replace(folders, tmp=Path("/tmp"))  # noqa: S108 - its own there
        pnpm = pnpm_store(folders) if any("pnpm" in word for word in plan.argv) else {}
        env = environment(toolchain, seen, self.machine, self.outbound, {**pnpm, **plan.env})
        mark = f"{spec.bay.home}/{spec.bay.id}/install-{spec.name}"
        launch = Launch(mark, plan.argv, env, "/" if prefix else cwd, prefix, limits=spec.limits)
        output = _Lines(job)
        try:
            found = self.run(launch, output.take, TIME_LIMIT_S, job)
        except DevbayError as error:
            if error.code != "not_executable":
                raise
            raise failed(spec, plan, error.message, [], code=127) from error
        lines = output.end()
        job.check()
        code, fault = ended(found.code, "\n".join(lines)) if prefix else (found.code, "")
        if found.timed_out:
            fault = f"it did not end within {TIME_LIMIT_S / 3600:.0f} hours"
        elif found.oom_killed:
            fault = f"exit code {code} (killed for lack of memory)"
        if code != 0 or found.timed_out:
            raise failed(spec, plan, fault or f"exit code {code}", lines, code=code)

    def _bare(self, spec: ServiceSpec, toolchain: Toolchain | None, job: Job) -> Path:
        """A virtual environment of the toolchain with nothing in it but pip, as a template."""
        assert toolchain is not None

        def make(draft: Path) -> None:
            venv = draft / "venv"
            words = (str(toolchain.program), "-I", makevenv.__file__, str(venv))
            output = _Lines(job)
            # a mark of its own: what ends a run ends all that carry its mark
            mark = f"{spec.bay.home}/{spec.bay.id}/venv-{spec.name}"
            env = {"PATH": self.machine.path, "HOME": str(draft), "LANG": "C.UTF-8"}
            found = self.run(Launch(mark, words, env, str(draft)), output.take, 300.0, job)
            lines = output.end()
            job.check()
            if found.code != 0:
                raise DevbayError(
                    "install_failed",
                    "\n".join([f"{toolchain.program} cannot make a virtual environment:", *lines]),
                    next="install its `venv` module (on Debian and Ubuntu: apt-get install python3-venv)",
                    exit_code=WORK_FAILED,
                    log=lines,
                )
            note(venv, draft)

        return self.templates.ensure("venv", _bare_key(toolchain), make, job)


_locks: dict[str, threading.Lock] = {}


def _lock_of(bay: str) -> threading.Lock:
    """One gift to a bay at a time: its services may share what is given."""
    return _locks.setdefault(bay, threading.Lock())


class _Lines:
    """Shows the lines of an output that comes in pieces, and keeps the last."""

    def __init__(self, job: Job) -> None:
        self._job, self._rest = job, b""
        self._lines: deque[str] = deque(maxlen=SHOWN_LINES)

    def take(self, data: bytes) -> None:
        *whole, self._rest = (self._rest + data).replace(b"\r", b"\n").split(b"\n")
        for line in whole:
            self._add(line)
        self._rest = self._rest[-LINE_LIMIT:]

    def end(self) -> list[str]:
        self._add(self._rest)
        return list(self._lines)

    def _add(self, line: bytes) -> None:
        if text := line[:LINE_LIMIT].decode("utf-8", "replace").rstrip():
            self._lines.append(text)
            self._job.progress(text)


def _is_python(toolchain: Toolchain | None) -> bool:
    return toolchain is not None and toolchain.family == "python"


def _bare_key(toolchain: Toolchain | None) -> str:
    identity = toolchain.identity if toolchain else ""
    made_by = Path(makevenv.__file__).read_bytes()
    return hashlib.sha256(identity.encode() + made_by).hexdigest()[:32]


def _is_led_away(part: Path, draft: Path) -> bool:
    """Whether what should lie in the draft lies elsewhere: an install may leave any link in it."""
    return part.exists() and part.resolve() != draft.resolve() / part.relative_to(draft)


def _holds_something(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())

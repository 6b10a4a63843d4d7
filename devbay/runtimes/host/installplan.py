"""What an install on this machine is, decided before anything is done: its key, and what it sees."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from devbay.errors import WORK_FAILED, DevbayError
from devbay.names import site_label
from devbay.runtimes.base import ServiceSpec
from devbay.runtimes.host.toolchains import Toolchain
from devbay.runtimes.inputs import InputFile, install_inputs, without_scripts

ADDRESS = "127.0.0.1:"
_FORMAT = 2  # counted up when installs are done otherwise, so that older results are not taken
_NUMBER = re.compile(r"(?<![\d.])\d{4,5}(?![\d.])")


@dataclass(frozen=True)
class Plan:
    """An install as it will run: everything in it goes into the template's key.

    folder: where it runs; volumes: those that it can fill; both relative to the worktree. dropped: variables
    of the service that it does not see, and a person might miss.
    """

    key: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    folder: str
    files: tuple[InputFile, ...]
    volumes: tuple[str, ...]
    dropped: tuple[str, ...] = ()

    @property
    def has_project_venv(self) -> bool:
        return any(PurePosixPath(path).name == ".venv" for path in self.volumes)


def plan_install(
    spec: ServiceSpec, toolchain: Toolchain | None, *, salt: str, is_given: Callable[[int], bool]
) -> Plan:
    """The install of a service, which must have one. Reads its inputs; raises `unsafe_install_input`.

    is_given: whether devbay gives out a port number to bays here. The key stands in a folder's name and
    covers the environment, so it is salted with a secret.
    """
    argv, env = spec.install or (), dict[str, str]()
    if not spec.install_scripts:
        argv, env = without_scripts(argv)
    kept, dropped = portable_env(spec, is_given)
    folder = _folder(spec)
    files: tuple[InputFile, ...] = ()
    if spec.worktree is not None:
        files = install_inputs(spec.worktree, folder, spec.install or (), spec.install_inputs)
    within = (below_worktree(path, spec) for path in spec.volumes)
    volumes = tuple(sorted(path for path in within if path is not None and path != "."))
    identified = [
        [_FORMAT, toolchain.identity if toolchain else "", spec.platform, folder, list(argv)],
        sorted({**kept, **env}.items()),
        list(volumes),
        sorted((each.path, each.executable, hashlib.sha256(each.data).hexdigest()) for each in files),
    ]
    key = hmac.new(salt.encode(), json.dumps(identified).encode(), hashlib.sha256).hexdigest()[:32]
    return Plan(key, argv, {**kept, **env}, folder, files, volumes, dropped)


def portable_env(
    spec: ServiceSpec, is_given: Callable[[int], bool]
) -> tuple[dict[str, str], tuple[str, ...]]:
    """The service's environment without what differs from bay to bay, and those left out that are to be told.

    An install runs once for all, so it must see no bay's site, id, folder, address or port: seen, they would
    also make every bay install anew. Addresses and ports are not told: on one machine every service has some.
    """
    marks = [site_label(spec.bay.name, spec.bay.project), spec.bay.id]
    marks += [text for text in (str(spec.worktree or ""), spec.env.get("DEVBAY_RUN_DIR", "")) if text]

    def is_a_bays(value: str) -> bool:
        return any(mark in value for mark in marks)

    def is_an_address(value: str) -> bool:
        return ADDRESS in value or any(is_given(int(found.group())) for found in _NUMBER.finditer(value))

    own = ("DEVBAY_", "GIT_CONFIG_")
    mine = {name: value for name, value in spec.env.items() if not name.startswith(own)}
    kept = {n: value for n, value in mine.items() if not (is_a_bays(value) or is_an_address(value))}
    return kept, tuple(name for name, value in mine.items() if is_a_bays(value))


def below_worktree(path: str, spec: ServiceSpec) -> str | None:
    """A path of the service as relative to its worktree; None if it is elsewhere."""
    if spec.worktree is None:
        return None
    full = PurePosixPath(os.path.normpath(PurePosixPath(spec.workdir or spec.worktree) / path))
    return str(full.relative_to(spec.worktree)) if full.is_relative_to(spec.worktree) else None


def _folder(spec: ServiceSpec) -> str:
    """The folder of the worktree that is the working directory, directly or through a mount."""
    workdir = PurePosixPath(spec.workdir or spec.worktree or "/")
    if (folder := below_worktree(str(workdir), spec)) is not None:
        return folder
    for mount in sorted(spec.mounts, key=lambda mount: len(mount.target), reverse=True):
        if workdir.is_relative_to(mount.target):
            source = str(PurePosixPath(mount.source) / workdir.relative_to(mount.target))
            return below_worktree(source, spec) or "."
    return "."


def wrote_besides(worktree: Path, plan: Plan) -> list[str]:
    """What a person should know: what the install wrote that no bay will see, and what it did not see."""
    command, notes = " ".join(plan.argv), list[str]()
    inputs = {each.path for each in plan.files}
    leading = {str(above) for path in (*inputs, *plan.volumes) for above in PurePosixPath(path).parents}
    leading |= {plan.folder, *map(str, PurePosixPath(plan.folder).parents)}
    lost: list[str] = []
    for path in sorted(str(path.relative_to(worktree)) for path in worktree.rglob("*")):
        kept = any(PurePosixPath(path).is_relative_to(place) for place in (*lost, *plan.volumes))
        if not kept and path not in inputs and path not in leading:
            lost.append(path)
    if lost:
        shown = ", ".join(lost[:5]) + (", ..." if len(lost) > 5 else "")
        notes.append(f"`{command}` wrote {shown}, which no volume keeps: add it to `volumes` in devbay.yaml")
    if plan.dropped:
        notes.append(f"`{command}` ran without {', '.join(plan.dropped)}, which differ from bay to bay")
    return notes


def failed(spec: ServiceSpec, plan: Plan, what: str, lines: Sequence[str], *, code: int) -> DevbayError:
    """`install_failed` with the last lines of the output and what the install saw."""
    inputs = [each.path for each in plan.files]
    saw = f"\nit saw of the worktree only: {', '.join(inputs[:12]) or 'nothing'}"
    saw += f" and {len(inputs) - 12} more" if len(inputs) > 12 else ""
    command = " ".join(spec.install or ())
    return DevbayError(
        "install_failed",
        "\n".join([f"`install` of {spec.name} (`{command}`) failed: {what}", *lines]) + saw,
        next="correct `install`; name further files that it reads in `install_inputs`",
        exit_code=WORK_FAILED,
        log=list(lines),
        status=code,
    )

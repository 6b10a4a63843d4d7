"""Named, labelled volumes, and copy-on-write forks of them as overlays (decision 24)."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from devbay.errors import WORK_FAILED, DevbayError
from devbay.runtimes.docker import archives, containers
from devbay.runtimes.docker.archives import Entry
from devbay.runtimes.docker.engine import Engine
from devbay.runtimes.docker.specs import ContainerSpec

SCRATCH_SUFFIX = "-fork"
TEMPLATE_LABEL = "dev.devbay.fork-of"


@dataclass(frozen=True)
class Volume:
    """A volume of the engine. mountpoint: its folder on the engine's machine."""

    name: str
    mountpoint: str
    labels: Mapping[str, str]
    options: Mapping[str, str]


def ensure(
    engine: Engine, name: str, labels: Mapping[str, str], *, options: Mapping[str, str] | None = None
) -> Volume:
    """Make the volume, or take the one of this name. Raises `name_conflict` if that is not ours.

    The engine answers with an existing volume of the name whatever its labels and options are.
    """
    body = {"Name": name, "Driver": "local", "DriverOpts": dict(options or {}), "Labels": dict(labels)}
    made = _volume(engine.call("POST", "/volumes/create", body=body, doing=f"create the volume {name}"))
    if not labels.items() <= made.labels.items() or dict(made.options) != dict(options or {}):
        raise DevbayError(
            "name_conflict",
            f"the volume {name} exists with other labels or options",
            next=f"see `docker volume inspect {name}`; remove it if nobody needs its data",
            exit_code=WORK_FAILED,
            name=name,
        )
    return made


def inspect(engine: Engine, name: str) -> Volume | None:
    """The volume, None if there is none."""
    try:
        return _volume(engine.call("GET", f"/volumes/{name}"))
    except DevbayError as error:
        if error.code == "not_found":
            return None
        raise


def find(engine: Engine, labels: Mapping[str, str]) -> list[Volume]:
    """All volumes with these labels, in one call."""
    filters = {"label": [f"{name}={value}" for name, value in labels.items()]}
    found = engine.call("GET", "/volumes", params={"filters": json.dumps(filters)})
    return [_volume(item) for item in found["Volumes"] or []]


def remove(engine: Engine, name: str) -> None:
    """Remove it with its data; one that is gone is fine. Raises `volume_in_use` while a container has it."""
    try:
        engine.call("DELETE", f"/volumes/{name}", doing=f"remove the volume {name}")
    except DevbayError as error:
        if error.code != "not_found":
            raise


def sizes(engine: Engine) -> dict[str, int]:
    """Bytes of every volume by name; the engine walks them all, so this may take seconds.

    A fork has the size of its whole view; what it added is the size of its `-fork` volume.
    """
    found = engine.call("GET", "/system/df", params={"type": "volume"}, timeout_s=600)
    return {item["Name"]: int((item.get("UsageData") or {}).get("Size", -1)) for item in found["Volumes"]}


def fork(engine: Engine, name: str, template: str, labels: Mapping[str, str], *, helper_image: str) -> Volume:
    """A copy-on-write view of the volume `template`, which must not change or go while forks live.

    What is written goes to a second volume, `<name>-fork`, with the same labels; both are removed with
    `remove_fork`. A fork that exists stays; data in a second volume left by a crash is taken up again.
    helper_image: any image of the engine, for a container that is made and never started.
    """
    lower = inspect(engine, template)
    if lower is None:
        raise DevbayError("not_found", f"the template volume {template} is gone", exit_code=WORK_FAILED)
    labels = {**labels, TEMPLATE_LABEL: template}
    upper = ensure(engine, name + SCRATCH_SUFFIX, labels)
    options = overlay_options(lower.mountpoint, upper.mountpoint, rootless=engine.info().kind == "rootless")
    if (found := inspect(engine, name)) is None:
        _prepare(engine, template, upper.name, labels, helper_image)
    elif found.options.get("type") != "overlay":
        raise DevbayError(
            "name_conflict", f"the volume {name} exists and is no fork", exit_code=WORK_FAILED, name=name
        )
    return ensure(engine, name, labels, options=options)


def remove_fork(engine: Engine, name: str) -> None:
    """Remove a fork and what was written to it; also for what is only half there, or no fork."""
    remove(engine, name)
    remove(engine, name + SCRATCH_SUFFIX)


def overlay_options(lower: str, upper: str, *, rootless: bool) -> dict[str, str]:
    """The options of the local driver for an overlay of two folders of the engine's machine."""
    parts = [f"lowerdir={lower}", f"upperdir={upper}/upper", f"workdir={upper}/work"]
    if rootless:
        parts.append("userxattr")  # a user namespace may not set the xattrs that overlays use otherwise
    return {"type": "overlay", "device": "overlay", "o": ",".join(parts)}


def can_fork(engine: Engine, labels: Mapping[str, str], *, helper_image: str) -> bool:
    """Whether this engine's local driver can do overlays: one is made, written to, and removed (0.1 s)."""
    template = f"devbay-overlay-{secrets.token_hex(4)}"
    name = f"{template}-try"
    try:
        ensure(engine, template, labels)
        fork(engine, name, template, labels, helper_image=helper_image)
        with _helper(engine, {"/fork": name, "/template": template}, labels, helper_image) as helper:
            archives.put(engine, helper, [Entry("/fork/written", "file", b"1")])
            return archives.stat(engine, helper, "/template/written") is None
    except DevbayError as error:
        if error.code != "engine_error":
            raise
        return False
    finally:
        remove_fork(engine, name)
        remove(engine, template)


def _prepare(
    engine: Engine, template: str, scratch: str, labels: Mapping[str, str], helper_image: str
) -> None:
    """The folders of the overlay; the root of the view takes owner and mode from the upper one."""
    mounts = {"/template": template, "/scratch": scratch}
    with _helper(engine, mounts, labels, helper_image) as helper:
        if archives.stat(engine, helper, "/scratch/upper") is not None:
            return
        uid, gid, mode = archives.owner(engine, helper, "/template") or (0, 0, 0o755)
        folders = [
            Entry("/scratch/work", "dir"),
            Entry("/scratch/upper", "dir", uid=uid, gid=gid, mode=mode),
        ]
        archives.put(engine, helper, folders)


@contextmanager
def _helper(
    engine: Engine, volumes: Mapping[str, str], labels: Mapping[str, str], image: str
) -> Iterator[str]:
    """A container that is never started: through it the engine reads and writes volumes."""
    name = f"devbay-helper-{secrets.token_hex(6)}"
    spec = ContainerSpec(name=name, image=image, command=("true",), volumes=volumes, labels=labels)
    container = containers.create(engine, spec)
    try:
        yield container
    finally:
        containers.remove(engine, container)


def _volume(found: Mapping[str, Any]) -> Volume:
    return Volume(found["Name"], found["Mountpoint"], found.get("Labels") or {}, found.get("Options") or {})

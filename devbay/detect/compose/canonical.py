"""The short forms of a model written out, as compose does before it merges the next file."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from typing import Any

from devbay.detect.compose import mounts, ports
from devbay.detect.compose.merging import Fault
from devbay.detect.compose.tree import Map, Path, Place, Text, like, mapping, sequence, shown

_REMOTE = re.compile(r"(https?|git|ssh)://|github\.com/|git@|oci://|docker-image://|target:|service:")

MAX_PORTS = 70_000
"""Ports of a stack with its ranges written out: more than there are on one machine."""


def canonical(model: Map, faults: list[Fault]) -> None:
    """Change `model` to the long forms; what cannot be read stays as it is and is told."""
    room = MAX_PORTS
    for name, service in mapping(model.get("services")).items():
        if isinstance(service, Map):
            _service(service, faults, ("services", name), room)
            room -= len(sequence(service.get("ports")))


def _service(service: Map, faults: list[Fault], path: Path, room: int) -> None:
    build = service.get("build")
    if isinstance(build, str):
        service["build"] = build = Map([("context", build)])
    for owner, place in ((service, path), (mapping(build), (*path, "build"))):
        for kind in ("secrets", "configs"):
            _each(owner, kind, lambda item: Map([("source", item)]) if isinstance(item, str) else item)
        _pairs(owner, "additional_contexts", faults, place)
    for key in ("dns", "label_file", "dns_search", "tmpfs"):
        if isinstance(service.get(key), str):
            service[key] = [service[key]]
    _depends_on(service)
    _env_file(service)
    if isinstance(service.get("networks"), list):
        service["networks"] = Map((shown(name), None) for name in service["networks"])
    _ports(service, faults, path, room)
    _volumes(service, faults, path)


def _each(owner: Map, key: str, change: Callable[[Any], Any]) -> None:
    if isinstance(owner.get(key), list):
        owner[key] = [change(item) for item in owner[key]]


def _pairs(owner: Map, key: str, faults: list[Fault], path: Path) -> None:
    if not isinstance(owner.get(key), list):
        return
    found = Map()
    for item in owner[key]:
        name, is_pair, value = shown(item).partition("=")
        if is_pair:
            found[name] = like(value, item)
        else:
            faults.append((f"{name[:60]} is no `name=value`", (*path, key)))
    owner[key] = found


def _depends_on(service: Map) -> None:
    needs = service.get("depends_on")
    if isinstance(needs, list):
        at = {str(name): name.origin for name in needs if isinstance(name, Text) and name.origin}
        service["depends_on"] = needs = Map(((shown(name), Map()) for name in needs), at)
    for each in mapping(needs).values():
        if isinstance(each, Map):
            each.setdefault("condition", Text("service_started"))
            each.setdefault("required", True)


def _env_file(service: Map) -> None:
    if "env_file" not in service:
        return
    files = service["env_file"]
    service["env_file"] = [
        Map([("path", item), ("required", True)]) if isinstance(item, str) else item
        for item in (files if isinstance(files, list) else [] if files is None else [files])
    ]
    for each in service["env_file"]:
        if isinstance(each, Map):
            each.setdefault("required", True)


def _ports(service: Map, faults: list[Fault], path: Path, room: int) -> None:
    if not isinstance(service.get("ports"), list):
        return
    found: list[Any] = []
    for item in service["ports"]:
        if isinstance(item, Map):
            found.append(item)
            continue
        try:
            parsed = ports.parse(shown(item))
        except ValueError as error:
            faults.append((f"no port can be read: {error}", (*path, "ports")))
            continue
        if len(found) + len(parsed) > room:
            faults.append((f"the files have more than {MAX_PORTS} ports", (*path, "ports")))
            break
        for port in parsed:
            fields = {
                "host_ip": port.host_ip, "mode": port.mode, "target": port.target,
                "published": port.published, "protocol": port.protocol,
            }  # fmt: skip
            long = Map((key, value) for key, value in fields.items() if value != "")
            if isinstance(item, Text) and item.origin:
                long.at["target"] = item.origin
            found.append(long)
    service["ports"] = found


def _volumes(service: Map, faults: list[Fault], path: Path) -> None:
    if not isinstance(service.get("volumes"), list):
        return
    found: list[Any] = []
    for item in service["volumes"]:
        if isinstance(item, Map):
            found.append(item)
            continue
        try:
            parsed = mounts.parse(shown(item))
        except ValueError as error:
            faults.append((str(error), (*path, "volumes")))
            continue
        long = Map(
            (
                key,
                Map(value)
                if isinstance(value, dict)
                else like(value, item)
                if isinstance(value, str)
                else value,
            )
            for key, value in parsed.items()
        )
        if isinstance(item, Text) and item.origin:
            long.at["target"] = item.origin
        found.append(long)
    service["volumes"] = found


def placed(model: Map, work: str) -> None:
    """Make the paths of `model`, which start from the folder `work`, relative to the root of the view."""
    for service in mapping(model.get("services")).values():
        if not isinstance(service, Map):
            continue
        build = mapping(service.get("build"))
        _place(build, "context", work)
        for name in mapping(build.get("additional_contexts")):
            _place(build["additional_contexts"], name, work)
        _place(mapping(service.get("extends")), "file", work)
        watched = mapping(service.get("develop")).get("watch")
        for kind, items in (
            ("path", service.get("env_file")), ("source", service.get("volumes")), ("path", watched),
        ):  # fmt: skip
            for item in items if isinstance(items, list) else []:
                if isinstance(item, Map) and (kind == "path" or item.get("type") == "bind"):
                    _place(item, kind, work)
    for kind in ("configs", "secrets"):
        for each in mapping(model.get(kind)).values():
            _place(mapping(each), "file", work)
    for volume in mapping(model.get("volumes")).values():
        options = mapping(mapping(volume).get("driver_opts"))
        if mapping(volume).get("driver") == "local" and options.get("o") == "bind":
            _place(options, "device", work)


def _place(owner: Map, key: str, work: str) -> None:
    if isinstance(owner.get(key), str):
        owner[key] = place(owner[key], work)


def place(path: str, work: str) -> Place:
    """A path of a file as one from the root of the view; URLs, `~/...` and absolute paths as they are."""
    fixed = isinstance(path, Place) or not path or path.startswith(("/", "~")) or is_remote(path)
    text = str(path) if fixed else posixpath.normpath(posixpath.join(work, path))
    found = like(text, path)
    return Place(found, found.origin, found.unset)


def is_remote(path: str) -> bool:
    """Whether a path is an address to fetch from, or another service's build."""
    return _REMOTE.match(path) is not None

"""Removing what a bay or a home has on an engine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial

from devbay.errors import WORK_FAILED, DevbayError
from devbay.runtimes.base import BayRef
from devbay.runtimes.docker import containers, networks, volumes
from devbay.runtimes.docker.builds import built_images
from devbay.runtimes.docker.engine import Engine
from devbay.runtimes.docker.install import Installer
from devbay.runtimes.docker.objects import BAY, HOME, is_stale_helper


def inventory(engine: Engine, bay: BayRef) -> list[str]:
    """`<kind> <name>` of every object labelled with the bay."""
    labels = {HOME: bay.home, BAY: bay.id}
    return [
        *(f"container {each.name}" for each in containers.find(engine, labels)),
        *(f"volume {each.name}" for each in volumes.find(engine, labels)),
        *(f"network {each.name}" for each in networks.find(engine, labels)),
    ]


def teardown(engine: Engine, installer: Installer, bay: BayRef) -> list[str]:
    """Remove them, and let go of the bay's templates; returns what went. Raises `survivors`."""
    labels = {HOME: bay.home, BAY: bay.id}
    removed = inventory(engine, bay)
    found = containers.find(engine, labels)
    _at_once([partial(containers.remove, engine, each.id) for each in found])
    named = volumes.find(engine, labels)
    forks = [each for each in named if each.options.get("type") == "overlay"]
    _at_once([partial(volumes.remove, engine, each.name) for each in forks])
    rest = [partial(volumes.remove, engine, each.name) for each in named if each not in forks]
    nets = networks.find(engine, labels)
    _at_once([*rest, *(partial(networks.remove, engine, each.id) for each in nets)])
    installer.release(bay.id)
    left = inventory(engine, bay)
    if left:
        raise DevbayError(
            "survivors",
            f"still there after removing: {', '.join(left)}",
            next="stop what uses them, then devbay rm again",
            exit_code=WORK_FAILED,
            survivors=left,
        )
    return removed


def bays_with_objects(engine: Engine, home: str) -> set[str]:
    """The ids of all bays that have anything on the engine."""
    found = [
        *(each.labels for each in containers.find(engine, {HOME: home})),
        *(each.labels for each in volumes.find(engine, {HOME: home})),
        *(each.labels for each in networks.find(engine, {HOME: home})),
    ]
    return {labels[BAY] for labels in found if BAY in labels}


def remove_stale_helpers(engine: Engine, home: str) -> list[str]:
    """Remove the helper containers that killed daemons left; `container <name>` of each."""
    stale = [each for each in containers.find(engine, {HOME: home}) if is_stale_helper(each.labels)]
    for each in stale:
        containers.remove(engine, each.id)
    return [f"container {each.name}" for each in stale]


def remove_built_images(engine: Engine, home: str) -> dict[str, list[str]]:
    """Remove what was built for a home and no container uses: image id to its tags."""
    removed: dict[str, list[str]] = {}
    for image, tags in built_images(engine, home).items():
        try:
            for tag in tags:
                engine.call("DELETE", f"/images/{tag}", doing=f"remove {tag}")
        except DevbayError as error:
            if error.code == "engine_unreachable":
                raise
            continue  # a container uses it
        removed[image] = tags
    return removed


def _at_once(calls: Sequence[Callable[[], None]]) -> None:
    """Make the calls at the same time; the first error is raised once all are done."""
    threads: list[threading.Thread] = []
    errors: list[BaseException] = []

    def guarded(call: Callable[[], None]) -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001  # raised below
            errors.append(error)

    for call in calls:
        thread = threading.Thread(target=guarded, args=(call,), daemon=True)
        thread.start()
        threads.append(thread)
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]

"""Which of an engine's objects are a bay's, by name and by label."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence

from devbay.runtimes.base import BayRef, ObservedBay, ObservedService
from devbay.runtimes.docker import containers
from devbay.runtimes.docker.containers import Container
from devbay.runtimes.docker.engine import Engine

BAY, SERVICE, HOME, CONFIG, RUN = (
    f"dev.devbay.{name}" for name in ("bay", "service", "home", "config", "run")
)
HELPER = "dev.devbay.helper"
"""Names the process whose a helper container is, which belongs to no bay and lives for a moment."""
_PROCESS = secrets.token_hex(8)


def helper_labels(home: str) -> dict[str, str]:
    """The labels of a container in which this process looks something up in an image."""
    return {"dev.devbay.managed": "1", HOME: home, HELPER: _PROCESS}


def is_stale_helper(labels: Mapping[str, str]) -> bool:
    """Whether a helper of this home was left by another process: a home has one daemon."""
    return labels.get(HELPER, _PROCESS) != _PROCESS


def network_name(bay: BayRef) -> str:
    return bay.prefix


def is_service(labels: Mapping[str, str]) -> bool:
    """Whether a container is a service's own. Containers of runs, and helpers, inherit `.service` from images
    that were built or committed for a service, but never `.config`.
    """
    return SERVICE in labels and CONFIG in labels


def is_of(labels: Mapping[str, str], bay: BayRef) -> bool:
    return labels.get(HOME) == bay.home and labels.get(BAY) == bay.id


def observed(found: Sequence[Container], *, network: bool) -> ObservedBay:
    services = {
        each.labels[SERVICE]: ObservedService(
            name=each.labels[SERVICE],
            state=each.state,
            ref=each.id,
            config_hash=each.labels.get(CONFIG, ""),
            exit_code=each.exit_code,
            restarts=each.restarts or 0,
            started_at=each.started_at,
            oom_killed=bool(each.oom_killed),
        )
        for each in found
        if is_service(each.labels)
    }
    others = tuple(each.name for each in found if not is_service(each.labels))
    return ObservedBay(network, services, others=others)


def service_containers(engine: Engine, bay: BayRef, service: str | None = None) -> list[Container]:
    """The containers of a bay's services, or of one of them; without those of runs and helpers."""
    labels = {HOME: bay.home, BAY: bay.id} | ({SERVICE: service} if service else {})
    return [each for each in containers.find(engine, labels) if is_service(each.labels)]

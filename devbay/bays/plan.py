"""The planner: from what is wanted and what was observed to ordered steps. Pure; no engine, no clock.

Every verb is a wanted state. A step names what must be done first; steps that do not wait for each other
run at once. Repair after a crash is the same plan made from a new observation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from devbay.runtimes.base import ObservedBay, ObservedService

Action = Literal[
    "network", "publish", "image", "install", "volumes", "create", "start", "probe", "finish",
    "stop", "pause", "unpause", "remove", "withdraw", "detach", "drop_network",
]  # fmt: skip


@dataclass(frozen=True)
class Step:
    """One thing to do. `id` is `<action>:<service>`, or the action alone; `after` holds such ids."""

    action: Action
    service: str = ""
    after: frozenset[str] = frozenset()
    first: bool = False

    @property
    def id(self) -> str:
        return f"{self.action}:{self.service}" if self.service else self.action


@dataclass(frozen=True)
class WantedService:
    """A service that shall run (a one-shot: have run). `once`: a set-up step that never runs twice."""

    name: str
    oneshot: bool = False
    needs: tuple[str, ...] = ()
    config_hash: str = ""
    once: bool = False
    installs: bool = False
    routed: bool = False


@dataclass(frozen=True)
class Wanted:
    """The state a bay shall reach. Services that run and are not named are left alone while running, but for
    those in `gone`, which the manifest no longer has.
    """

    rest: Literal["running", "cold", "frozen"]
    services: tuple[WantedService, ...] = ()
    restart: frozenset[str] = frozenset()
    blocked: Mapping[str, str] = field(default_factory=dict)
    gone: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Known:
    """What the daemon knows beside the engine: who is healthy, which set-up steps have run."""

    healthy: frozenset[str] = frozenset()
    done: frozenset[str] = frozenset()
    published: bool = False


def plan(wanted: Wanted, observed: ObservedBay, known: Known) -> tuple[Step, ...]:
    """The steps from `observed` to `wanted`, in an order that respects their dependencies."""
    if wanted.rest == "running":
        return _plan_running(wanted, observed, known)
    if wanted.rest == "cold":
        return _plan_cold(wanted, observed)
    return _plan_frozen(wanted, observed)


def disrupts(steps: tuple[Step, ...]) -> bool:
    """Whether a step stops or replaces something that a run may be using."""
    return any(step.action in {"stop", "remove", "pause", "detach", "drop_network"} for step in steps)


def _plan_running(wanted: Wanted, observed: ObservedBay, known: Known) -> tuple[Step, ...]:
    by_name = {service.name: service for service in wanted.services}
    blocked = _blocked(wanted, by_name)
    steps: list[Step] = []
    waits: dict[str, str] = {}  # service -> id of the step after which its dependants may start
    runnable = [service for service in wanted.services if service.name not in blocked]
    for service in runnable:
        own = _steps_for(service, observed, known, wanted.restart, waits)
        steps.extend(own)
        if own:
            waits[service.name] = own[-1].id
    steps += [Step("remove", name) for name in sorted(wanted.gone & observed.services.keys())]
    acting = any(step.action in {"create", "start"} for step in steps)
    if acting and not observed.network:
        steps = [
            Step("network"),
            *(
                Step(s.action, s.service, s.after | {"network"}, s.first)
                if s.action in {"create", "start"}
                else s
                for s in steps
            ),
        ]
    if not known.published and any(service.routed for service in runnable):
        steps.append(Step("publish"))
    return tuple(steps)


def _blocked(wanted: Wanted, by_name: Mapping[str, WantedService]) -> frozenset[str]:
    """Services that must wait for a person, and whatever needs them (services come in dependency order)."""
    blocked: set[str] = set(wanted.blocked)
    for service in wanted.services:
        if blocked & set(service.needs):
            blocked.add(service.name)
    return frozenset(blocked & by_name.keys())


def _steps_for(
    service: WantedService,
    observed: ObservedBay,
    known: Known,
    restart: frozenset[str],
    waits: Mapping[str, str],
) -> list[Step]:
    name = service.name
    found = observed.services.get(name) or ObservedService(name, "missing")
    current = found.state != "missing" and found.config_hash == service.config_hash and found.state != "dead"
    forced = name in restart
    needs = frozenset(waits[need] for need in service.needs if need in waits)
    end: Action = "finish" if service.oneshot else "probe"

    if service.oneshot and not forced:
        if service.once and name in known.done:
            return []
        if current and found.state == "exited" and found.exit_code == 0:
            return []
    if current and not forced:
        if found.state in {"running", "restarting"}:
            if service.oneshot or name not in known.healthy:
                return [Step(end, name, needs)]
            return []
        if found.state == "paused":
            return [
                Step("unpause", name, needs),
                Step(end, name, frozenset({f"unpause:{name}"})),
            ]
        if not service.oneshot:
            return [
                Step("start", name, needs),
                Step("probe", name, frozenset({f"start:{name}"}), first=found.state == "created"),
            ]
    if current and forced and not service.oneshot:
        return [
            Step("stop", name),
            Step("start", name, needs | {f"stop:{name}"}),
            Step("probe", name, frozenset({f"start:{name}"})),
        ]
    steps = [Step("image", name)]
    if service.installs:
        steps.append(Step("install", name, frozenset({f"image:{name}"})))
    if found.state != "missing":
        # the old container goes only once the new one can be made, so a failing build stops nothing; but
        # before the volumes, since those with installed dependencies are replaced
        steps.append(Step("remove", name, frozenset({steps[-1].id})))
    steps.append(Step("volumes", name, frozenset({steps[-1].id})))
    steps.append(Step("create", name, frozenset({f"volumes:{name}"})))
    steps.append(Step("start", name, needs | {f"create:{name}"}))
    steps.append(Step(end, name, frozenset({f"start:{name}"}), first=True))
    return steps


def _reverse_needs(wanted: Wanted, action: Action, names: frozenset[str]) -> list[Step]:
    """One `action` per service, dependants before what they need."""
    needs = {service.name: service.needs for service in wanted.services}
    steps = []
    for name in sorted(names):
        dependants = frozenset(f"{action}:{other}" for other in names if name in needs.get(other, ()))
        steps.append(Step(action, name, dependants))
    return steps


def _plan_cold(wanted: Wanted, observed: ObservedBay) -> tuple[Step, ...]:
    up = frozenset(
        name for name, s in observed.services.items() if s.state in {"running", "paused", "restarting"}
    )
    stops = _reverse_needs(wanted, "stop", up)
    steps: list[Step] = [Step("withdraw"), *stops]
    if observed.network:
        detach = Step("detach", after=frozenset(step.id for step in stops))
        steps += [detach, Step("drop_network", after=frozenset({detach.id}))]
    return tuple(steps)


def _plan_frozen(wanted: Wanted, observed: ObservedBay) -> tuple[Step, ...]:
    running = frozenset(name for name, s in observed.services.items() if s.state == "running")
    return tuple(_reverse_needs(wanted, "pause", running))

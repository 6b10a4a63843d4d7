"""BayInfo from what is recorded, declared and observed. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from devbay.answers import BayInfo, BayState, Health, ServiceInfo
from devbay.manifest import Manifest
from devbay.runtimes.base import ObservedBay, ObservedService
from devbay.store import BayRecord


@dataclass(frozen=True)
class Seen:
    """Everything a status is made of. `observed` is None when the engine does not answer."""

    record: BayRecord
    manifest: Manifest | None
    manifest_state: Literal["own", "inherited", "missing", "invalid"]
    observed: ObservedBay | None
    healthy: frozenset[str] = frozenset()
    busy_with: str | None = None
    runs: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    blocked: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    host_ports: Mapping[tuple[str, str], int] = field(default_factory=dict)
    url: Callable[[str], str | None] = lambda service: None
    public_url: Callable[[str], str | None] = lambda service: None
    isolation: str = ""


def bay_info(seen: Seen, *, as_of: str) -> BayInfo:
    """The bay's status (without `dirty`, `commit` and `memory_mb`, which cost more to know)."""
    record = seen.record
    services = _services(seen)
    state, reason = _state(seen, services)
    wanted = set(record.wanted_services)
    long_running = {name for name, s in seen.manifest.services.items()} if seen.manifest else set()
    primary = seen.manifest.primary() if seen.manifest else None
    info: dict[str, object] = {
        "id": record.id,
        "name": record.name,
        "project": record.project,
        "repository": record.repository,
        "alias": record.alias,
        "branch": record.branch,
        "worktree": record.worktree,
        "adopted": record.adopted,
        "runtime": record.runtime,
        "isolation": seen.isolation or None,
        "manifest": seen.manifest_state,
        "state": state,
        "reason": reason,
        "public_url": seen.public_url(primary) if primary else None,
        "services": services,
        "warnings": list(dict.fromkeys([*record.warnings, *seen.warnings])),
        "pending_approvals": list(seen.pending),
        "created_at": record.created_at,
        "last_used_at": record.last_used_at,
        "as_of": as_of,
    }
    if record.wanted == "running" and wanted and wanted < long_running:
        info["partial"] = True
    if seen.runs:
        info["runs"] = list(seen.runs)
    next_step = _next(seen, state)
    if next_step:
        info["next"] = next_step
    return BayInfo.model_validate({key: value for key, value in info.items() if value is not None})


def _services(seen: Seen) -> list[ServiceInfo]:
    if seen.manifest is None:
        names = sorted(seen.observed.services) if seen.observed else []
        return [
            ServiceInfo(name=name, state=seen.observed.services[name].state)
            for name in names
            if seen.observed
        ]
    return [_service(seen, name) for name in seen.manifest.services]


def _service(seen: Seen, name: str) -> ServiceInfo:
    assert seen.manifest is not None
    service = seen.manifest.services[name]
    found = None
    if seen.observed is not None:
        found = seen.observed.services.get(name) or ObservedService(name, "missing")
    state, health, reason = _service_state(seen, name, service.kind == "oneshot", found)
    fields: dict[str, object] = {"name": name, "kind": service.kind, "state": state, "health": health}
    if reason:
        fields["reason"] = reason
    if found is not None:
        if found.exit_code is not None and found.state in {"exited", "dead"}:
            fields["exit_code"] = found.exit_code
        if found.restarts:
            fields["restarts"] = found.restarts
    ports = {
        port: seen.host_ports[name, port] for port in service.port_map() if (name, port) in seen.host_ports
    }
    if ports:
        fields["ports"] = ports
    if url := seen.url(name):
        fields["url"] = url
    if public_url := seen.public_url(name):
        fields["public_url"] = public_url
    return ServiceInfo.model_validate(fields)


def _service_state(
    seen: Seen, name: str, oneshot: bool, found: ObservedService | None
) -> tuple[str, Health, str]:
    note = seen.record.service_notes.get(name, "")
    if found is None:
        return "unknown", "unknown", "the engine does not answer"
    if name in seen.blocked and found.state not in {"running", "paused"}:  # what was approved goes on
        return "waiting", "none", seen.blocked[name]
    wanted = seen.record.wanted == "running" and name in seen.record.wanted_services
    if oneshot:
        if found.state == "exited" and found.exit_code == 0:
            return "done", "none", ""
        if found.state == "missing" and name in seen.record.setup_done:
            return "done", "none", ""
        if found.state in {"exited", "dead"}:
            return "failed", "none", note or _ended(found)
        return found.state, "none", note
    if found.state == "running":
        if name in seen.healthy:
            return "running", "healthy", ""
        if note:
            return "running", "unhealthy", note
        return "running", "starting" if seen.busy_with else "unknown", ""
    if found.state in {"exited", "dead"} and wanted:
        return "failed", "unhealthy", note or _ended(found)
    if found.state in {"missing", "created"} and wanted and note:
        return "failed", "unhealthy", note
    return found.state, "none", note


def _ended(found: ObservedService) -> str:
    if found.exit_code is None:
        return found.reason or "ended"
    more = "out of memory" if found.oom_killed else found.reason
    return f"exited with code {found.exit_code}" + (f" ({more})" if more else "")


def _state(seen: Seen, services: list[ServiceInfo]) -> tuple[BayState, str | None]:
    record = seen.record
    if record.phase == "destroying":
        return "destroying", record.reason or (None if seen.busy_with else "destroying was interrupted")
    if record.phase == "creating":
        return (
            ("creating", None) if seen.busy_with else ("failed", record.reason or "creating was interrupted")
        )
    if seen.observed is None:
        return "unknown", "the engine does not answer"
    if record.wanted == "frozen":
        return "frozen", record.reason or None
    if record.wanted in {"cold", "none"}:
        return "cold", record.reason or None
    if seen.busy_with:
        return "starting", None
    wanted = [s for s in services if s.name in record.wanted_services]
    bad = [s for s in wanted if not _well(s)]
    if not bad:
        return "running", None
    reasons = "; ".join(f"{s.name}: {s.reason or s.state}" for s in bad)
    if all(not _well(s) for s in wanted) and all(s.state in {"failed", "missing", "created"} for s in bad):
        gone = all(s.state in {"missing", "created"} and not s.reason for s in bad)
        return ("cold", "not started") if gone else ("failed", reasons)
    return "degraded", reasons


def _well(service: ServiceInfo) -> bool:
    """A running service whose last probe passed or is not known since the daemon's start; a done one-shot."""
    if service.kind == "oneshot":
        return service.state == "done"
    return service.state == "running" and service.health in {"healthy", "unknown"}


def _next(seen: Seen, state: BayState) -> str | None:
    name = seen.record.name
    if seen.pending:
        return "a person must run `devbay approve`"
    if state in {"creating", "starting"}:
        return f"bay_status(bay={name!r}, wait_s=45)"
    if state in {"degraded", "failed"} and seen.record.phase == "ready":
        return f"bay_logs(bay={name!r}), then bay_up(bay={name!r})"
    if seen.record.phase in {"creating", "destroying"}:
        return f"bay_destroy(bay={name!r})"
    if state == "frozen":
        return f"bay_rest(bay={name!r}, state='thaw')"
    return None

"""Bringing a bay to a wanted state: plan against what is observed, then execute with the bay's runtime."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from devbay.bays.execute import Handler, Outcome, execute
from devbay.bays.parts import Bay
from devbay.bays.plan import Action, Known, Step, Wanted, WantedService, disrupts, plan
from devbay.bays.specs import config_hash, service_spec
from devbay.errors import WORK_FAILED, DevbayError
from devbay.jobs import Job
from devbay.runtimes.base import ObservedBay, ServiceSpec
from devbay.store.records import Rest

STOP_TIMEOUT_S = 10.0
PORT_TRIES = 3
NO_SITE = "the bay has no site in the browser"


class Boot:
    """One execution of a plan for one bay."""

    def __init__(self, bay: Bay, job: Job) -> None:
        self.bay = bay
        self.job = job
        self.specs: dict[str, ServiceSpec] = {}
        self.images: dict[str, str] = {}
        self.started: list[str] = []
        self._wanted_before = (bay.record.wanted, list(bay.record.wanted_services))

    # -- wanted states -----------------------------------------------------------------------------

    def up(self, services: Iterable[str] | None, restart: Iterable[str] = ()) -> Outcome:
        """Start the named services (None: all) with everything they need; the bay's lock is held.

        Returns the outcome; failed services are noted in the store with their reasons.
        """
        bay = self.bay
        manifest = bay.manifest
        names = manifest.subgraph(list(manifest.services) if services is None else list(services))
        bay.runtime.check()
        observed = bay.runtime.observe(bay.ref)
        bay.assign_ports(held=self._published(observed))
        blocked = {name: reason for name, reason in bay.blocked.items() if name in names}
        unresolved = self._resolve([name for name in names if name not in blocked])
        blocked |= {name: error.message for name, error in unresolved.items()}
        wanted_names = sorted({*bay.record.wanted_services, *names} & manifest.services.keys())
        bay.update(wanted="running", wanted_services=wanted_names, reason="")
        wanted = Wanted(
            "running",
            tuple(self._wanted_service(name, names) for name in names),
            frozenset(restart),
            blocked,
            frozenset(observed.services) - manifest.services.keys() if services is None else frozenset(),
        )
        outcome = self._execute(plan(wanted, observed, self._known(observed)))
        for name, error in unresolved.items():
            outcome.failed[f"resolve:{name}"] = bay.scrub_error(error)
            bay.parts.store.note_service(bay.record.id, name, _reason(error))
        return outcome

    def planned_disruption(self, services: Iterable[str]) -> bool:
        """Whether bringing these up would stop or replace something that runs now."""
        bay = self.bay
        names = bay.manifest.subgraph(list(services))
        blocked = dict(bay.blocked)
        blocked |= {
            name: error.message
            for name, error in self._resolve([n for n in names if n not in blocked]).items()
        }
        observed = bay.runtime.observe(bay.ref)
        wanted = Wanted("running", tuple(self._wanted_service(n, names) for n in names), blocked=blocked)
        running = {n for n, s in observed.services.items() if s.state in {"running", "paused"}}
        steps = plan(wanted, observed, self._known(observed))
        return disrupts(tuple(step for step in steps if step.service in running))

    def rest(self, state: Rest) -> Outcome:
        """`cold` or `frozen`; the intent is written before anything is stopped."""
        bay = self.bay
        bay.runtime.check()
        observed = bay.runtime.observe(bay.ref)
        bay.update(wanted=state, reason="")
        names = list(bay.manifest.services) if bay.is_valid() else []
        services = tuple(WantedService(name, needs=tuple(bay.manifest.dependencies(name))) for name in names)
        wanted = Wanted("cold" if state == "cold" else "frozen", services)
        return self._execute(plan(wanted, observed, self._known(observed)))

    def stop_started(self) -> None:
        """After a cancellation: stop what this execution started, and want no more than before."""
        bay = self.bay
        for name in reversed(self.started):
            bay.runtime.stop(bay.ref, name, timeout_s=1.0)
            bay.parts.health.forget(bay.record.id, name)
        bay.update(wanted_services=self._wanted_before[1], wanted=self._wanted_before[0])

    def reprobe(self, name: str, ref: str) -> None:
        """Probe a running service once, now, and remember what came of it."""
        bay = self.bay
        spec = service_spec(bay.manifest, name, bay.surroundings(secrets=False))
        reason = bay.runtime.probe_once(spec, host=bay.addresses.public_host(name))
        if reason is None:
            bay.parts.health.mark(bay.record.id, name, ref)
        else:
            bay.parts.health.forget(bay.record.id, name)
        bay.parts.store.note_service(bay.record.id, name, bay.scrub(reason or ""))

    def _published(self, observed: ObservedBay) -> frozenset[int]:
        """The host ports that the bay's own containers hold at this moment."""
        up = {name for name, s in observed.services.items() if s.state in {"running", "paused"}}
        return frozenset(port for (name, _), port in self.bay.host_ports.items() if name in up)

    def ensure_network(self) -> None:
        """The bay's network, for a run that starts no service."""
        if not self.bay.runtime.has_network(self.bay.ref):
            self._network(Step("network"))

    # -- what is wanted and known --------------------------------------------------------------------

    def _resolve(self, names: Iterable[str]) -> dict[str, DevbayError]:
        """Fill `specs`; returns why for those that cannot be resolved (a missing secret, a bad context)."""
        bay = self.bay
        around = bay.surroundings()
        unresolved: dict[str, DevbayError] = {}
        for name in names:
            try:
                spec = service_spec(bay.manifest, name, around)
                fingerprint = bay.runtime.fingerprint(spec)
            except DevbayError as error:
                if error.code == "engine_unreachable":
                    raise
                unresolved[name] = error
                continue
            digest = config_hash(spec, fingerprint, bay.parts.home.id)
            self.specs[name] = dataclasses.replace(spec, config_hash=digest)
        return unresolved

    def _wanted_service(self, name: str, names: list[str]) -> WantedService:
        manifest = self.bay.manifest
        service = manifest.services[name]
        once = any(name in other.setup for other in manifest.services.values())
        return WantedService(
            name=name,
            oneshot=service.kind == "oneshot",
            needs=tuple(need for need in manifest.dependencies(name) if need in names),
            config_hash=self.specs[name].config_hash if name in self.specs else "",
            once=once,
            installs=service.install is not None,
            routed=bool(service.port_map()),
        )

    def _known(self, observed: ObservedBay) -> Known:
        bay = self.bay
        refs = {name: found.ref for name, found in observed.services.items()}
        return Known(
            healthy=bay.parts.health.healthy(bay.record.id, refs),
            done=frozenset(bay.record.setup_done),
            published=bay.is_valid() and bay.parts.proxy.serves(bay.record.site, bay.routes),
        )

    # -- doing -----------------------------------------------------------------------------------------

    def _execute(self, steps: tuple[Step, ...]) -> Outcome:
        bay = self.bay
        handlers: dict[Action, Handler] = {
            "network": self._network,
            "publish": self._publish,
            "image": self._image,
            "install": self._install,
            "volumes": self._volumes,
            "create": self._create,
            "start": self._start,
            "probe": self._probe,
            "finish": self._finish,
            "stop": self._stop,
            "pause": self._pause,
            "unpause": lambda step: bay.runtime.unpause(bay.ref, step.service),
            "remove": self._remove,
            "withdraw": lambda step: bay.parts.proxy.withdraw(bay.record.site),
            "detach": lambda step: bay.runtime.detach(bay.ref),
            "drop_network": self._drop_network,
        }
        outcome = execute(steps, handlers, self.job)
        self._note(steps, outcome)
        return outcome

    def _note(self, steps: tuple[Step, ...], outcome: Outcome) -> None:
        """Keep the first reason of every service that did not come up; forget those of services that did."""
        store, bay_id = self.bay.parts.store, self.bay.record.id
        reasons: dict[str, str] = {}
        for step in steps:
            if not step.service:
                continue
            if step.id in outcome.failed:
                reasons[step.service] = _reason(self.bay.scrub_error(outcome.failed[step.id]))
            elif step.id in outcome.skipped:
                reasons.setdefault(step.service, outcome.skipped[step.id])
        for name in {step.service for step in steps if step.service}:
            store.note_service(bay_id, name, reasons.get(name, ""))
        general = [error for id_, error in outcome.failed.items() if ":" not in id_]
        if general:
            self.bay.update(reason=self.bay.scrub_error(general[0]).message)

    def _network(self, step: Step) -> None:
        bay = self.bay
        for _ in range(PORT_TRIES):
            subnet = bay.parts.subnets.assign(bay.record.id, bay.runtime.networks_in_use(bay.ref))
            try:
                bay.runtime.ensure_network(bay.ref, subnet, self.job)
            except DevbayError as error:
                if error.code != "network_overlap":
                    raise
                bay.parts.subnets.release(bay.record.id)
            else:
                return
        raise DevbayError(
            "no_subnet",
            "the engine refused several subnets in a row as overlapping",
            next="set network.range in config.toml to an unused range",
            exit_code=WORK_FAILED,
        )

    def _publish(self, step: Step) -> None:
        """A bay without its site still works for code, so a proxy that cannot run is a warning."""
        try:
            self.bay.parts.proxy.publish(self.bay.record.site, self.bay.routes)
        except DevbayError as error:
            self._warn(NO_SITE, [f"{error.message} ({error.next})"])
        else:
            self._warn(NO_SITE, [])

    def _warn(self, subject: str, texts: Sequence[str]) -> None:
        """Replace what the bay's warnings say about a subject."""
        bay = self.bay
        with bay.parts.mutex:
            others = [text for text in bay.record.warnings if not text.startswith(f"{subject}: ")]
            warnings = [*others, *(f"{subject}: {text}" for text in texts)]
            if warnings != bay.record.warnings:
                bay.update(warnings=warnings)

    def _image(self, step: Step) -> None:
        self.images[step.service] = self.bay.runtime.ensure_image(self.specs[step.service], self.job)

    def _install(self, step: Step) -> None:
        name = step.service
        self.images[name] = self.bay.runtime.ensure_installed(self.specs[name], self.images[name], self.job)

    def _volumes(self, step: Step) -> None:
        name, bay = step.service, self.bay
        bay.runtime.ensure_volumes(self.specs[name], self.images[name], self.job)
        notes = bay.runtime.notes(self.specs[name])
        self._warn(name, [bay.scrub(note) for note in notes])

    def _create(self, step: Step) -> None:
        self.bay.runtime.create(self.specs[step.service], self.images[step.service], self.job)

    def _start(self, step: Step) -> None:
        name, bay = step.service, self.bay
        for attempt in range(PORT_TRIES):
            try:
                bay.runtime.start(self.specs[name], self.job)
            except DevbayError as error:
                if error.code != "port_taken" or attempt == PORT_TRIES - 1:
                    raise
                self._move_ports(name)
            else:
                self.started.append(name)
                return

    def _move_ports(self, name: str) -> None:
        """Somebody took a host port between the bind probe and the start: take others, make it anew."""
        bay = self.bay
        observed = bay.runtime.observe(bay.ref)
        bay.assign_ports(held=self._published(observed))
        # on this machine the others are told the port too
        for other, error in self._resolve([name, *self.specs]).items():
            if other == name:
                raise error
        spec = self.specs[name]
        if name not in self.images:
            self.images[name] = bay.runtime.ensure_image(spec, self.job)
            if spec.install:
                self.images[name] = bay.runtime.ensure_installed(spec, self.images[name], self.job)
        bay.runtime.remove(bay.ref, name)
        bay.runtime.create(spec, self.images[name], self.job)
        self._publish(Step("publish"))

    def _probe(self, step: Step) -> None:
        bay, name = self.bay, step.service
        for attempt in range(PORT_TRIES):
            try:
                ref = bay.runtime.wait_healthy(
                    self.specs[name], host=bay.addresses.public_host(name), first=step.first, job=self.job
                )
            except DevbayError as error:
                if error.code != "port_taken" or attempt == PORT_TRIES - 1:
                    raise
                bay.runtime.stop(bay.ref, name, timeout_s=STOP_TIMEOUT_S)
                self._move_ports(name)
                bay.runtime.start(self.specs[name], self.job)
            else:
                bay.parts.health.mark(bay.record.id, name, ref)
                return

    def _finish(self, step: Step) -> None:
        bay, name = self.bay, step.service
        ended = bay.runtime.wait_exit(bay.ref, name, self.job)
        if ended.code == 0:
            setup = {s for service in bay.manifest.services.values() for s in service.setup}
            if name in setup:
                with bay.parts.mutex:
                    bay.update(setup_done=sorted({*bay.record.setup_done, name}))
            return
        tail = bay.runtime.logs(bay.ref, name, lines=40)
        raise DevbayError(
            "oneshot_failed",
            f"{name} exited with code {ended.code}" + (" (out of memory)" if ended.oom_killed else ""),
            next=f"bay_logs(bay={bay.record.name!r}, service={name!r})",
            exit_code=WORK_FAILED,
            log=[entry.text for entry in tail],
        )

    def _stop(self, step: Step) -> None:
        self.bay.parts.health.forget(self.bay.record.id, step.service)
        self.bay.runtime.stop(self.bay.ref, step.service, timeout_s=STOP_TIMEOUT_S)

    def _pause(self, step: Step) -> None:
        self.bay.parts.health.forget(self.bay.record.id, step.service)
        self.bay.runtime.pause(self.bay.ref, step.service)

    def _remove(self, step: Step) -> None:
        bay = self.bay
        bay.parts.health.forget(bay.record.id, step.service)
        bay.runtime.stop(bay.ref, step.service, timeout_s=STOP_TIMEOUT_S)
        bay.runtime.remove(bay.ref, step.service)

    def _drop_network(self, step: Step) -> None:
        bay = self.bay
        bay.runtime.remove_network(bay.ref)
        bay.parts.subnets.release(bay.record.id)


def _reason(error: DevbayError) -> str:
    """Why a service is not there; with the ways out, where they are other than to look and try again."""
    ways_out = error.code in {"image_not_met", "needs_namespaces", "no_command"} and error.next
    return f"{error.message}; {error.next}" if ways_out else error.message

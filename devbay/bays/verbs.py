"""What can be done with bays: create, list, status, up, rest, url, logs, destroy."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from devbay.answers import BayInfo, BayList, DestroyAnswer, UrlAnswer
from devbay.bays.boot import Boot
from devbay.bays.create import Request, build, manifest_of, reserve, unwind
from devbay.bays.destroy import destroy, dry_run, examine, refused
from devbay.bays.find import Discovery, find_bay
from devbay.bays.info import Seen, bay_info
from devbay.bays.parts import Bay, Parts, now
from devbay.bays.watch import Watch
from devbay.errors import Cancelled, DevbayError
from devbay.jobs import Job
from devbay.manifest import service_url
from devbay.store import BayRecord
from devbay.store.records import Rest
from devbay.works import Work
from devbay.worktrees import Repository, worktree_state

logger = logging.getLogger(__name__)
REPROBE_AFTER_S = 5.0
CancelRuns = Callable[[str], None]


@dataclass(frozen=True)
class Caller:
    """Who asks: the request's job, the caller's directory and (allow-listed) environment."""

    job: Job
    cwd: Path
    env: Mapping[str, str]


class Bays:
    """The verbs. Long ones run as background work: a request waits for `wait_s` and may leave it going."""

    def __init__(self, parts: Parts, cancel_runs: CancelRuns) -> None:
        self.parts = parts
        self.discovery = Discovery(parts.store)
        self.watch = Watch(parts.home.id, parts.health.forget)
        self._cancel_runs = cancel_runs
        self._failures: dict[tuple[str, str], DevbayError] = {}

    # -- finding -----------------------------------------------------------------------------------

    def repository(self, caller: Caller, repo: str | None) -> Repository:
        return self.discovery.find(caller.cwd, repo)

    def open(self, caller: Caller, bay: str, repo: str | None) -> Bay:
        """The bay a caller means; outside any repository names are looked up in all of them."""
        repository_id: str | None = None
        try:
            repository_id = self.repository(caller, repo).id
        except DevbayError:
            if repo is not None:
                raise
        try:
            record = find_bay(self.parts.store, bay, repository=repository_id)
        except DevbayError as error:
            failed = self._failures.get((repository_id or "", bay))
            if error.code == "unknown_bay" and failed is not None:
                raise failed from error
            raise
        return Bay(self.parts, record, caller.env)

    # -- create and up -------------------------------------------------------------------------------

    def create(
        self,
        caller: Caller,
        request: Request,
        *,
        repo: str | None,
        boot: bool,
        services: Sequence[str] | None,
        wait_s: float,
    ) -> BayInfo:
        """Reserve the name at once, then build (and boot) in the background."""
        repository = self.repository(caller, repo)
        if boot:
            self.parts.runtimes.check(caller.env, manifest_of(repository).runtime)
        with contextlib.suppress(DevbayError):  # its first start chooses the port; publishing says why not
            self.parts.proxy.ensure()
        record = reserve(self.parts, repository, request, caller.env)
        self._failures.pop((repository.id, record.name), None)

        def body(job: Job) -> None:
            with self.parts.locks.change(record.id, "create", job):
                try:
                    bay = build(self.parts, record, request, caller.env, job)
                except DevbayError as error:
                    self._failures[repository.id, record.name] = error
                    raise
                if boot:
                    self._boot(bay, services, (), job)

        self._do(record, "create", body, wait_s, caller.job)
        return self.info(Bay(self.parts, record, caller.env).reload())

    def up(
        self,
        caller: Caller,
        bay: Bay,
        *,
        services: Sequence[str] | None,
        restart: Sequence[str],
        wait_s: float,
    ) -> BayInfo:
        """Start, restart, or apply an edited manifest; answers after `wait_s` at the latest."""
        self._check_services(bay, [*(services or ()), *restart])
        self._require_ready(bay)
        if restart:
            self.parts.locks.refuse_during_runs(bay.record.id, "restart")
        names = services if services is not None else (list(restart) or None)

        def body(job: Job) -> None:
            with self.parts.locks.change(bay.record.id, "up", job):
                self._boot(bay.reload(), names, restart, job)

        self._do(bay.record, "up", body, wait_s, caller.job)
        return self.info(bay.reload())

    def _boot(self, bay: Bay, services: Sequence[str] | None, restart: Sequence[str], job: Job) -> None:
        """Bring services up; on cancellation stop what this call alone started."""
        boot = Boot(bay, job)
        try:
            boot.up(services, restart)
        except Cancelled:
            boot.stop_started()
            bay.update(reason="starting was cancelled")
            raise
        except DevbayError as error:
            bay.update(reason=bay.scrub_error(error).message)
            raise
        finally:
            self._changed(bay)

    # -- rest and destroy ------------------------------------------------------------------------------

    def rest(self, caller: Caller, bay: Bay, state: str, *, force: bool = False) -> BayInfo:
        """`cool` stops and keeps data, `freeze` pauses, `thaw` brings back what was wanted."""
        self._require_ready(bay)
        if state == "thaw":
            return self.up(
                caller, bay, services=bay.record.wanted_services or None, restart=(), wait_s=float("inf")
            )
        target: Rest = "cold" if state == "cool" else "frozen"

        def body(job: Job) -> None:
            with self.parts.locks.change(bay.record.id, state, job):
                self._clear_runs(bay, state, force, job)
                outcome = Boot(bay.reload(), job).rest(target)
                self._changed(bay)
                if outcome.failed:
                    raise next(iter(outcome.failed.values()))

        self._do(bay.record, state, body, float("inf"), caller.job)
        return self.info(bay.reload())

    def destroy(self, caller: Caller, bay: Bay, *, force: bool, dry: bool) -> DestroyAnswer:
        """Remove the bay; refuses before anything is touched if work would be lost."""
        if dry:
            return dry_run(bay)
        locks = self.parts.locks
        if not force:
            if locks.change_in_progress(bay.record.id) or locks.active_runs(bay.record.id):
                found = examine(bay)  # `destroy` looks too, but only once it has the bay
                if found.blockers:
                    raise refused(bay, found)
            locks.refuse_during_runs(bay.record.id, "destroy")
        else:
            current = self.parts.works.get(bay.record.id)
            if current is not None:
                current.job.cancel()
        answers: list[DestroyAnswer] = []

        def body(job: Job) -> None:
            with self.parts.locks.change(bay.record.id, "destroy", job):
                self._clear_runs(bay, "destroy", force, job)
                answers.append(destroy(bay.reload(), force=force, job=job))
                self._changed(bay)

        self._do(bay.record, "destroy", body, float("inf"), caller.job)
        return answers[0]

    def _clear_runs(self, bay: Bay, verb: str, force: bool, job: Job) -> None:
        if force:
            self._cancel_runs(bay.record.id)
            self.parts.locks.wait_for_runs(bay.record.id, job)
        else:
            self.parts.locks.refuse_during_runs(bay.record.id, verb)

    # -- reading -----------------------------------------------------------------------------------------

    def list_bays(self, caller: Caller, *, repo: str | None, everywhere: bool) -> BayList:
        """The bays of the caller's repository, or all (also when the caller stands in no repository)."""
        repository_id = None
        if not everywhere:
            try:
                repository_id = self.repository(caller, repo).id
            except DevbayError:
                if repo is not None:
                    raise
        records = self.parts.store.bays(repository_id)
        return BayList(bays=[self.info(Bay(self.parts, record, caller.env)) for record in records])

    def status(self, caller: Caller, bay: Bay, *, wait_s: float) -> BayInfo:
        """One bay in full: health as of now, commit, dirty state, memory."""
        work = self.parts.works.get(bay.record.id)
        if work is not None and not work.finished and wait_s > 0:
            work.wait(wait_s, caller.job)
            bay = self.open(caller, bay.record.id, None)
        self._reprobe(bay)
        if bay.record.wanted == "running":
            self._keep_proxy()
        info = self.info(bay)
        extra: dict[str, object] = {}
        record = bay.record
        if record.git_dir and Path(record.worktree).is_dir():
            submodules = {path: Path(git_dir) for path, git_dir in record.submodules.items()}
            state = worktree_state(Path(record.worktree), Path(record.git_dir), submodules)
            extra |= {"commit": state.commit, "dirty": state.dirty, "branch": state.branch or record.branch}
        if any(service.state == "running" for service in info.services):
            with contextlib.suppress(DevbayError):
                extra["memory_mb"] = bay.runtime.memory_mb(bay.ref)
        return info.model_copy(update=extra)

    def info(self, bay: Bay) -> BayInfo:
        """The cheap status: store, manifest and the engine's last events."""
        record, parts = bay.record, self.parts
        observed, as_of = self.watch.observed(bay.runtime, record.id)
        loaded, manifest_state = bay.manifest_state()
        manifest = loaded.manifest if loaded is not None and loaded.valid else None
        warnings: list[str] = []
        if manifest and any(service.egress for service in manifest.services.values()):
            warnings.append("egress is declared but not enforced yet")
        if not Path(record.worktree).is_dir() and record.phase == "ready":
            warnings.append(f"the worktree {record.worktree} is gone; devbay rm removes the bay")
        if loaded is not None and not loaded.valid:
            warnings.append("devbay.yaml is invalid: run devbay validate")
        refs = {name: found.ref for name, found in observed.services.items()} if observed else {}

        def url(service: str) -> str | None:
            if manifest is None or (service, "port") not in bay.host_ports:
                return None
            return service_url(manifest, service, "host", bay.addresses)

        def public_url(service: str) -> str | None:
            if manifest is None or (service, "port") not in bay.host_ports or not bay.is_browsable(service):
                return None
            return bay.addresses.public_url(service)

        return bay_info(
            Seen(
                record=record,
                manifest=manifest,
                manifest_state=manifest_state,
                observed=observed,
                healthy=parts.health.healthy(record.id, refs),
                busy_with=parts.locks.change_in_progress(record.id),
                runs=tuple(parts.locks.active_runs(record.id)),
                pending=tuple(c.summary for c in bay.pending) if manifest else (),
                blocked=bay.blocked if manifest else {},
                warnings=tuple(warnings),
                host_ports=bay.host_ports,
                url=url,
                public_url=public_url,
                isolation=bay.runtime.isolation,
            ),
            as_of=as_of,
        )

    def url(self, bay: Bay, service: str | None) -> UrlAnswer:
        """Both addresses of a service (default: the primary one); raises `no_port` if it has none."""
        manifest = bay.manifest
        name = service or manifest.primary()
        ported = [each for each, declared in manifest.services.items() if declared.port]
        if name is None:
            raise DevbayError(
                "no_primary",
                "no service is the primary one",
                next=f"name one: {', '.join(ported) or 'none has a port'}",
            )
        self._check_services(bay, [name])
        if manifest.services[name].port is None:
            raise DevbayError(
                "no_port", f"service {name!r} has no `port`", next="choose a service with a port"
            )
        if (name, "port") not in bay.host_ports:
            bay.assign_ports()
        self._keep_proxy()
        url = service_url(manifest, name, "host", bay.addresses)
        if not bay.is_browsable(name):
            note = "url: for code on this machine; this service is not for browsers"
            return UrlAnswer(
                bay=bay.record.name, runtime=bay.record.runtime, service=name, url=url, note=note
            )
        return UrlAnswer(
            bay=bay.record.name,
            runtime=bay.record.runtime,
            service=name,
            url=url,
            public_url=bay.addresses.public_url(name),
            note="url: for code on this machine; public_url: for a browser",
        )

    def long_running(self, bay: Bay) -> list[str]:
        return [name for name, service in bay.manifest.services.items() if service.kind == "service"]

    def _keep_proxy(self) -> None:
        """Start a proxy that died: nobody else notices. Why it cannot run, publishing and doctor say."""
        with contextlib.suppress(DevbayError):
            self.parts.proxy.ensure()

    def touch(self, bay: Bay) -> None:
        """Remember that the bay was used."""
        self.parts.store.update_bay(bay.record.id, last_used_at=now())

    # -- inside ----------------------------------------------------------------------------------------

    def _do(self, record: BayRecord, verb: str, body: Callable[[Job], None], wait_s: float, job: Job) -> None:
        """Run `body` as background work of the bay; raises what it raised if it ends within `wait_s`."""
        work = Work(f"{verb}-{record.name}", body)
        with self.parts.mutex:
            self.parts.works[record.id] = work
        work.start()
        try:
            over = work.wait_or_cancel(None if wait_s == float("inf") else wait_s, job)
        except Cancelled:
            self._unwind_if_unmade(record)
            raise
        if over:
            work.result()

    def _unwind_if_unmade(self, record: BayRecord) -> None:
        """A creation that was cancelled before the bay was usable leaves nothing."""
        found = self.parts.store.bay(record.id)
        if found is not None and found.phase == "creating":
            unwind(Bay(self.parts, found, {}))

    def _reprobe(self, bay: Bay) -> None:
        """Probe again what was last seen healthy more than five seconds ago, all at once."""
        if not (bay.loaded_or_none() and bay.loaded.valid) or self.parts.locks.change_in_progress(
            bay.record.id
        ):
            return
        observed, _ = self.watch.observed(bay.runtime, bay.record.id)
        if observed is None:
            return
        due = [
            name
            for name, found in observed.services.items()
            if found.state == "running"
            and name in bay.manifest.services
            and bay.manifest.services[name].health is not None
            and self.parts.health.age(bay.record.id, name) > REPROBE_AFTER_S
        ]
        if not due:
            return
        boot = Boot(bay, Job())
        with ThreadPoolExecutor(max_workers=len(due)) as pool:
            list(pool.map(lambda name: boot.reprobe(name, observed.services[name].ref), due))
        bay.record = bay.reload().record

    def _check_services(self, bay: Bay, names: Sequence[str]) -> None:
        for name in names:
            if name not in bay.manifest.services:
                raise DevbayError(
                    "unknown_service",
                    f"{name!r} is no service of {bay.record.project}",
                    next=f"choose one of: {', '.join(bay.manifest.services) or 'there are none'}",
                    candidates=list(bay.manifest.services),
                )

    def _require_ready(self, bay: Bay) -> None:
        phase = bay.record.phase
        if phase == "ready":
            return
        busy = self.parts.locks.change_in_progress(bay.record.id)
        if phase == "creating" and busy:
            raise DevbayError(
                "busy",
                f"bay {bay.record.name!r} is being created",
                next=f"bay_status(bay={bay.record.name!r}, wait_s=45)",
                exit_code=1,
            )
        raise DevbayError(
            "half_made",
            f"bay {bay.record.name!r} was left half-{'made' if phase == 'creating' else 'destroyed'}",
            next=f"bay_destroy(bay={bay.record.name!r})",
            exit_code=1,
        )

    def _changed(self, bay: Bay) -> None:
        """This process changed the engine: what is cached may be old before its event arrives."""
        self.watch.changed(bay.runtime.key, "", "")

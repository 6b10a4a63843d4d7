"""What the verbs work with: the daemon's long-lived parts, and one bay opened for one request."""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import threading
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from devbay.bays.health import HealthMemory
from devbay.bays.hostapprovals import HostApprovals
from devbay.bays.locks import BayLocks
from devbay.bays.manifests import Manifests
from devbay.bays.specs import Surroundings
from devbay.errors import DevbayError
from devbay.home import Home
from devbay.jobs import Job
from devbay.manifest import Capability, Loaded, Manifest
from devbay.manifest.images import speaks_http
from devbay.runtimes.base import BayRef, Runtime
from devbay.runtimes.pool import RuntimePool
from devbay.security.approvals import pending
from devbay.security.scrub_set import include_secrets
from devbay.security.scrubbers import Scrubbers
from devbay.security.secrets import SecretSource
from devbay.sites.hosts import Route, SiteAddresses, suffixes_from_config
from devbay.sites.ports import PortRegistry
from devbay.sites.routes import Proxy
from devbay.sites.subnets import SubnetRegistry
from devbay.store import BayRecord, Store
from devbay.works import Work
from devbay.worktrees import Repository, git_env, git_mounts, read_includes
from devbay.worktrees.git import Git


def now() -> str:
    """The present moment as ISO 8601 UTC with milliseconds."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def bay_id(home: str, repository: str, name: str) -> str:
    """8 hex over home, repository and bay: the identity of every object a bay owns."""
    return hashlib.sha256("\0".join((home, repository, name)).encode()).hexdigest()[:8]


@dataclass
class Parts:
    """The daemon's long-lived parts. One instance per daemon; every member is safe for threads."""

    home: Home
    store: Store
    proxy: Proxy
    ports: PortRegistry
    subnets: SubnetRegistry
    runtimes: RuntimePool
    scrub: Scrubbers
    manifests: Manifests = field(default_factory=Manifests)
    locks: BayLocks = field(default_factory=BayLocks)
    health: HealthMemory = field(default_factory=HealthMemory)
    host_approvals: HostApprovals = field(default_factory=HostApprovals)
    works: dict[str, Work[None]] = field(default_factory=dict)
    runs: dict[str, Job] = field(default_factory=dict)
    mutex: threading.RLock = field(default_factory=threading.RLock)


@dataclass
class Bay:
    """One bay as opened for one request: its record, its manifest as it is on disk now, its runtime."""

    parts: Parts
    record: BayRecord
    env: Mapping[str, str]

    @cached_property
    def ref(self) -> BayRef:
        return BayRef(
            self.record.id,
            self.parts.home.id,
            self.record.project,
            self.record.repository,
            self.record.name,
        )

    @cached_property
    def runtime(self) -> Runtime:
        return self.parts.runtimes.for_bay(self.record.runtime, self.record.engine, self.env)

    @property
    def on_this_machine(self) -> Runtime:
        """The host runtime, for what does not run in the bay's containers: tasks `in: host`."""
        if self.record.runtime == "host":
            return self.runtime
        return self.parts.runtimes.for_host(self.env)

    def runtime_of(self, task: str) -> Runtime:
        """Where a task of the manifest runs."""
        return self.on_this_machine if self.manifest.tasks[task].in_ == "host" else self.runtime

    @cached_property
    def repository(self) -> Repository:
        known = self.parts.store.repository(self.record.repository)
        if known is None:
            raise DevbayError(
                "unknown_repository", f"the repository of bay {self.record.name!r} is not known"
            )
        return Repository.from_record(Path(known.common_dir), known.main_worktree)

    @cached_property
    def loaded(self) -> Loaded:
        """The bay's own manifest; without one the main checkout's (`inherited`)."""
        worktree = Path(self.record.worktree)
        try:
            return self.parts.manifests.load(worktree)
        except DevbayError as error:
            main = self.repository.main_worktree
            if error.code != "no_manifest" or main is None or main == worktree:
                raise
            return self.parts.manifests.load(main)

    @cached_property
    def inherited(self) -> bool:
        return self.loaded.path is not None and not self.loaded.path.is_relative_to(self.record.worktree)

    def loaded_or_none(self) -> Loaded | None:
        """The manifest as loaded, or None where there is none to load."""
        try:
            return self.loaded
        except DevbayError:
            return None

    def is_valid(self) -> bool:
        """Whether there is a manifest that can be used."""
        loaded = self.loaded_or_none()
        return loaded is not None and loaded.valid

    def manifest_state(self) -> tuple[Loaded | None, Literal["own", "inherited", "missing", "invalid"]]:
        """The loaded manifest (None if missing) and in one word where it is from or what is wrong."""
        loaded = self.loaded_or_none()
        if loaded is None:
            return None, "missing"
        if not loaded.valid:
            return loaded, "invalid"
        return loaded, "inherited" if self.inherited else "own"

    @property
    def manifest(self) -> Manifest:
        """The valid manifest; raises `invalid_manifest` or `no_manifest`."""
        return self.loaded.require()

    @cached_property
    def host_ports(self) -> dict[tuple[str, str], int]:
        """(service, port name) to host port, as stored."""
        return {(p.service, p.name): p.port for p in self.parts.store.ports(self.record.id)}

    @property
    def addresses(self) -> SiteAddresses:
        return SiteAddresses(
            self.record.site, self.manifest.primary(), self.host_ports, self.parts.proxy.port
        )

    @property
    def routes(self) -> list[Route]:
        """The routes of every service that a browser can talk to."""
        found = self.addresses.routes(
            self.record.name, self.manifest.services, suffixes_from_config(self.parts.home.config)
        )
        mute = {name for name in self.manifest.services if not self.is_browsable(name)}
        return [r for r in found if r.service not in mute or not self._is_primary_port(r)]

    def is_browsable(self, service: str) -> bool:
        """Whether the service's primary port speaks HTTP, as far as its image tells."""
        return speaks_http(self.manifest.services[service].image)

    def _is_primary_port(self, route: Route) -> bool:
        return self.host_ports.get((route.service, "port")) == route.port

    @cached_property
    def asked(self) -> list[Capability]:
        """All that a person has to approve; raises `invalid_manifest`, `no_manifest`."""
        whole = self.record.runtime == "host"
        own = self.parts.host_approvals.capabilities(self.loaded, Path(self.record.worktree), whole=whole)
        return [*self.loaded.capabilities, *own]

    @cached_property
    def pending(self) -> list[Capability]:
        """Capabilities that a person has not approved yet."""
        return pending(self.asked, self.parts.store.grants(self.record.repository))

    @property
    def blocked(self) -> dict[str, str]:
        """Services that wait for an approval, with the reason."""
        reasons: dict[str, str] = {}
        for capability in self.pending:
            if capability.service:
                reasons.setdefault(capability.service, "approval_required")
            elif capability.task is None:
                for name in self.manifest.services:
                    reasons.setdefault(name, "approval_required")
        return reasons

    def assign_ports(self, held: Container[int] = ()) -> None:
        """Give every port of the manifest a host port. `held`: ports the bay's own containers publish now.

        A port that somebody else took meanwhile is replaced, and the bay's warnings say so.
        """
        wanted = [
            (name, port) for name, service in self.manifest.services.items() for port in service.port_map()
        ]
        moved: list[str] = []
        self.host_ports = self.parts.ports.assign(self.record.id, wanted, held=held, notice=moved.append)
        if moved:
            self.update(warnings=list(dict.fromkeys([*self.record.warnings, *moved])))

    def surroundings(self, *, secrets: bool = True) -> Surroundings:
        """All that resolving a spec needs. With `secrets` off references resolve to a mark (for hashes)."""
        record = self.record
        worktree = Path(record.worktree)
        submodules = {path: Path(git_dir) for path, git_dir in record.submodules.items()}
        access = self.manifest.git
        return Surroundings(
            ref=self.ref,
            worktree=worktree,
            addresses=self.addresses,
            host_ports=self.host_ports,
            secret=self._secret if secrets else lambda ref: f"<{ref}>",
            git_mounts=git_mounts(self.repository, worktree, Path(record.git_dir), submodules, access),
            git_env=git_env(worktree, submodules, access),
            plane="host" if record.runtime == "host" else "container",
            main_worktree=self.repository.main_worktree,
        )

    @cached_property
    def _secrets(self) -> SecretSource:
        return SecretSource(self.parts.home.config, self.env)

    def _secret(self, ref: str) -> str:
        value = self._secrets(ref)
        self.parts.scrub.add(self.record.id, {ref: value})
        return value

    def scrub(self, text: str) -> str:
        """The text without any secret of the bay."""
        return self.parts.scrub.text(self.record.id, text)

    def know_includes(self) -> None:
        """Have the secrets in the bay's include files scrubbed (decision 21)."""
        worktree, git_dir = Path(self.record.worktree), Path(self.record.git_dir)
        git = Git(git_dir, worktree)

        def tracked(value: str) -> bool:
            if "\n" in value:
                return False
            # on standard input, because arguments can be seen by everybody on the machine
            return git.run("grep", "--cached", "-qF", "-f", "-", stdin=value.encode()).code == 0

        own = {self.record.name, self.record.project, self.record.site, f"{self.record.site}.localhost"}
        pairs = read_includes(worktree, self.record.includes)
        self.parts.scrub.add(self.record.id, include_secrets(pairs, tracked, own))

    def scrub_error(self, error: DevbayError) -> DevbayError:
        """The same error with every known secret of the bay removed from what it says."""
        error.message = self.scrub(error.message)
        error.args = (error.message,)
        error.data = {
            key: [self.scrub(v) if isinstance(v, str) else v for v in value]
            if isinstance(value, list)
            else self.scrub(value)
            if isinstance(value, str)
            else value
            for key, value in error.data.items()
        }
        return error

    def reload(self) -> Bay:
        """The bay read anew (record and manifest)."""
        record = self.parts.store.bay(self.record.id)
        if record is None:
            raise DevbayError("unknown_bay", f"bay {self.record.name!r} was destroyed meanwhile")
        return Bay(self.parts, record, self.env)

    def update(self, **changes: object) -> None:
        """Write changes to the record, here and in the store."""
        self.parts.store.update_bay(self.record.id, **changes)
        self.record = dataclasses.replace(self.record, **changes)  # type: ignore[arg-type]  # checked by the store

"""The runtimes of one daemon: one per engine, chosen by the caller's environment, pinned by a bay."""

from __future__ import annotations

import json
import os
import secrets
import threading
from collections.abc import Callable, Mapping
from typing import Any

from devbay.errors import DevbayError
from devbay.home import Home, private_dir
from devbay.runtimes.base import Runtime
from devbay.store import Store

SALT = "template-salt"
RUNTIMES = ("auto", "docker", "host")


class RuntimePool:
    """Engine clients are imported at first use and kept; every caller uses them with its own environment."""

    def __init__(self, home: Home, store: Store, clock: Callable[[], str]) -> None:
        self._home = home
        self._store = store
        self._clock = clock
        self._lock = threading.RLock()
        self._docker: dict[str, Any] = {}
        self._host: Any = None

    def choose(self, env: Mapping[str, str], declared: str = "auto") -> tuple[str, dict[str, Any]]:
        """The runtime's name and the endpoint that a new bay of this caller is pinned to (decision 42).

        `DEVBAY_RUNTIME` decides, else the manifest's `runtime` (`declared`); `auto` takes the host only where
        no engine is configured. Raises `bad_runtime` for a name that is none.
        """
        wanted = env.get("DEVBAY_RUNTIME") or "auto"
        if wanted not in RUNTIMES:
            raise DevbayError(
                "bad_runtime",
                f"DEVBAY_RUNTIME={wanted[:40]!r} is no runtime",
                next=f"set it to one of {', '.join(RUNTIMES)}, or unset it",
            )
        from devbay.runtimes.docker.contexts import engine_configured, resolve_endpoint

        if wanted == "auto":
            wanted = declared
        if wanted == "host" or (wanted == "auto" and not engine_configured(env)):
            from devbay.runtimes.host.machine import Machine

            return "host", Machine.of(env).to_json()
        return "docker", resolve_endpoint(env).to_json()

    def check(self, env: Mapping[str, str], declared: str = "auto") -> str:
        """The name of the caller's runtime; raises `engine_unreachable` if its engine does not answer."""
        name, endpoint = self.choose(env, declared)
        try:
            self.for_bay(name, endpoint, env).check()
        except DevbayError as error:
            if error.code == "engine_unreachable":
                error.next = f"{error.next}; or run without an engine: DEVBAY_RUNTIME=host"
            raise
        return name

    def for_bay(self, runtime: str, endpoint: Mapping[str, Any], env: Mapping[str, str]) -> Runtime:
        """The runtime a bay is pinned to, acting with this caller's environment."""
        if runtime == "host":
            return self.host(endpoint)
        if runtime != "docker":
            raise DevbayError(
                "bad_runtime", f"this devbay knows no runtime {runtime!r}", next="update devbay"
            )
        key = json.dumps(endpoint, sort_keys=True)
        with self._lock:
            made = self._docker.get(key)
            if made is None:
                made = self._docker[key] = self._make_docker(endpoint)
        twin: Runtime = made.for_caller(env)
        return twin

    def for_host(self, env: Mapping[str, str]) -> Runtime:
        """The host runtime as this caller's environment finds the machine."""
        return self.for_bay(*self.choose({**env, "DEVBAY_RUNTIME": "host"}), env)

    def host(self, machine: Mapping[str, Any]) -> Runtime:
        """The host runtime for a bay that was made on this machine as it was described then."""
        from devbay.runtimes.host.machine import Machine

        with self._lock:
            if self._host is None:
                self._host = self._make_host()
            twin: Runtime = self._host.for_machine(Machine.from_json(machine))
            return twin

    def all(self) -> list[Any]:
        """Every runtime made so far, and the host's where it has left something."""
        from devbay.runtimes.host.place import Place

        with self._lock:
            if self._host is None and Place.of(self._home).root.is_dir():
                self._host = self._make_host()
            return [*self._docker.values(), *([self._host] if self._host else [])]

    def close(self) -> None:
        with self._lock:
            for runtime in (*self._docker.values(), *([self._host] if self._host else [])):
                runtime.close()

    def _make_host(self) -> Any:
        from devbay.runtimes.host.runtime import HostRuntime
        from devbay.runtimes.outbound import Outbound

        return HostRuntime(
            self._home,
            salt=self._salt(),
            outbound=Outbound.from_config(self._home.config),
            max_bytes=cache_limit(self._home.config, 20 * 1024**3),
        )

    def _make_docker(self, endpoint: Mapping[str, Any]) -> Any:
        from devbay.runtimes.docker.assemble import Host
        from devbay.runtimes.docker.contexts import Endpoint
        from devbay.runtimes.docker.engine import Engine
        from devbay.runtimes.docker.install import DEFAULT_MAX_BYTES, Installer
        from devbay.runtimes.docker.runtime import DockerRuntime
        from devbay.runtimes.docker.template_store import StoredTemplates
        from devbay.runtimes.outbound import Outbound

        engine = Engine(Endpoint.from_json(endpoint))
        outbound = Outbound.from_config(self._home.config)
        installer = Installer(
            engine=engine,
            store=StoredTemplates(self._store, self._clock),
            home=self._home.id,
            locks=private_dir(self._home.state_dir / "locks"),
            salt=self._salt(),
            outbound=outbound,
            max_bytes=cache_limit(self._home.config, DEFAULT_MAX_BYTES),
        )
        return DockerRuntime(engine, installer, Host(os.getuid(), os.getgid(), outbound, {}))

    def _salt(self) -> str:
        """Template keys are public and cover environments, so they are salted with a secret of the home."""
        known = self._store.setting(SALT)
        if known is None:
            known = secrets.token_hex(16)
            self._store.set_setting(SALT, known)
        return known


def cache_limit(config: Mapping[str, Any], default: int) -> int:
    """`cache.max_gb` of config.toml in bytes; raises `bad_config`."""
    section = config.get("cache", {})
    value = section.get("max_gb") if isinstance(section, Mapping) else section
    if value is None:
        return default
    if not isinstance(value, int | float) or isinstance(value, bool) or value < 0:
        raise DevbayError(
            "bad_config", f"cache.max_gb = {value!r} in config.toml is no size", next="write a number of GB"
        )
    return int(value * 1024**3)

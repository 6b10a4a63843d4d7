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


class RuntimePool:
    """Engine clients are imported at first use and kept; every caller uses them with its own environment."""

    def __init__(self, home: Home, store: Store, clock: Callable[[], str]) -> None:
        self._home = home
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._docker: dict[str, Any] = {}

    def choose(self, env: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
        """The runtime's name and the endpoint that a new bay of this caller is pinned to.

        Raises `no_host_runtime` for `DEVBAY_RUNTIME=host`.
        """
        wanted = env.get("DEVBAY_RUNTIME", "auto")
        if wanted not in {"auto", "docker"}:
            raise DevbayError(
                "no_host_runtime" if wanted == "host" else "bad_runtime",
                f"DEVBAY_RUNTIME={wanted!r}: bays run on a container engine only, so far",
                next="unset DEVBAY_RUNTIME, or set it to docker",
            )
        from devbay.runtimes.docker.contexts import resolve_endpoint

        return "docker", resolve_endpoint(env).to_json()

    def check(self, env: Mapping[str, str]) -> None:
        """Raise `engine_unreachable` if the caller's engine does not answer."""
        name, endpoint = self.choose(env)
        self.for_bay(name, endpoint, env).check()

    def for_bay(self, runtime: str, endpoint: Mapping[str, Any], env: Mapping[str, str]) -> Runtime:
        """The runtime a bay is pinned to, acting with this caller's environment."""
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

    def all(self) -> list[Any]:
        """Every runtime made so far."""
        with self._lock:
            return list(self._docker.values())

    def close(self) -> None:
        for runtime in self.all():
            runtime.close()

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

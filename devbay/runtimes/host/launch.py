"""What a process of the host runtime is started as: frozen data between deciding and doing."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass

from devbay.manifest.models import Limits

MARK = "DEVBAY_KEPT"
"""The variable that marks every process of a service: `<home id>/<bay id>/<service or run-ID>`."""


@dataclass(frozen=True)
class Launch:
    """One process to be kept.

    argv: program and arguments, already rewritten for this machine; prefix: what is put before it (a
    sandbox's argv, ending in `--`). env: the whole environment, secrets included: never stored, never an
    argument. user: (uid, gid) to become, only when devbay is root. limits: bytes, cores, processes.
    """

    mark: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    prefix: tuple[str, ...] = ()
    user: tuple[int, int] | None = None
    restart: str = "no"
    limits: Limits | None = None
    stop_signal: int = signal.SIGTERM


@dataclass(frozen=True)
class Isolation:
    """What of this machine a process of the host runtime does not share, as found by trying.

    namespaces: those that a sandbox gives (`mount`, `pid`, `ipc`), none without one. why: what stops the
    rest. limits: how memory, cores and processes are bounded.
    """

    namespaces: tuple[str, ...] = ()
    limits: str = "setrlimit"
    why: str = ""

    def sentence(self) -> str:
        """For a status: what a bay on this machine has for itself, and what not."""
        own = "own processes, ports, home and temporary folders"
        spaces = f"; private {', '.join(self.namespaces)} namespaces" if self.namespaces else ""
        lacks = "the network is shared" if self.namespaces else f"no namespaces ({self.why})"
        return f"{own}{spaces}; {lacks}; limits by {self.limits}"

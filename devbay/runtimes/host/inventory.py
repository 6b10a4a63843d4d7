"""What a machine has for bays without an engine, for `devbay doctor`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from devbay.errors import DevbayError
from devbay.runtimes.host.families import FAMILIES
from devbay.runtimes.host.machine import Machine
from devbay.runtimes.host.providers import PROVIDERS
from devbay.runtimes.host.toolchains import find, refusal


def servers(machine: Machine) -> str:
    """Which image families a server here stands in for, and which none."""
    return _found(sorted(PROVIDERS), lambda name: PROVIDERS[name].find(name, machine.path).origin)


def toolchains(machine: Machine) -> str:
    """Which languages are here, in which version."""

    def version(family: str) -> str:
        found = find(family, machine)
        if found is None:
            raise refusal(family, machine)
        return found.version

    return _found(sorted(FAMILIES), version)


def _found(names: Iterable[str], look: Callable[[str], str]) -> str:
    """`node (20.1), python (3.11.7); not here: php, ruby`."""
    here, lacking = [], []
    for name in names:
        try:
            here.append(f"{name} ({look(name)})")
        except DevbayError:
            lacking.append(name)
    return ", ".join(here or ["none"]) + (f"; not here: {', '.join(lacking)}" if lacking else "")

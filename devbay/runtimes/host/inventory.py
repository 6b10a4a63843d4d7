"""What a machine has for bays without an engine, for `devbay doctor`."""

from __future__ import annotations

from collections.abc import Mapping

from devbay.errors import DevbayError
from devbay.runtimes.host.machine import Machine
from devbay.runtimes.host.providers import PROVIDERS
from devbay.runtimes.host.toolchains import here


def servers(machine: Machine) -> str:
    """Which image families a server here stands in for, and which none."""
    found: dict[str, str] = {}
    for family, provider in sorted(PROVIDERS.items()):
        try:
            found[family] = provider.find(family, machine.path).origin
        except DevbayError:
            found[family] = ""
    return _told(found)


def toolchains(machine: Machine) -> str:
    """Which languages are here, in which version."""
    return _told(here(machine))


def _told(found: Mapping[str, str]) -> str:
    """`node (20.1), python (3.11.7); not here: php, ruby`."""
    there = [f"{name} ({what})" for name, what in found.items() if what]
    lacking = [name for name, what in found.items() if not what]
    return ", ".join(there or ["none"]) + (f"; not here: {', '.join(lacking)}" if lacking else "")

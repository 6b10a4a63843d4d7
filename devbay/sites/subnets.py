"""Subnets: each running bay has a /27 of its own, clear of the host's routes and the engine's networks.

The engine's default pools end at about thirty networks, so devbay brings its own range.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from devbay.errors import WORK_FAILED, DevbayError
from devbay.store import Store

Network = ipaddress.IPv4Network

DEFAULT_RANGE = "10.213.0.0/16"
PREFIX = 27


class SubnetRegistry:
    """Gives each bay a /27 from one range; the store remembers which."""

    def __init__(
        self,
        store: Store,
        inside: Network | None = None,
        routes: Callable[[], Iterable[Network]] | None = None,
    ) -> None:
        """`inside` is the range (default 10.213.0.0/16), `routes` yields the host's routes now."""
        self._store = store
        self._range = Network(DEFAULT_RANGE) if inside is None else inside
        self._routes = host_routes if routes is None else routes

    def assign(self, bay_id: str, others: Iterable[str] = ()) -> str:
        """The bay's /27 as a CIDR, kept if it has one that nothing else overlaps.

        `others`: CIDRs of the engine's networks without the bay's own (IPv6 ones are ignored). The bay's
        record must be in the store. Raises `no_free_subnet`.
        """
        foreign = [Network(cidr, strict=False) for cidr in others if ":" not in cidr]
        routes = [route for route in self._routes() if route.prefixlen > 1]
        mine = next((Network(cidr) for cidr, bay in self._store.subnets().items() if bay == bay_id), None)
        if mine is not None:
            # Its own network shows up as exactly this route while it exists.
            elsewhere = [route for route in routes if not route.subnet_of(mine)]
            if mine.subnet_of(self._range) and not _overlaps(mine, foreign + elsewhere):
                return str(mine)
            self._store.release_subnet(bay_id)
        given = {Network(cidr) for cidr in self._store.subnets()}
        for candidate in candidates(self._range, bay_id):
            if candidate in given or _overlaps(candidate, foreign + routes):
                continue
            if self._store.claim_subnet(str(candidate), bay_id):
                return str(candidate)
            for cidr, bay in self._store.subnets().items():
                if bay == bay_id:  # another thread gave this very bay its subnet
                    return cidr
        covering = next((route for route in routes if self._range.subnet_of(route)), None)
        reason = (
            f"this machine has a route to {covering}, which covers it"
            if covering
            else "every /27 in it is given to a bay, routed here, or used by a network of the engine"
        )
        raise DevbayError(
            "no_free_subnet",
            f"no free subnet in {self._range}: {reason}",
            next="cool or destroy bays, or set network.range in config.toml to a private range free here",
            exit_code=WORK_FAILED,
        )

    def release(self, bay_id: str) -> None:
        """Give the bay's subnet back; nothing happens if it has none."""
        self._store.release_subnet(bay_id)


def candidates(inside: Network, seed: str) -> Iterator[Network]:
    """Every /27 of the range, from a place that depends on `seed`: two homes rarely try the same one."""
    count = 1 << (PREFIX - inside.prefixlen)
    start = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8]) % count
    for offset in range(count):
        first = int(inside.network_address) + ((start + offset) % count << (32 - PREFIX))
        yield Network((first, PREFIX))


def range_from_config(config: Mapping[str, Any]) -> Network:
    """`network.range` of config.toml; raises `bad_config` if it is no private IPv4 range of a /27 or more."""
    section = config.get("network", {})
    text = section.get("range", DEFAULT_RANGE) if isinstance(section, Mapping) else section
    try:
        found = Network(text)
    except (ValueError, TypeError) as error:
        raise _bad_range(text, str(error)) from error
    if found.prefixlen > PREFIX:
        raise _bad_range(text, f"it is smaller than a /{PREFIX}")
    if not found.is_private:
        raise _bad_range(text, "it is not a private range")
    return found


def _bad_range(text: object, reason: str) -> DevbayError:
    return DevbayError(
        "bad_config",
        f"network.range = {text!r} in config.toml cannot be used: {reason}",
        next=f'write a private IPv4 range such as range = "{DEFAULT_RANGE}"',
    )


def _overlaps(network: Network, others: Iterable[Network]) -> bool:
    return any(network.overlaps(other) for other in others)


def host_routes(proc: Path = Path("/proc")) -> list[Network]:
    """The IPv4 networks in any of the host's routing tables, without default routes.

    Linux: /proc/net/fib_trie, which holds all tables (VPNs use ones of their own). Elsewhere `netstat`.
    """
    trie = proc / "net" / "fib_trie"
    if trie.exists():
        return parse_fib_trie(trie.read_text())
    netstat = shutil.which("netstat") or "/usr/sbin/netstat"
    try:
        done = subprocess.run(
            [netstat, "-rn", "-f", "inet"], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise DevbayError(
            "no_routes",
            f"the routes of this machine cannot be read: {error}",
            next="make netstat available on PATH",
            exit_code=WORK_FAILED,
        ) from error
    return parse_netstat(done.stdout)


def parse_fib_trie(text: str) -> list[Network]:
    """Leaves (`|-- 10.0.0.0`) followed by their prefixes (`/8 link UNICAST`) are routes; nodes are not."""
    found: set[Network] = set()
    leaf = ""
    for line in text.splitlines():
        if match := re.match(r"\s*\|-- (\S+)", line):
            leaf = match[1]
        elif (match := re.match(r"\s*/(\d+) \S+ [A-Z]", line)) and leaf and match[1] != "0":
            found.add(Network(f"{leaf}/{match[1]}"))
    return sorted(found)


def parse_netstat(text: str) -> list[Network]:
    """The destinations of `netstat -rn -f inet` on BSD and macOS: `10.1/16`, `192.168.4`, `10.0.0.1`."""
    found: set[Network] = set()
    for line in text.splitlines():
        destination, *rest = line.split() or [""]
        match = re.fullmatch(r"(\d+(?:\.\d+){0,3})(?:/(\d+))?", destination)
        if not match or not rest:
            continue
        octets = match[1].split(".")
        prefix = int(match[2]) if match[2] else 8 * len(octets)
        address = ".".join(octets + ["0"] * (4 - len(octets)))
        if prefix:
            found.add(Network(f"{address}/{prefix}", strict=False))
    return sorted(found)

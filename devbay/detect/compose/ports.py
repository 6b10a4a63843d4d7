"""The short form of ports: host address, host port or range, container port or range, protocol."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass

PROTOCOLS = ("tcp", "udp", "sctp")
MAX_EXPOSED = 1024
"""Ports of one range of `expose`, which publishes nothing."""


@dataclass(frozen=True)
class Port:
    """A port of the container. published: the host's, `8000` or a range `8000-8010`, blank if any will do."""

    target: int
    published: str = ""
    host_ip: str = ""
    protocol: str = "tcp"
    mode: str = "ingress"
    name: str = ""
    app_protocol: str = ""


def parse(text: str) -> tuple[Port, ...]:
    """`[[IP:][HOST]:]CONTAINER[/PROTOCOL]` as ports, in the order that compose gives them.

    Raises `ValueError` where compose does (`ParsePortSpec` of go-connections).
    """
    front, _, container = text.rpartition(":")
    host_ip, _, host = front.rpartition(":")
    container, _, protocol = container.partition("/")
    protocol = protocol.partition("/")[0].lower() or "tcp"
    host_ip = _address(host_ip)
    if not container:
        raise ValueError(f"no port is given in {text!r}")
    first, last = _range(container)
    published = _range(host) if host else None
    if protocol not in PROTOCOLS:
        raise ValueError(f"{protocol!r} is no protocol of ports")
    if published and last - first != published[1] - published[0] and first != last:
        raise ValueError(f"the ranges {host} and {container} differ in length")
    return tuple(sorted(_ports(first, last, published, host_ip, protocol), key=lambda each: str(each.target)))


def exposed(text: str) -> tuple[Port, ...]:
    """`PORT`, `FIRST-LAST`, each with `/PROTOCOL`, as in `expose`. Raises `ValueError`."""
    numbers, _, protocol = text.partition("/")
    first, last = _range(numbers)
    if last - first >= MAX_EXPOSED:
        raise ValueError(f"the range {numbers} has more than {MAX_EXPOSED} ports")
    return tuple(Port(target, protocol=protocol.lower() or "tcp") for target in range(first, last + 1))


def _ports(
    first: int, last: int, published: tuple[int, int] | None, host_ip: str, protocol: str
) -> Iterator[Port]:
    for step in range(last - first + 1):
        host = "" if published is None else str(published[0] + step)
        if published is not None and first == last and published[0] != published[1]:
            host = f"{published[0]}-{published[1]}"
        yield Port(first + step, host, host_ip, protocol)


def _range(text: str) -> tuple[int, int]:
    parts = text.split("-")
    numbers = parts[:2] if len(parts) > 1 else parts * 2
    if not all(re.fullmatch(r"[0-9]{1,6}", number) and int(number) < 65536 for number in numbers):
        raise ValueError(f"{text!r} is no port")
    first, last = int(numbers[0]), int(numbers[1])
    if last < first:
        raise ValueError(f"the range {text!r} ends before it begins")
    return first, last


def _address(text: str) -> str:
    bare = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if ":" in text and bare == text:
        raise ValueError(f"the address {text} needs brackets")
    if bare:
        try:
            ipaddress.ip_address(bare)
        except ValueError:
            raise ValueError(f"{text!r} is no IP address") from None
    return bare

"""Which TCP ports a container's processes listen on, as its kernel tells them (proc(5), /proc/net/tcp)."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

COMMAND = ("cat", "/proc/net/tcp", "/proc/net/tcp6")
"""A kernel without IPv6 has no second file, and the first is still told."""
_LISTEN = "0A"


def listening(table: str) -> list[tuple[str, int]]:
    """The addresses and ports of the listening sockets, sorted by port; other lines are passed over."""
    found: set[tuple[str, int]] = set()
    for line in table.splitlines():
        words = line.split()
        if len(words) < 4 or words[3] != _LISTEN:
            continue
        address, _, port = words[1].partition(":")
        found.add((_address(address), int(port, 16)))
    return sorted(found, key=lambda at: (at[1], at[0]))


def _address(text: str) -> str:
    """Numbers of 32 bits in the machine's own order, which has the small end first where engines run."""
    packed = b"".join(int(text[at : at + 8], 16).to_bytes(4, "little") for at in range(0, len(text), 8))
    if len(packed) == 4:
        return str(IPv4Address(packed))
    address = IPv6Address(packed)
    return str(address.ipv4_mapped or address)

"""Host ports: which are usable, which are free right now, and which bay has which."""

from __future__ import annotations

import errno
import hashlib
import socket
from collections.abc import Callable, Container, Iterable
from pathlib import Path

from devbay.errors import WORK_FAILED, DevbayError
from devbay.store import PortRecord, Store

LOOPBACK = ("127.0.0.1", "::1")
PREFERRED = range(20000, 30000)

# "Bad ports" of the Fetch standard (section "Port blocking"): no browser opens them.
BLOCKED_BY_BROWSERS = frozenset(
    {1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104}
    | {109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514}
    | {515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720}
    | {1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080}
)

PortKey = tuple[str, str]
"""(service, port name)."""


class PortRegistry:
    """Gives host ports to the services of bays; the store remembers them, so a cooled bay keeps its own."""

    def __init__(
        self,
        store: Store,
        ports: range | None = None,
        is_free: Callable[[int], bool] | None = None,
    ) -> None:
        """`ports` is the range given out (default: below this machine's ephemeral range).

        `is_free` tells whether nobody holds a port now (default: a bind probe on both loopbacks).
        """
        self._store = store
        self._range = usable_range(ephemeral_start()) if ports is None else ports
        self._is_free = port_is_free if is_free is None else is_free

    def assign(
        self,
        bay_id: str,
        wanted: Iterable[PortKey],
        *,
        held: Container[int] = (),
        notice: Callable[[str], None] | None = None,
    ) -> dict[PortKey, int]:
        """A host port for every wanted (service, port name); those the bay has already are kept.

        `held`: host ports that the bay's own containers publish at this moment; they are not probed.
        A port that somebody else holds is replaced, and `notice` is called with a sentence that says so.
        The bay's record must be in the store. Raises `no_free_port`.
        """
        known = {(record.service, record.name): record.port for record in self._store.ports(bay_id)}
        given: dict[PortKey, int] = {}
        for key in wanted:
            port = known.get(key)
            if port is None:
                given[key] = self._claim(bay_id, key)
            elif port in held or self._is_free(port):
                given[key] = port
            else:
                self._store.release_port(port)
                given[key] = self._claim(bay_id, key)
                if notice is not None:
                    service, name = key
                    notice(
                        f"port {port} of {service} ({name}) is held by another process;"
                        f" {service} now has {given[key]}"
                    )
        return given

    def release(self, bay_id: str) -> None:
        """Give back every port of the bay."""
        for record in self._store.ports(bay_id):
            self._store.release_port(record.port)

    def _claim(self, bay_id: str, key: PortKey) -> int:
        service, name = key
        taken = {record.port for record in self._store.ports()}
        for port in candidates(self._range, f"{bay_id}/{service}/{name}"):
            if port in taken or not self._is_free(port):
                continue
            if self._store.claim_port(PortRecord(port, bay_id, service, name)):
                return port
            # Refused: another thread took the port, or gave this very service its port.
            for record in self._store.ports(bay_id):
                if (record.service, record.name) == key:
                    return record.port
        raise DevbayError(
            "no_free_port",
            f"no free host port for {service} ({name}): all {len(self._range)} ports from"
            f" {self._range.start} to {self._range.stop - 1} are given to bays or held by other processes",
            next="destroy bays that are no longer needed (devbay ls --all, devbay rm BAY)",
            exit_code=WORK_FAILED,
        )


def candidates(ports: range, seed: str) -> Iterable[int]:
    """Every port of the range that browsers open, from a place that depends on `seed` alone."""
    digest = hashlib.sha256(seed.encode()).digest()
    start = int.from_bytes(digest[:8]) % len(ports)
    for offset in range(len(ports)):
        port = ports[(start + offset) % len(ports)]
        if port not in BLOCKED_BY_BROWSERS:
            yield port


def usable_range(ephemeral: int) -> range:
    """Up to 10,000 ports below the first ephemeral one, 20000-29999 where that is possible.

    The kernel hands ephemeral ports to outgoing connections, so a port in that range can be lost while
    its bay rests. Where nothing is below it, 20000-29999 all the same.
    """
    if ephemeral >= PREFERRED.stop or ephemeral <= 2048:
        return PREFERRED
    return range(max(1024, ephemeral - len(PREFERRED)), ephemeral)


def ephemeral_start(proc: Path = Path("/proc")) -> int:
    """The first port the kernel gives to outgoing connections; 49152 (IANA) where it does not say."""
    try:
        return int((proc / "sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 49152


def port_is_free(port: int) -> bool:
    """Whether nobody listens on the port of 127.0.0.1 and ::1, tried by listening and by connecting.

    SO_REUSEADDR lets the probe pass connections in TIME_WAIT; Linux still refuses it a port somebody
    listens on. BSD systems do not when the other listens on all addresses, and an engine can forward
    loopback ports without listening; so it connects as well.
    """
    return all(_can_listen(address, port) and not _answers(address, port) for address in LOOPBACK)


def _can_listen(address: str, port: int) -> bool:
    try:
        with socket.socket(_family(address), socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((address, port))
            probe.listen(1)
    except OSError as error:
        return _has_no_such_address(address, error)
    return True


def _answers(address: str, port: int) -> bool:
    try:
        with socket.create_connection((address, port), timeout=0.2):
            return True
    except TimeoutError:
        return True  # nothing refused: somebody is there, and busy
    except OSError:
        return False


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def _has_no_such_address(address: str, error: OSError) -> bool:
    """A machine without IPv6 has no ::1 on which a port could be taken."""
    return address == "::1" and error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


def has_ipv6_loopback() -> bool:
    """Whether ::1 can be listened on at all."""
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True

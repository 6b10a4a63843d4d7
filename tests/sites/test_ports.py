import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from devbay.errors import DevbayError
from devbay.sites.ports import (
    BLOCKED_BY_BROWSERS,
    PortRegistry,
    candidates,
    ephemeral_start,
    port_is_free,
    usable_range,
)
from devbay.store import Store


def nobody(port: int) -> bool:
    return True


def test_a_bay_keeps_its_ports(store: Store) -> None:
    ports = PortRegistry(store, range(21000, 21100), nobody)
    first = ports.assign("a", [("web", "port"), ("db", "port")])
    assert ports.assign("a", [("db", "port"), ("web", "port"), ("web", "debug")]).items() >= first.items()
    assert len(set(first.values())) == 2


def test_ports_are_unique_over_all_bays(store: Store) -> None:
    ports = PortRegistry(store, range(21000, 21006), nobody)
    given = [port for bay in "abc" for port in ports.assign(bay, [("web", "port"), ("db", "port")]).values()]
    assert sorted(given) == list(range(21000, 21006))


def test_a_recreated_bay_gets_its_old_ports(store: Store) -> None:
    ports = PortRegistry(store, range(21000, 22000), nobody)
    wanted = [("web", "port"), ("web", "debug"), ("db", "port")]
    before = ports.assign("a", wanted)
    ports.release("a")
    assert store.ports("a") == []
    ports.assign("b", wanted)
    assert ports.assign("a", wanted) == before


def test_a_port_taken_by_another_process_is_replaced_and_said(store: Store) -> None:
    taken: set[int] = set()
    ports = PortRegistry(store, range(21000, 21100), lambda port: port not in taken)
    before = ports.assign("a", [("web", "port"), ("db", "port")])
    taken.add(before["web", "port"])
    said: list[str] = []
    after = ports.assign("a", [("web", "port"), ("db", "port")], notice=said.append)
    assert after["web", "port"] != before["web", "port"]
    assert after["db", "port"] == before["db", "port"]
    assert len(said) == 1
    assert str(before["web", "port"]) in said[0]
    assert str(after["web", "port"]) in said[0]


def test_ports_held_by_the_bays_own_containers_are_kept(store: Store) -> None:
    ports = PortRegistry(store, range(21000, 21100), nobody)
    before = ports.assign("a", [("web", "port")])
    everything_taken = PortRegistry(store, range(21000, 21100), lambda port: False)
    assert everything_taken.assign("a", [("web", "port")], held=set(before.values())) == before


def test_an_exhausted_range_is_a_clear_error(store: Store) -> None:
    ports = PortRegistry(store, range(21000, 21002), nobody)
    ports.assign("a", [("web", "port"), ("db", "port")])
    with pytest.raises(DevbayError) as caught:
        ports.assign("b", [("web", "port")])
    assert caught.value.code == "no_free_port"
    assert "21000" in caught.value.message
    assert caught.value.exit_code == 1


def test_concurrent_callers_never_share_a_port(store: Store) -> None:
    ports = PortRegistry(store, range(21000, 21060), nobody)
    jobs = [(bay, (f"s{n}", "port")) for n in range(20) for bay in "abc"]
    with ThreadPoolExecutor(16) as pool:
        given = list(pool.map(lambda job: ports.assign(job[0], [job[1]])[job[1]], jobs))
    assert sorted(given) == list(range(21000, 21060))


def test_concurrent_calls_for_one_service_agree(store: Store) -> None:
    ports = PortRegistry(store, range(21000, 21060), nobody)
    with ThreadPoolExecutor(8) as pool:
        given = list(pool.map(lambda _: ports.assign("a", [("web", "port")])["web", "port"], range(16)))
    assert len(set(given)) == 1
    assert len(store.ports("a")) == 1


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "0.0.0.0", "::"])
def test_a_listening_socket_is_detected(address: str) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind((address, 0))
        other.listen()
        assert not port_is_free(other.getsockname()[1])


def test_a_bound_socket_that_does_not_share_is_detected() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        assert not port_is_free(other.getsockname()[1])


def test_connections_in_time_wait_do_not_take_a_port() -> None:
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            accepted, _ = server.accept()
            accepted.close()  # the side that closes first keeps TIME_WAIT, here on the server's port
            assert client.recv(1) == b""
    with socket.socket() as strict, pytest.raises(OSError, match="in use"):
        strict.bind(("127.0.0.1", port))
    assert port_is_free(port)


def test_ports_browsers_block_are_never_given() -> None:
    around_irc = range(6660, 6700)
    assert set(candidates(around_irc, "x")) == set(around_irc) - BLOCKED_BY_BROWSERS


@pytest.mark.parametrize(
    ("ephemeral", "expected"),
    [
        (32768, range(20000, 30000)),
        (49152, range(20000, 30000)),
        (15000, range(5000, 15000)),
        (9000, range(1024, 9000)),
        (1024, range(20000, 30000)),
    ],
)
def test_the_range_lies_below_the_ephemeral_one(ephemeral: int, expected: range) -> None:
    assert usable_range(ephemeral) == expected


def test_the_ephemeral_range_is_read_from_the_kernel(tmp_path: Path) -> None:
    assert ephemeral_start(tmp_path) == 49152
    file = tmp_path / "sys/net/ipv4/ip_local_port_range"
    file.parent.mkdir(parents=True)
    file.write_text("32768\t60999\n")
    assert ephemeral_start(tmp_path) == 32768

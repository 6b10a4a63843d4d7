from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv4Network as Network

import pytest

from devbay.errors import DevbayError
from devbay.sites.subnets import (
    SubnetRegistry,
    candidates,
    host_routes,
    parse_fib_trie,
    parse_netstat,
    range_from_config,
)
from devbay.store import Store

SMALL = Network("10.213.0.0/25")  # four /27s


def registry(store: Store, *routes: str) -> SubnetRegistry:
    return SubnetRegistry(store, SMALL, lambda: [Network(route) for route in routes])


def test_each_bay_has_a_27_of_its_own_and_keeps_it(store: Store) -> None:
    subnets = registry(store)
    first, second = subnets.assign("a"), subnets.assign("b")
    assert Network(first).prefixlen == Network(second).prefixlen == 27
    assert not Network(first).overlaps(Network(second))
    assert subnets.assign("a") == first


def test_routes_and_engine_networks_are_avoided(store: Store) -> None:
    subnets = registry(store, "10.213.0.0/27", "10.213.0.40/32", "0.0.0.0/1")
    assert subnets.assign("a", ["10.213.0.64/28", "fd00::/64"]) == "10.213.0.96/27"


def test_the_route_of_the_bays_own_network_does_not_move_it(store: Store) -> None:
    mine = registry(store).assign("a")
    assert registry(store, mine, "10.213.0.1/32").assign("a") == mine


def test_a_subnet_that_got_overlapped_is_replaced(store: Store) -> None:
    mine = registry(store).assign("a")
    moved = registry(store, str(Network(mine).supernet())).assign("a")
    assert not Network(moved).overlaps(Network(mine).supernet())
    assert registry(store).assign("a", [moved]) != moved


def test_a_subnet_outside_a_changed_range_is_replaced(store: Store) -> None:
    registry(store).assign("a")
    elsewhere = SubnetRegistry(store, Network("172.30.0.0/25"), list)
    assert Network(elsewhere.assign("a")).subnet_of(Network("172.30.0.0/25"))


def test_every_27_of_the_range_is_tried_once() -> None:
    assert sorted(candidates(SMALL, "a")) == list(SMALL.subnets(new_prefix=27))


def test_a_released_subnet_is_given_again(store: Store) -> None:
    subnets = registry(store, "10.213.0.32/27", "10.213.0.64/26")  # one /27 is left
    mine = subnets.assign("a")
    subnets.release("a")
    assert subnets.assign("b") == mine == "10.213.0.0/27"


def test_a_full_range_is_a_clear_error(store: Store) -> None:
    with pytest.raises(DevbayError, match="every /27") as caught:
        registry(store, "10.213.0.0/26").assign("a", ["10.213.0.64/26"])
    assert caught.value.code == "no_free_subnet"
    with pytest.raises(DevbayError, match=r"route to 10\.0\.0\.0/8"):
        registry(store, "10.0.0.0/8").assign("a")


def test_concurrent_bays_never_share_a_subnet(store: Store) -> None:
    subnets = registry(store)
    with ThreadPoolExecutor(6) as pool:
        given = list(pool.map(subnets.assign, "abcabc"))
    assert len(set(given[:3])) == 3
    assert given[:3] == given[3:]


@pytest.mark.parametrize("text", ["10.213.0.0/28", "8.8.0.0/16", "10.213.0.1/16", "nonsense", 7.5])
def test_an_unusable_range_is_refused_by_name(text: object) -> None:
    with pytest.raises(DevbayError) as caught:
        range_from_config({"network": {"range": text}})
    assert caught.value.code == "bad_config"
    assert "network.range" in caught.value.message


def test_the_range_comes_from_the_configuration() -> None:
    assert range_from_config({}) == Network("10.213.0.0/16")
    assert range_from_config({"network": {"range": "172.30.0.0/16"}}) == Network("172.30.0.0/16")


def test_routes_are_leaves_of_the_kernels_trie_in_all_tables() -> None:
    text = """Main:
  +-- 0.0.0.0/0 3 0 4
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 172.16.0.0/14 2 0 2
        |-- 172.17.0.0
           /16 link UNICAST
Local:
  +-- 0.0.0.0/0 3 0 4
     |-- 172.17.0.1
        /32 host LOCAL
Id 52:
  +-- 100.64.0.0/10 1 0 0
     |-- 100.64.0.0
        /10 universe UNICAST
        /24 universe UNICAST
"""
    assert parse_fib_trie(text) == [
        Network("100.64.0.0/10"),
        Network("100.64.0.0/24"),
        Network("172.17.0.0/16"),
        Network("172.17.0.1/32"),
    ]


def test_netstats_short_destinations_are_read() -> None:
    text = """Routing tables

Internet:
Destination        Gateway            Flags    Netif Expire
default            192.168.4.1        UGScg      en0
127                127.0.0.1          UCS        lo0
10.8/16            10.8.0.1           UGSc     utun3
192.168.4          link#6             UCS        en0
192.168.4.1/32     link#6             UCS        en0
"""
    assert [str(network) for network in parse_netstat(text)] == [
        "10.8.0.0/16", "127.0.0.0/8", "192.168.4.0/24", "192.168.4.1/32",
    ]  # fmt: skip


def test_this_machines_routes_hold_loopback_and_no_default() -> None:
    routes = host_routes()
    assert Network("127.0.0.0/8") in routes
    assert all(route.prefixlen > 0 for route in routes)

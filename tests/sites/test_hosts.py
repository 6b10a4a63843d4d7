import pytest

from devbay.errors import DevbayError
from devbay.names import site_label
from devbay.sites.hosts import Route, SiteAddresses, host_name, suffixes_from_config, url

SITE = site_label("login", "shop")
PORTS = {("web", "port"): 20001, ("web", "debug"): 20002, ("debug", "port"): 20003, ("db", "port"): 20004}


def addresses(proxy_port: int = 80) -> SiteAddresses:
    return SiteAddresses(SITE, "web", PORTS, proxy_port)


def test_the_primary_service_has_the_bare_name_and_others_a_label_before_it() -> None:
    assert addresses().public_host("web") == "login--shop.localhost"
    assert addresses().public_host("db") == "db.login--shop.localhost"


def test_a_port_named_like_a_service_has_another_name_than_the_service() -> None:
    hosts = [addresses().public_host(service, port) for service, port in PORTS]
    assert len(set(hosts)) == len(hosts)
    assert addresses().public_host("web", "debug") == "debug.web.login--shop.localhost"
    assert addresses().public_host("debug") == "debug.login--shop.localhost"


def test_without_a_primary_every_service_has_its_own_label() -> None:
    assert SiteAddresses(SITE).public_host("web", "port") == "web.login--shop.localhost"


def test_urls_carry_the_proxys_port_unless_it_is_80() -> None:
    assert addresses().public_url("web") == "http://login--shop.localhost"
    assert addresses(7780).public_url("db") == "http://db.login--shop.localhost:7780"
    assert url("x.localhost", 80) == "http://x.localhost"


def test_host_ports_are_found_by_service_and_name() -> None:
    assert addresses().host_port("web", "debug") == 20002
    with pytest.raises(DevbayError) as caught:
        addresses().host_port("web", "metrics")
    assert caught.value.code == "unknown_port"


def test_routes_start_with_the_primary_service_and_cover_every_suffix() -> None:
    routes = addresses().routes("login", ["web", "debug"], ("localhost", "bays.example.com"))
    assert routes[0] == Route("login--shop.localhost", 20001, "login", "web")
    assert [route.host for route in routes] == [
        f"{prefix}login--shop.{suffix}"
        for suffix in ("localhost", "bays.example.com")
        for prefix in ("", "debug.", "debug.web.")
    ]
    assert {route.port for route in routes} == {20001, 20002, 20003}


def test_the_longest_names_still_fit_into_dns() -> None:
    long = "a" * 40
    host = host_name(site_label(long, long), long, long, None)
    assert len(host) <= 253
    assert all(len(label) <= 63 for label in host.split("."))


def test_a_domain_can_be_added_by_configuration() -> None:
    assert suffixes_from_config({}) == ("localhost",)
    assert suffixes_from_config({"proxy": {"domain": "Bays.Example.com."}}) == (
        "localhost",
        "bays.example.com",
    )


@pytest.mark.parametrize("domain", ["com", "a..b", "a b.c", "-a.b", "x}.y", "*.a.b", 7, "a" * 130 + ".b"])
def test_what_is_no_domain_is_refused(domain: object) -> None:
    with pytest.raises(DevbayError, match=r"proxy\.domain"):
        suffixes_from_config({"proxy": {"domain": domain}})

import pytest

from devbay.errors import DevbayError
from devbay.runtimes.outbound import CA_TARGET, Outbound


def test_without_configuration_nothing_is_given():
    outbound = Outbound.from_config({})
    assert (outbound.env(), outbound.mounts(), outbound.proxy_env()) == ({}, (), {})


def test_a_ca_bundle_is_mounted_where_the_variables_say(tmp_path):
    bundle = tmp_path / "ca.pem"
    bundle.touch()
    outbound = Outbound.from_config({"ca_bundle": str(bundle)})
    (mount,) = outbound.mounts()
    assert (mount.source, mount.target, mount.read_only) == (str(bundle), CA_TARGET, True)
    assert set(outbound.env().values()) == {CA_TARGET}
    assert {"SSL_CERT_FILE", "PIP_CERT", "NODE_EXTRA_CA_CERTS"} <= outbound.env().keys()


def test_proxies_come_in_both_spellings_and_spare_the_bays_services():
    outbound = Outbound.from_config({"proxies": {"https": "http://p:1", "no_proxy": "corp.example"}})
    env = outbound.proxy_env(direct=["db"])
    assert env["HTTPS_PROXY"] == env["https_proxy"] == "http://p:1"
    assert env["no_proxy"] == "corp.example,localhost,127.0.0.1,::1,db"
    assert "HTTP_PROXY" not in env


@pytest.mark.parametrize(
    "config",
    [
        {"ca_bundle": "/no/such/file"},
        {"ca_bundle": 1},
        {"proxies": "http://p"},
        {"proxies": {"ftp": "x"}},
        {"proxies": {"http": 1}},
    ],
)
def test_wrong_configuration_is_named(config):
    with pytest.raises(DevbayError, match=next(iter(config))) as raised:
        Outbound.from_config(config)
    assert raised.value.code == "bad_config"

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from devbay.errors import DevbayError
from devbay.runtimes.docker.contexts import Endpoint, client_argv, engine_configured, resolve_endpoint


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / ".docker").mkdir()
    return tmp_path / ".docker"


def add_context(config: Path, name: str, endpoint: dict[str, Any], *, tls: bool = False) -> None:
    folder = hashlib.sha256(name.encode()).hexdigest()
    meta = config / "contexts" / "meta" / folder
    meta.mkdir(parents=True)
    (meta / "meta.json").write_text(json.dumps({"Name": name, "Endpoints": {"docker": endpoint}}))
    if tls:
        material = config / "contexts" / "tls" / folder / "docker"
        material.mkdir(parents=True)
        for part in ("ca", "cert", "key"):
            (material / f"{part}.pem").write_text(part)


def use_context(config: Path, name: str) -> None:
    (config / "config.json").write_text(json.dumps({"currentContext": name}))


def test_without_anything_the_default_socket_is_meant(config: Path) -> None:
    found = resolve_endpoint({"HOME": str(config.parent)})
    assert (found.name, found.host, found.tls) == ("default", "unix:///var/run/docker.sock", False)


def test_docker_host_beats_docker_context_beats_current_context(config: Path) -> None:
    add_context(config, "colima", {"Host": "unix:///colima.sock"})
    add_context(config, "other", {"Host": "unix:///other.sock"})
    use_context(config, "colima")
    env = {"HOME": str(config.parent)}
    assert resolve_endpoint(env).host == "unix:///colima.sock"
    env["DOCKER_CONTEXT"] = "other"
    assert resolve_endpoint(env).host == "unix:///other.sock"
    env["DOCKER_HOST"] = "unix:///env.sock"
    assert resolve_endpoint(env) == Endpoint("default", "unix:///env.sock", config_dir=str(config))


def test_docker_context_default_means_the_default_socket(config: Path) -> None:
    add_context(config, "colima", {"Host": "unix:///colima.sock"})
    use_context(config, "colima")
    env = {"HOME": str(config.parent), "DOCKER_CONTEXT": "default"}
    assert resolve_endpoint(env).host == "unix:///var/run/docker.sock"


def test_docker_config_moves_the_whole_configuration(config: Path, tmp_path: Path) -> None:
    add_context(config, "colima", {"Host": "unix:///colima.sock"})
    use_context(config, "colima")
    found = resolve_endpoint({"HOME": "/nowhere", "DOCKER_CONFIG": str(config)})
    assert (found.name, found.config_dir) == ("colima", str(config))


@pytest.mark.parametrize(("skip", "verify"), [(False, True), (True, False)])
def test_a_context_brings_its_tls_material(config: Path, skip: bool, verify: bool) -> None:
    add_context(config, "far", {"Host": "tcp://10.0.0.1:2376", "SkipTLSVerify": skip}, tls=True)
    found = resolve_endpoint({"HOME": str(config.parent), "DOCKER_CONTEXT": "far"})
    assert found.tls and found.verify is verify
    assert Path(found.ca or "").read_text() == "ca" and Path(found.key or "").read_text() == "key"


def test_tls_variables_count_for_tcp_only(config: Path, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("")
    env = {"HOME": str(config.parent), "DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": str(tmp_path)}
    far = resolve_endpoint(env | {"DOCKER_HOST": "tcp://10.0.0.1:2376"})
    assert far.tls and far.verify and far.ca == str(tmp_path / "ca.pem") and far.cert is None
    assert not resolve_endpoint(env | {"DOCKER_HOST": "unix:///x.sock"}).tls
    unverified = resolve_endpoint(
        {"HOME": str(config.parent), "DOCKER_TLS": "1", "DOCKER_HOST": "tcp://10.0.0.1:2376"}
    )
    assert unverified.tls and not unverified.verify


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("10.0.0.1:2375", "tcp://10.0.0.1:2375"),
        ("https://h:2376", "tcp://h:2376"),
        ("ssh://me:secret@h:22/p", "ssh://me@h:22/p"),
        ("/run/user/1000/docker.sock", "unix:///run/user/1000/docker.sock"),
        ("unix:///with space/d.sock", "unix:///with space/d.sock"),
    ],
)
def test_forms_of_docker_host(config: Path, written: str, meant: str) -> None:
    assert resolve_endpoint({"HOME": str(config.parent), "DOCKER_HOST": written}).host == meant


def test_an_endpoint_survives_json(config: Path) -> None:
    add_context(config, "far", {"Host": "tcp://10.0.0.1:2376"}, tls=True)
    found = resolve_endpoint({"HOME": str(config.parent), "DOCKER_CONTEXT": "far"})
    assert Endpoint.from_json(json.loads(json.dumps(found.to_json()))) == found


def test_a_missing_context_is_named(config: Path) -> None:
    with pytest.raises(DevbayError, match="'gone' does not exist") as raised:
        resolve_endpoint({"HOME": str(config.parent), "DOCKER_CONTEXT": "gone"})
    assert raised.value.code == "docker_context" and raised.value.next == "docker context ls"


@pytest.mark.parametrize("content", ["{", "[]", '{"Endpoints": []}', '{"Endpoints": {"docker": 1}}'])
def test_a_broken_context_says_which_file(config: Path, content: str) -> None:
    add_context(config, "bad", {})
    path = next(config.glob("contexts/meta/*/meta.json"))
    path.write_text(content)
    with pytest.raises(DevbayError, match=r"meta\.json") as raised:
        resolve_endpoint({"HOME": str(config.parent), "DOCKER_CONTEXT": "bad"})
    assert raised.value.code == "docker_context"


def test_a_broken_configuration_is_an_error_not_the_default_engine(config: Path) -> None:
    (config / "config.json").write_text("{")
    with pytest.raises(DevbayError, match=r"config\.json"):
        resolve_endpoint({"HOME": str(config.parent)})


def test_what_counts_as_a_configured_engine(config: Path, tmp_path: Path) -> None:
    env, nothing = {"HOME": str(config.parent)}, tmp_path / "none.sock"
    assert not engine_configured(env, default_socket=nothing)
    assert engine_configured(env | {"DOCKER_HOST": "unix:///gone"}, default_socket=nothing)
    assert engine_configured(env | {"DOCKER_CONTEXT": "colima"}, default_socket=nothing)
    assert not engine_configured(env | {"DOCKER_CONTEXT": "default"}, default_socket=nothing)
    nothing.touch()
    assert engine_configured(env, default_socket=nothing)


def test_the_client_is_told_everything_about_the_engine() -> None:
    endpoint = Endpoint("far", "tcp://h:2376", tls=True, ca="/ca", cert="/cert", key="/key", config_dir="/c")
    assert client_argv(endpoint) == [
        "docker", "--config", "/c", "--host", "tcp://h:2376", "--tlsverify",
        "--tlscacert", "/ca", "--tlscert", "/cert", "--tlskey", "/key",
    ]  # fmt: skip

import base64
import json
import os

import pytest

from devbay.errors import DevbayError
from devbay.runtimes.docker.registry import registry_auth

TOKEN = base64.b64encode(b"ada:pw").decode()


def write(folder, **config):
    (folder / "config.json").write_text(json.dumps(config))
    return str(folder)


def auth(reference, folder, **env):
    found = registry_auth(reference, str(folder), env)
    return json.loads(base64.urlsafe_b64decode(found)) if found else None


def helper(folder, script, name="docker-credential-test"):
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


@pytest.mark.parametrize("reference", ["reg.example/team/web:1", "reg.example/web@sha256:" + "0" * 64])
def test_a_login_for_the_images_registry_is_used(tmp_path, reference):
    folder = write(tmp_path, auths={"reg.example": {"auth": TOKEN}})
    assert auth(reference, folder)["username"] == "ada"


def test_an_image_without_a_registry_uses_the_login_for_the_hub(tmp_path):
    folder = write(tmp_path, auths={"https://index.docker.io/v1/": {"auth": TOKEN}})
    assert auth("postgres:17", folder)["username"] == "ada"
    assert auth("ada/web", folder)["username"] == "ada"


@pytest.mark.parametrize("config", [{}, {"auths": {}}, {"auths": {"other.example": {"auth": TOKEN}}}])
def test_no_login_is_no_header(tmp_path, config):
    assert auth("reg.example/web", write(tmp_path, **config)) is None


def test_no_configuration_is_no_header_whatever_the_daemon_has(tmp_path, monkeypatch):
    write(tmp_path, auths={"reg.example": {"auth": TOKEN}})
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    assert auth("reg.example/web", tmp_path / "caller") is None


def test_the_helper_on_the_callers_path_is_asked(tmp_path):
    script = """read server; echo '{"Username": "'$WHO'", "Secret": "s-'$server'"}'"""
    env = helper(tmp_path / "bin", script) | {"WHO": "eve"}
    folder = write(tmp_path, credHelpers={"reg.example": "test"})
    found = auth("reg.example/web", folder, **env)
    assert (found["Username"], found["Password"]) == ("eve", "s-reg.example")


def test_a_store_for_everything_is_asked_too(tmp_path):
    env = helper(tmp_path / "bin", """echo '{"Username": "<token>", "Secret": "t"}'""")
    found = auth("reg.example/web", write(tmp_path, credsStore="test"), **env)
    assert found["IdentityToken"] == "t"


def test_a_missing_helper_is_named(tmp_path):
    folder = write(tmp_path, credsStore="nowhere")
    with pytest.raises(DevbayError, match="docker-credential-nowhere") as raised:
        auth("reg.example/web", folder, PATH="/bin")
    assert raised.value.code == "credential_helper"


def test_a_helper_that_knows_nothing_is_no_error(tmp_path):
    env = helper(tmp_path / "bin", "echo 'credentials not found in native keychain'; exit 1")
    assert auth("reg.example/web", write(tmp_path, credsStore="test"), **env) is None


def test_what_a_failing_helper_says_is_not_shown(tmp_path):
    env = helper(tmp_path / "bin", "echo 'pw=hunter2 is wrong'; exit 1")
    with pytest.raises(DevbayError) as raised:
        auth("reg.example/web", write(tmp_path, credsStore="test"), **env)
    assert raised.value.code == "credential_helper"
    assert "hunter2" not in raised.value.message


def test_a_broken_configuration_is_named(tmp_path):
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(DevbayError, match=r"config\.json") as raised:
        auth("reg.example/web", tmp_path)
    assert raised.value.code == "docker_config"

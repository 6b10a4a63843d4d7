"""Pulls from a real registry, which Debian's package `docker-registry` gives."""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from devbay.errors import DevbayError
from devbay.jobs import Job
from devbay.runtimes.docker.contexts import resolve_endpoint
from devbay.runtimes.docker.engine import Engine
from devbay.runtimes.docker.images import ensure_pulled, find_image
from integration.house import docker, wait_for

IMAGE = "busybox:1.37"
pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(
        not (shutil.which("docker-registry") and shutil.which("htpasswd")),
        reason="needs docker-registry and htpasswd: apt-get install docker-registry apache2-utils",
    ),
]
CONFIG = """
version: 0.1
log: {{level: error}}
storage: {{filesystem: {{rootdirectory: {folder}/data}}}}
http: {{addr: "127.0.0.1:{port}"}}
auth: {{htpasswd: {{realm: test, path: {folder}/users}}}}
"""


@dataclass
class Registry:
    """A registry on loopback (which engines trust without TLS) that knows one user."""

    address: str
    folder: Path

    def config_dir(self, name: str, user: str | None) -> str:
        """A Docker configuration that is logged in as `user`, or not at all."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        token = base64.b64encode(f"{user}:{user}".encode()).decode()
        auths = {self.address: {"auth": token}} if user else {}
        (folder / "config.json").write_text(json.dumps({"auths": auths}))
        return str(folder)

    def reference(self, tag: str) -> str:
        return f"{self.address}/shop/{tag}"


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    folder = tmp_path_factory.mktemp("registry")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    found = Registry(f"127.0.0.1:{port}", folder)
    subprocess.run(["htpasswd", "-Bbc", str(folder / "users"), "ada", "ada"], check=True, capture_output=True)
    (folder / "config.yml").write_text(CONFIG.format(folder=folder, port=port))
    with subprocess.Popen(
        ["docker-registry", "serve", str(folder / "config.yml")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as server:
        wait_for(lambda: _answers(port), "the registry")
        docker("tag", IMAGE, found.reference("web:1"))
        docker("--config", found.config_dir("push", "ada"), "push", "-q", found.reference("web:1"))
        docker("rmi", found.reference("web:1"))
        yield found
        server.terminate()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def pull(registry: Registry) -> Iterator:
    """`pull(image, user)`: pull as a caller whose Docker configuration has that login."""
    pulled: list[str] = []

    def pull(tag: str, user: str | None, job: Job | None = None, platform: str | None = None) -> str:
        endpoint = replace(resolve_endpoint(os.environ), config_dir=registry.config_dir(f"as-{user}", user))
        pulled.append(registry.reference(tag))
        return ensure_pulled(Engine(endpoint), pulled[-1], platform, os.environ, job or Job()).id

    yield pull
    for reference in set(pulled):
        docker("rmi", reference, code=None)


def test_a_private_image_is_pulled_with_the_callers_login(pull):
    seen: list[float | None] = []
    assert pull("web:1", "ada", Job(lambda _message, fraction: seen.append(fraction)))
    assert seen[0] == 0.0
    assert seen[-1] in (0.0, 1.0)  # its layers may be here already


@pytest.mark.parametrize("user", [None, "eve"])
def test_a_caller_without_the_right_login_is_told_to_log_in(pull, registry, user):
    with pytest.raises(DevbayError) as raised:
        pull("web:1", user)
    assert raised.value.code == "registry_denied"
    assert raised.value.next == f"docker login {registry.address}"


def test_a_tag_or_name_that_is_not_there_is_named(pull, registry):
    for tag in ("web:2", "nothing:1"):
        with pytest.raises(DevbayError, match=registry.reference(tag)) as raised:
            pull(tag, "ada")
        assert raised.value.code == "image_not_found"


def test_another_platform_than_the_image_has_is_named(pull):
    with pytest.raises(DevbayError) as raised:
        pull("web:1", "ada", platform="linux/s390x")
    assert raised.value.code == "wrong_architecture"


def test_many_at_once_pull_once(pull, registry):
    ids, messages = [], []
    job = Job(lambda message, fraction: messages.append((message, fraction)))
    threads = [threading.Thread(target=lambda: ids.append(pull("web:1", "ada", job))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(ids)) == 1
    assert len(ids) == 4
    assert [fraction for _, fraction in messages].count(0.0) == 1


def test_an_image_by_digest_is_pulled_and_found(pull, registry):
    pull("web:1", "ada")
    (digest,) = [
        each.rpartition("@")[2]
        for each in json.loads(docker("image", "inspect", registry.reference("web:1")))[0]["RepoDigests"]
        if each.startswith(registry.address)
    ]
    docker("rmi", registry.reference("web:1"))
    found = pull(f"web@{digest}", "ada")
    engine = Engine(resolve_endpoint(os.environ))
    assert find_image(engine, f"{registry.reference('web')}@{digest}").id == found

"""An engine reached over TCP with TLS, as a context or `DOCKER_HOST` describes it."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from devbay.errors import Cancelled, DevbayError
from devbay.jobs import Job
from devbay.runtimes.docker import containers
from devbay.runtimes.docker.containers import ContainerSpec
from devbay.runtimes.docker.contexts import DEFAULT_SOCKET, client_argv, resolve_endpoint
from devbay.runtimes.docker.engine import Engine

LABELS = {"dev.devbay.home": "tls"}

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(
        shutil.which("openssl") is None or not DEFAULT_SOCKET.exists(),
        reason="needs openssl and a local engine",
    ),
]


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CA, and a key and certificate for `server` and for the client (`key.pem`, `cert.pem`)."""
    folder = tmp_path_factory.mktemp("tls")

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    (folder / "ext").write_text("subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n")
    key = ("-newkey", "rsa:2048", "-nodes", "-days", "2")
    openssl("req", "-x509", *key, "-keyout", "ca-key.pem", "-out", "ca.pem", "-subj", "/CN=ca")
    for name, prefix in (("server", "server-"), ("client", "")):
        openssl("req", *key[:3], "-keyout", f"{prefix}key.pem", "-out", "csr", "-subj", f"/CN={name}")
        openssl("x509", "-req", "-in", "csr", "-CA", "ca.pem", "-CAkey", "ca-key.pem", "-CAcreateserial",
                "-out", f"{prefix}cert.pem", "-days", "2", "-extfile", "ext")  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def port(material: Path) -> Iterator[int]:
    """A port that speaks TLS, wants a client's certificate, and passes on to the machine's engine."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(material / "ca.pem"))
    context.load_cert_chain(material / "server-cert.pem", material / "server-key.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    listener = socket.create_server(("127.0.0.1", 0))

    def copy(source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_RDWR)
        except OSError:
            target.close()

    def serve(plain: socket.socket) -> None:
        try:
            outer = context.wrap_socket(plain, server_side=True)
        except OSError:
            plain.close()
            return
        inner = socket.socket(socket.AF_UNIX)
        inner.connect(str(DEFAULT_SOCKET))
        threading.Thread(target=copy, args=(inner, outer), daemon=True).start()
        copy(outer, inner)

    def accept() -> None:
        while True:
            try:
                plain, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(plain,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield int(listener.getsockname()[1])
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def environment(port: int, certificates: Path) -> dict[str, str]:
    return {
        "HOME": str(certificates),
        "DOCKER_HOST": f"tcp://127.0.0.1:{port}",
        "DOCKER_TLS_VERIFY": "1",
        "DOCKER_CERT_PATH": str(certificates),
    }


def test_an_engine_over_tls_works_streams_and_cancels(
    port: int, material: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "REQUESTS_CA_BUNDLE", "/etc/ssl/certs/ca-certificates.crt"
    )  # the daemon's, not the caller's
    endpoint = resolve_endpoint(environment(port, material))
    engine = Engine(endpoint)
    engine.check()
    container = containers.create(
        engine, ContainerSpec("devbay-tls", "busybox:1.37", command=("sleep", "60"), labels=LABELS)
    )
    try:
        containers.start(engine, container)
        assert containers.exec_(engine, container, ["echo", "hi"], timeout_s=10).output == b"hi\n"
        job = Job()
        threading.Timer(0.1, job.cancel).start()
        with pytest.raises(Cancelled):
            containers.wait(engine, container, job)
    finally:
        containers.remove(engine, container)
    told = subprocess.run([*client_argv(endpoint), "version"], check=False, capture_output=True, env={})
    assert told.returncode == 0


def test_an_engine_whose_certificate_is_not_known_is_unreachable(port: int, tmp_path: Path) -> None:
    with pytest.raises(DevbayError, match="CERTIFICATE_VERIFY_FAILED") as raised:
        Engine(resolve_endpoint(environment(port, tmp_path))).check()
    assert raised.value.code == "engine_unreachable"

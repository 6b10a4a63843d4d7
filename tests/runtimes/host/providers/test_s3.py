"""S3 as a bay has it, where moto stands in for MinIO."""

from __future__ import annotations

import os
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from devbay.errors import DevbayError
from devbay.jobs import Job
from devbay.runtimes.host.providers import base, s3
from devbay.runtimes.host.providers.s3 import S3

PATH = os.environ.get("PATH", "")
PROVIDER = S3()
SIGNED = (
    "AWS4-HMAC-SHA256 Credential=any/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=wrong"
)


def ask(port: int, path: str, method: str = "GET", body: bytes | None = None) -> tuple[int, bytes]:
    headers = {"Authorization": SIGNED, "Content-Type": "application/octet-stream"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, headers, method=method)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.status, answer.read()


def test_objects_are_kept_and_minios_health_routes_answer(
    monkeypatch: pytest.MonkeyPatch, spec_of: Any, data: Path, servers: Any, run: Any, templates: Any
) -> None:
    monkeypatch.setattr(s3, "PLACES", ())
    try:
        server = PROVIDER.find("minio/minio", "")
    except DevbayError as error:
        pytest.skip(error.message)
    assert "moto" in server.note and "gone when the service stops" in server.note
    command = ("server", "/data", "--console-address", ":9001")
    spec = spec_of("minio/minio", ports={"port": 9000, "console": 9001}, command=command)
    PROVIDER.prepare(spec, server, data, templates, None, run, Job())
    check = PROVIDER.probe(spec, server, ("curl", "-f", "http://localhost:9000/minio/health/live"))
    assert callable(check)
    servers.start(PROVIDER.launch(spec, server, data, None), check)
    port = spec.ports["port"][1]
    assert [ask(port, f"/minio/health/{word}")[0] for word in ("live", "ready", "cluster")] == [200] * 3
    ask(port, "/bucket", "PUT")
    ask(port, "/bucket/key", "PUT", b"content")
    assert ask(port, "/bucket/key") == (200, b"content")
    assert b"moto" in ask(spec.ports["console"][1], "/")[1]


def test_minio_of_the_machine_is_preferred_and_given_its_folder_and_ports(
    tmp_path: Path, spec_of: Any, data: Path
) -> None:
    program = tmp_path / "minio"
    program.write_text("#!/bin/sh\necho 'minio version RELEASE.2025-04-22T22-12-26Z'\n")
    program.chmod(0o755)
    server = PROVIDER.find("minio/minio", str(tmp_path))
    assert (server.program, server.note) == (program, "")
    env = {"MINIO_ROOT_USER": "u", "MINIO_ROOT_PASSWORD": "secret"}
    spec = spec_of("minio/minio", ports={"port": 9000}, env=env, command=("server", "/data"))
    launch = PROVIDER.launch(spec, server, data, None)
    port = spec.ports["port"][1]
    assert launch.argv == (str(program), "server", str(data), "--address", f"127.0.0.1:{port}")
    assert launch.env["MINIO_ROOT_PASSWORD"] == "secret"
    assert launch.env["MINIO_BROWSER"] == "off"


def test_without_both_the_refusal_names_the_ways_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "wheel", lambda package: None)
    monkeypatch.setattr(s3, "PLACES", ())
    with pytest.raises(DevbayError) as refused:
        PROVIDER.find("minio/minio", "")
    assert "devbay[s3]" in refused.value.next and "container engine" in refused.value.next

"""S3: MinIO where the machine has it, else the wheel `moto` behind MinIO's health routes."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from devbay.jobs import Job
from devbay.runtimes.base import ServiceSpec
from devbay.runtimes.host.launch import Launch
from devbay.runtimes.host.owner import Owner, owner_of
from devbay.runtimes.host.providers import base
from devbay.runtimes.host.providers.base import Check, Run, Server
from devbay.runtimes.host.templates import Templates

PORT, CONSOLE = 9000, 9001
PROGRAM = Path(__file__).with_name("s3server.py")
PLACES = ("/usr/local/bin", "/usr/bin", "/opt/homebrew/bin")


class S3:
    """MinIO keeps objects in the data directory; moto keeps them in memory, which is said."""

    family = "minio"

    def find(self, image: str, path: str, data: Path | None = None) -> Server:
        base.refuse_vendor(image)
        for program in base.on_path(("minio",), path, *PLACES):
            version = base.said_version(program) or "unknown"
            return Server("minio", version, program, program.parent, str(program.parent))
        if base.wheel("moto") is None or base.wheel("flask") is None:
            way = "`pip install 'devbay[s3]'`, or install MinIO"
            raise base.not_met(image, "no minio, and the package moto[server] is missing", way)
        version = importlib.metadata.version("moto")
        note = (
            f"{image} is met by moto {version}: S3 for tests, any credentials pass, "
            "and objects are gone when the service stops"
        )
        python = Path(sys.executable)
        return Server("moto", version, python, python.parent, "the wheel moto", note)

    def prepare(
        self,
        spec: ServiceSpec,
        server: Server,
        data: Path,
        templates: Templates,
        owner: Owner | None,
        run: Run,
        job: Job,
    ) -> None:
        base.refuse_files(spec, "MINIO_")
        base.make_data(data, owner if server.family == "minio" else None)

    def launch(self, spec: ServiceSpec, server: Server, data: Path, owner: Owner | None) -> Launch:
        words = base.command(spec)
        if words and Path(words[0]).name not in {"minio", "server"}:
            return base.client_launch(spec, server, {})
        port = base.given(spec, declared=PORT)
        console = console_port(spec)
        if server.family == "moto":
            further = ("--console", str(console)) if console else ()
            argv = (str(server.program), "-P", str(PROGRAM), "--port", str(port), *further)
        else:
            further = ("--console-address", f"{base.LOOPBACK}:{console}") if console else ()
            argv = (
                str(server.program),
                "server",
                str(data),
                "--address",
                f"{base.LOOPBACK}:{port}",
                *further,
            )
        return Launch(
            mark=base.mark(spec),
            argv=argv,
            env={
                **({} if console else {"MINIO_BROWSER": "off"}),  # it would listen on a port of its own
                "HOME": str(data),
                **spec.env,
                **(base.python_env("moto") if server.family == "moto" else {}),
                "PATH": f"{server.bin}:{base.SYSTEM_PATH}",
            },
            cwd=str(data),
            user=owner_of(data, owner) if server.family == "minio" else None,
            restart=spec.restart,
            limits=spec.limits,
        )

    def probe(self, spec: ServiceSpec, server: Server, argv: Sequence[str]) -> tuple[str, ...] | Check | None:
        """`mc ready local` and `curl .../minio/health/live` ask for the health of the server."""
        words = base.simple_command(argv, spec.env) or ()
        if tuple(words[:2]) == ("mc", "ready") or any("/minio/health/" in word for word in words):
            return base.http_check(base.given(spec, declared=PORT), "/minio/health/live")
        return None

    def client_env(self, spec: ServiceSpec, server: Server) -> Mapping[str, str]:
        return {}

    def clean(self, data: Path) -> None:
        """Nothing is left outside the folder."""


def console_port(spec: ServiceSpec) -> int | None:
    declared = dict(spec.ports.values())
    return declared.get(CONSOLE) or next(
        (outer for name, (_, outer) in spec.ports.items() if "console" in name), None
    )

"""Mail: `mailbox.py` stands in for Mailpit, MailHog and MailCatcher."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from devbay.jobs import Job
from devbay.runtimes.base import ServiceSpec
from devbay.runtimes.host.launch import Launch
from devbay.runtimes.host.owner import Owner
from devbay.runtimes.host.providers import base
from devbay.runtimes.host.providers.base import Check, Run, Server
from devbay.runtimes.host.templates import Templates

SMTP_PORT, HTTP_PORTS = 1025, (8025, 1080)
PROGRAM = Path(__file__).with_name("mailbox.py")


class Mail:
    """A small process of devbay's own: it takes any mail, sends none on, and shows what came."""

    family = "mail"

    def find(self, image: str, path: str, data: Path | None = None) -> Server:
        if base.wheel("aiosmtpd") is None:
            raise base.not_met(image, "the package aiosmtpd is missing", "`pip install 'devbay[host]'`")
        version = importlib.metadata.version("aiosmtpd")
        origin = "devbay's own mailbox"
        note = f"{image} is met by {origin}: SMTP and the common routes of its API, with a plain page"
        python = Path(sys.executable)
        return Server(
            "mailhog" if "mailhog" in image.lower() else "mailpit",
            version,
            python,
            python.parent,
            origin,
            note,
        )

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
        base.make_data(data, None)

    def launch(self, spec: ServiceSpec, server: Server, data: Path, owner: Owner | None) -> Launch:
        """As devbay's own user: its interpreter may lie where no other reaches it."""
        smtp, http = ports(spec)
        words = (*(("--smtp", str(smtp)) if smtp else ()), *(("--http", str(http)) if http else ()))
        return Launch(
            mark=base.mark(spec),
            argv=(
                str(server.program),
                "-P",
                str(PROGRAM),
                "--folder",
                str(data),
                "--as",
                server.family,
                *words,
            ),
            env={**base.python_env("aiosmtpd"), "PATH": base.SYSTEM_PATH, "LC_ALL": "C.UTF-8"},
            cwd=str(data),
            restart=spec.restart,
            limits=spec.limits,
        )

    def probe(self, spec: ServiceSpec, server: Server, argv: Sequence[str]) -> tuple[str, ...] | Check | None:
        """The images' own command is `/mailpit readyz`; others (`wget`, `nc`) are run as they are."""
        return base.http_check(ports(spec)[1], "/readyz") if argv[-1] == "readyz" else None

    def client_env(self, spec: ServiceSpec, server: Server) -> Mapping[str, str]:
        return {}

    def clean(self, data: Path) -> None:
        """Nothing is left outside the folder."""


def ports(spec: ServiceSpec) -> tuple[int | None, int | None]:
    """(SMTP, HTTP) as given on this machine: by what is declared, else by the ports' names."""
    declared = dict(spec.ports.values())
    smtp = declared.get(SMTP_PORT) or _named(spec, "smtp")
    http = next((declared[port] for port in HTTP_PORTS if port in declared), None)
    http = http or _named(spec, "http", "web", "ui")
    if smtp is None and http is None:
        smtp = base.given(spec, declared=SMTP_PORT)
    return smtp, http


def _named(spec: ServiceSpec, *parts: str) -> int | None:
    return next(
        (outer for name, (_, outer) in spec.ports.items() if any(part in name for part in parts)), None
    )

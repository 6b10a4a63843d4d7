"""Memcached: a server of the machine, since no wheel ships one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from devbay.jobs import Job
from devbay.runtimes.base import ServiceSpec
from devbay.runtimes.host.launch import Launch
from devbay.runtimes.host.owner import Owner, owner_of
from devbay.runtimes.host.providers import asks, base
from devbay.runtimes.host.providers.base import Check, Run, Server
from devbay.runtimes.host.templates import Templates

PORT = 11211
PLACES = ("/usr/bin", "/usr/sbin", "/usr/local/bin", "/opt/homebrew/bin")


class Memcached:
    """Keeps nothing, so any version does."""

    family = "memcached"

    def find(self, image: str, path: str, data: Path | None = None) -> Server:
        for program in base.on_path(("memcached",), path, *PLACES):
            version = base.said_version(program)
            if version:
                wanted = base.tag_version(image)
                note = f"{image} is met by memcached {version} ({program.parent})"
                fits = base.fits(version, wanted, 2)
                origin = str(program.parent)
                return Server("memcached", version, program, program.parent, origin, "" if fits else note)
        raise base.not_met(
            image, "no memcached", "install it (`apt install memcached`, `brew install memcached`)"
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
        base.make_data(data, owner)  # where it runs; nothing is written there

    def launch(self, spec: ServiceSpec, server: Server, data: Path, owner: Owner | None) -> Launch:
        flags = base.server_flags(spec, "memcached")
        if flags is None:
            return base.client_launch(spec, server, {})
        user = owner_of(data, owner)
        port = str(base.given(spec, declared=PORT))
        return Launch(
            mark=base.mark(spec),
            argv=(str(server.program), *flags, "-l", base.LOOPBACK, "-p", port, "-U", "0"),
            env={**spec.env, "PATH": f"{server.bin}:{base.SYSTEM_PATH}"},
            cwd=str(data),
            user=user,
            restart=spec.restart,
            limits=spec.limits,
        )

    def probe(self, spec: ServiceSpec, server: Server, argv: Sequence[str]) -> tuple[str, ...] | Check | None:
        """Its images have no client, so commands such as `nc -z` are run as they are."""
        if Path(argv[-1]).name != "memcached-tool" and "version" not in argv[-1]:
            return None
        port = base.given(spec, declared=PORT)
        return lambda: asks.memcached(port)

    def client_env(self, spec: ServiceSpec, server: Server) -> Mapping[str, str]:
        return {}

    def clean(self, data: Path) -> None:
        """Nothing is left outside the folder."""

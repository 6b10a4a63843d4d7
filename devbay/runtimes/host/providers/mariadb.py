"""MariaDB and MySQL: a server of the machine, since no wheel ships one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from devbay.jobs import Job
from devbay.manifest.images import family
from devbay.runtimes.base import ServiceSpec
from devbay.runtimes.host.launch import Launch
from devbay.runtimes.host.owner import Owner, owner_of
from devbay.runtimes.host.providers import asks, base, mydata
from devbay.runtimes.host.providers.base import Check, Run, Server
from devbay.runtimes.host.templates import Templates

PLACES = (
    "/usr/sbin", "/usr/bin", "/usr/libexec", "/usr/local/mysql/bin",
    "/opt/homebrew/opt/mariadb/bin", "/opt/homebrew/opt/mysql/bin", "/opt/homebrew/bin", "/usr/local/bin",
)  # fmt: skip
PROGRAMS = ("mariadbd", "mysqld")
CLIENTS = frozenset({"mariadb", "mysql", "mariadb-dump", "mysqldump"})
PINGS = frozenset({"mysqladmin", "mariadb-admin", "healthcheck.sh"})
CONFIGURATION = "/etc/mysql"


class MariaDB:
    """Both images are met by either server; which one it is, and its version, is said where it differs."""

    family = "mariadb"

    def find(self, image: str, path: str, data: Path | None = None) -> Server:
        base.refuse_vendor(image)
        wanted, kind = base.tag_version(image), family(image)
        found = []
        for program in base.on_path(PROGRAMS, path, *PLACES):
            if version := base.said_version(program):
                found.append((program, version))
        if not found:
            way = "install it (`apt install mariadb-server-core`, `brew install mariadb`)"
            raise base.not_met(image, "no MariaDB or MySQL server", way)
        made_by = mydata.made_by(data) if data else None
        program, version = min(
            found,
            key=lambda one: (
                made_by not in {None, kind_of(one[0])},
                kind_of(one[0]) != kind,
                base.distance(one[1], wanted),
            ),
        )
        name = "MariaDB" if kind_of(program) == "mariadb" else "MySQL"
        met = kind_of(program) == kind and base.fits(version, wanted, 2)
        note = "" if met else f"{image} is met by {name} {version} ({program.parent})"
        return Server("mariadb", version, program, program.parent, str(program.parent), note)

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
        flags = base.server_flags(spec, *PROGRAMS)
        if flags is not None:
            mydata.prepare(spec, server, defaults(spec), flags, data, templates, owner, run, job)

    def launch(self, spec: ServiceSpec, server: Server, data: Path, owner: Owner | None) -> Launch:
        flags = base.server_flags(spec, *PROGRAMS)
        if flags is None:
            return base.client_launch(spec, server, self.client_env(spec, server))
        kept = {
            name: value for name, value in spec.env.items() if not name.startswith(("MYSQL_", "MARIADB_"))
        }
        port = base.given(spec, declared=mydata.PORT)
        return Launch(
            mark=base.mark(spec),
            argv=(
                str(server.program), defaults(spec), *mydata.SETTINGS, *flags, f"--datadir={data}",
                f"--bind-address={base.LOOPBACK}", f"--port={port}", *mydata.ALONE,
            ),
            env={**kept, **mydata.server_env(server)},
            cwd=str(data),
            user=owner_of(data, owner),
            restart=spec.restart,
            limits=spec.limits,
        )  # fmt: skip

    def probe(self, spec: ServiceSpec, server: Server, argv: Sequence[str]) -> tuple[str, ...] | Check | None:
        words = base.simple_command(argv, spec.env)
        if not words:
            return None
        program = Path(words[0]).name
        if program in PINGS and (program == "healthcheck.sh" or "ping" in words):
            port = base.given(spec, declared=mydata.PORT)
            return lambda: asks.mysql(port)
        if program in CLIENTS:
            found = base.on_path((program,), f"{server.bin}:{base.SYSTEM_PATH}")
            kept = base.without_options(words[1:], "-h", "--host", "-P", "--port", "-S", "--socket")
            return (str(found[0]), "--protocol=tcp", *kept) if found else None
        return None

    def client_env(self, spec: ServiceSpec, server: Server) -> Mapping[str, str]:
        if not base.has_port(spec, "port", mydata.PORT):
            return {}
        return mydata.client_env(base.given(spec, declared=mydata.PORT))

    def clean(self, data: Path) -> None:
        """Nothing is left outside the folder."""


def kind_of(program: Path) -> str:
    return "mariadb" if program.name == "mariadbd" else "mysql"


def defaults(spec: ServiceSpec) -> str:
    """The option that names the service's configuration file; none of the machine's is read."""
    mounted = [Path(mount.source) for mount in spec.mounts if mount.target.startswith(CONFIGURATION)]
    files = [file for path in mounted for file in (sorted(path.glob("*.cnf")) if path.is_dir() else [path])]
    if len(files) > 1:
        raise base.bad_env(
            spec,
            f"{len(files)} files are mounted in {CONFIGURATION}, and only one can be read here",
            "put them into one file, or give options in `start:`",
        )
    return f"--defaults-file={files[0]}" if files else "--no-defaults"

"""A Postgres data directory: made once per server and settings as a template, then copied into each bay."""

from __future__ import annotations

import dataclasses
import os
import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from devbay.errors import WORK_FAILED, DevbayError
from devbay.jobs import Job
from devbay.runtimes.base import ServiceSpec
from devbay.runtimes.host.launch import Launch
from devbay.runtimes.host.owner import Owner
from devbay.runtimes.host.providers import base
from devbay.runtimes.host.providers.base import Run, Server
from devbay.runtimes.host.providers.firststart import INIT_FOLDER, LOOP, FirstStart, missing, provide
from devbay.runtimes.host.templates import Templates

PORT = 5432
METHODS = frozenset({"trust", "md5", "scram-sha-256", "password"})
LOCALE = "C.UTF-8" if sys.platform == "linux" else "C"
ZONES = Path("/usr/share/zoneinfo")

SETTINGS = """
# devbay: one developer's server. Committed data survives a killed server, not a machine that loses power.
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
fsync = off
# stays on: a killed process can leave half a page in the system's cache
full_page_writes = on
shared_buffers = 32MB
dynamic_shared_memory_type = mmap
huge_pages = off
jit = off
log_checkpoints = off
"""
SYNCHRONOUS = "io_method = sync\n"
"""Postgres 18 starts three workers for reading otherwise."""

INITIALISE = r"""
set -eu
case "$PASSWORD" in
"") initdb "$@" ;;
*) printf '%s\n' "$PASSWORD" | initdb "$@" --pwfile=/dev/stdin ;;
esac
printf '%s' "$SETTINGS" >> "$PGDATA/postgresql.conf"
printf '%s' "$ACCESS" > "$PGDATA/pg_hba.conf"
case "$DATABASE" in
"") ;;
*) printf 'CREATE DATABASE %s;\n' "$DATABASE" | postgres --single -D "$PGDATA" postgres >&2 ;;
esac
"""

SCRIPTS = (
    r"""
set -eu
trap 'pg_ctl -D "$PGDATA" -w -s -m immediate stop' EXIT  # it is in a session of its own
pg_ctl -D "$PGDATA" -w -s -t 60 -o "$SERVER" start </dev/null
docker_process_sql() { psql -q -v ON_ERROR_STOP=1 --no-password --no-psqlrc "$@"; }
"""
    + LOOP
    + r"""
trap - EXIT
pg_ctl -D "$PGDATA" -w -s -m fast stop
"""
)
_REACHES_OUT = re.compile(rb"\\(?:!|(?:getenv|i|ir|include|include_relative|copy|o|w|cd)\b)|`")


@dataclasses.dataclass(frozen=True)
class Settings:
    """What the image reads from its environment at the first start (its documentation, `POSTGRES_*`)."""

    user: str
    password: str
    database: str
    method: str
    arguments: tuple[str, ...]


def settings(spec: ServiceSpec) -> Settings:
    """Raises `bad_env` where the image would refuse to start, or could not be followed here."""
    base.refuse_files(spec, "POSTGRES_")
    env = spec.env
    user, password = env.get("POSTGRES_USER") or "postgres", env.get("POSTGRES_PASSWORD") or ""
    method = env.get("POSTGRES_HOST_AUTH_METHOD") or "scram-sha-256"
    if method not in METHODS:
        known = ", ".join(sorted(METHODS))
        raise base.bad_env(
            spec, f"POSTGRES_HOST_AUTH_METHOD={method[:40]!r} is none of {known}", "correct it"
        )
    if not password and method != "trust":
        raise base.bad_env(
            spec,
            "POSTGRES_PASSWORD is not set, and the image does not start without it",
            "set POSTGRES_PASSWORD, or POSTGRES_HOST_AUTH_METHOD: trust",
        )
    database = env.get("POSTGRES_DB") or user
    if any(character in text for text in (user, password, database) for character in "\n\r\0"):
        raise base.bad_env(spec, "a POSTGRES_* setting holds a line break", "set it without one")
    try:
        arguments = tuple(shlex.split(env.get("POSTGRES_INITDB_ARGS", "")))
    except ValueError as error:
        raise base.bad_env(spec, f"POSTGRES_INITDB_ARGS: {error}", "correct its quotes") from error
    return Settings(user, password, database, method, arguments)


def prepare(
    spec: ServiceSpec,
    server: Server,
    data: Path,
    templates: Templates,
    owner: Owner | None,
    run: Run,
    job: Job,
) -> None:
    """Make `data`, or leave it as it is; raises `data_unusable` if another major version made it."""
    if not missing(spec, data, data / "PG_VERSION"):
        _check_version(spec, server, data)
        return
    wanted = settings(spec)
    if os.geteuid() == 0 and owner is None:
        raise DevbayError(
            "image_not_met",
            "Postgres refuses to run as root, and root of this machine can become no other user",
            next="run devbay as an ordinary user, or start a container engine and make the bay anew",
            exit_code=WORK_FAILED,
        )

    def initialise(made: Path, user: Owner | None) -> None:
        _initialise(spec, server, made, wanted, user, run, job)

    def run_scripts(made: Path, scripts: list[Path], user: Owner | None) -> None:
        _run_scripts(spec, server, made, wanted, scripts, user, run, job)

    settled = [dataclasses.asdict(wanted), SETTINGS, LOCALE]
    first = FirstStart(settled, _REACHES_OUT, initialise, run_scripts)
    provide(spec, server, data, first, templates, owner, job)


def made_by(data: Path) -> int | None:
    """The major version that data belongs to; None without data."""
    try:
        return int((data / "PG_VERSION").read_text())
    except (FileNotFoundError, ValueError):
        return None


def _check_version(spec: ServiceSpec, server: Server, data: Path) -> None:
    made = made_by(data)
    if made != base.numbers(server.version)[0]:
        raise DevbayError(
            "data_unusable",
            f"the data of {spec.name} is of PostgreSQL {made}, and {server.origin} is {server.version}",
            next=f"install PostgreSQL {made}, or remove the bay and make it anew",
            exit_code=WORK_FAILED,
        )


def _initialise(
    spec: ServiceSpec,
    server: Server,
    data: Path,
    wanted: Settings,
    user: Owner | None,
    run: Run,
    job: Job,
) -> None:
    major = int(server.version.partition(".")[0])
    quoted = wanted.database.replace('"', '""')
    words = (
        "-D", str(data), "-U", wanted.user, "--auth-local=trust", "--auth-host=scram-sha-256", "-N",
        "-E", "UTF8", f"--locale={LOCALE}", "--no-instructions", "--wal-segsize=1", *wanted.arguments,
    )  # fmt: skip
    env = {
        **server_env(server),
        "PGDATA": str(data),
        "PASSWORD": wanted.password,
        "SETTINGS": SETTINGS + (SYNCHRONOUS if major >= 18 else ""),
        "ACCESS": f"local all all trust\nhost all all all {wanted.method}\n"
        f"host replication all all {wanted.method}\n",
        "DATABASE": f'"{quoted}"' if wanted.database != "postgres" else "",
    }
    base.run_to_end(
        Launch(
            mark=base.mark(spec, "prepare"),
            argv=("/bin/sh", "-c", INITIALISE, "initdb", *words),
            env=env,
            cwd=str(data.parent),
            user=user,
        ),
        f"making the data of {spec.name} with {server.origin}",
        run,
        job,
    )


def _run_scripts(
    spec: ServiceSpec,
    server: Server,
    data: Path,
    wanted: Settings,
    scripts: list[Path],
    user: Owner | None,
    run: Run,
    job: Job,
) -> None:
    port = base.given(spec, declared=PORT)
    env = {
        **spec.env,
        **server_env(server),
        **client_env(wanted, port),
        "PGDATA": str(data),
        "SERVER": f"-c port={port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=",
    }
    base.run_to_end(
        Launch(
            mark=base.mark(spec, "prepare"),
            argv=("/bin/sh", "-c", SCRIPTS, "init", *map(str, scripts)),
            env=env,
            cwd=str(scripts[0].parent),
            user=user,
        ),
        f"the scripts in {INIT_FOLDER} of {spec.name}",
        run,
        job,
    )


def server_env(server: Server) -> dict[str, str]:
    """What the server and its tools need of an environment."""
    icu = server.bin.parent / "share" / "icu"  # the musl wheel brings ICU's data as a file
    return {
        "PATH": f"{server.bin}:{base.SYSTEM_PATH}",
        "LC_ALL": LOCALE,
        **({"ICU_DATA": str(icu)} if icu.is_dir() else {}),
    }


def client_env(wanted: Settings, port: int) -> Mapping[str, str]:
    return {
        "PGHOST": base.LOOPBACK,
        "PGPORT": str(port),
        "PGUSER": wanted.user,
        "PGDATABASE": wanted.database,
        **({"PGPASSWORD": wanted.password} if wanted.password else {}),
    }

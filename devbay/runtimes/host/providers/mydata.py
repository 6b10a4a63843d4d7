"""A MariaDB or MySQL data directory: system tables, users and database as the images make them."""

from __future__ import annotations

import dataclasses
import re
import secrets
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

PORT = 3306
SETTINGS = (
    "--character-set-server=utf8mb4", "--skip-name-resolve", "--innodb-buffer-pool-size=32M",
    "--innodb-log-file-size=16M", "--loose-innodb-redo-log-capacity=16M", "--performance-schema=OFF",
    "--loose-mysqlx=OFF", "--innodb-log-buffer-size=2M", "--key-buffer-size=4M",
    "--loose-aria-pagecache-buffer-size=8M", "--table-open-cache=400",
    # Committed data survives a killed server, not a machine that loses power.
    "--innodb-flush-log-at-trx-commit=2",
)  # fmt: skip
ALONE = ("--socket=devbay.sock", "--pid-file=devbay.pid")
"""Relative to the data directory: an absolute path may be longer than a socket's may be (107 bytes)."""

MADE = "devbay-made"
"""Stands in a data directory whose first start came to its end, and says whose: `mariadb` or `mysql`."""

INITIALISE = r"""
set -eu
umask 077
mkdir "$DATA"
case "$SERVER" in
*mysqld) "$SERVER" "$DEFAULTS" --initialize-insecure --datadir="$DATA" "$@" ;;
*) mariadb-install-db "$DEFAULTS" --datadir="$DATA" --auth-root-authentication-method=normal \
     --skip-test-db --skip-name-resolve "$@" >/dev/null ;;
esac
if [ -d /usr/share/zoneinfo ] && command -v mariadb-tzinfo-to-sql >/dev/null; then
  { echo "USE mysql;"; mariadb-tzinfo-to-sql /usr/share/zoneinfo 2>/dev/null; } |
    "$SERVER" "$DEFAULTS" --datadir="$DATA" --bootstrap "$@"
fi
printf '%s' "$SETUP" > "$DATA/devbay-setup.sql"
"$SERVER" "$DEFAULTS" --datadir="$DATA" --skip-networking --init-file="$DATA/devbay-setup.sql" "$@"
rm "$DATA/devbay-setup.sql"
printf %s "$KIND" > "$DATA/devbay-made"
"""

SCRIPTS = (
    r"""
set -eu
client=$(command -v mariadb || command -v mysql) || { echo "no client program: mariadb or mysql"; exit 1; }
"$SERVER" "$DEFAULTS" --datadir="$DATA" --bind-address=127.0.0.1 --port="$MYSQL_TCP_PORT" $FLAGS </dev/null &
server=$!
trap 'kill -9 $server' EXIT
tries=0
until "$client" --no-defaults -uroot -e 'SELECT 1' >/dev/null 2>&1; do
  tries=$((tries + 1))
  [ $tries -lt 300 ] && kill -0 $server
  sleep 0.1
done
docker_process_sql() { "$client" --no-defaults --protocol=tcp -uroot "$DATABASE" "$@"; }
"""
    + LOOP
    + r"""
trap - EXIT
kill $server
wait $server
"""
)
_REACHES_OUT = re.compile(rb"\\[!.]|(?im:^\s*(?:source|system)\b)|(?i:\bload\s+data\b)")


@dataclasses.dataclass(frozen=True)
class Settings:
    """What the images read at their first start. root None: a random password that nobody knows."""

    root: str | None
    database: str
    user: str
    password: str


def settings(spec: ServiceSpec) -> Settings:
    """Raises `bad_env` where the images would refuse to start."""
    base.refuse_files(spec, "MYSQL_", "MARIADB_")

    def value(name: str) -> str:
        return spec.env.get(f"MARIADB_{name}") or spec.env.get(f"MYSQL_{name}") or ""

    root, empty = value("ROOT_PASSWORD"), value("ALLOW_EMPTY_ROOT_PASSWORD") or value("ALLOW_EMPTY_PASSWORD")
    if not root and not empty and not value("RANDOM_ROOT_PASSWORD"):
        raise base.bad_env(
            spec,
            "no root password is set, and the image does not start without it",
            "set MARIADB_ROOT_PASSWORD (MYSQL_ROOT_PASSWORD), or MARIADB_ALLOW_EMPTY_ROOT_PASSWORD",
        )
    user, password = value("USER"), value("PASSWORD")
    if user == "root" or bool(user) != bool(password):
        raise base.bad_env(
            spec,
            "a user takes both a name other than root and a password",
            "set both MARIADB_USER and _PASSWORD",
        )
    found = Settings(None if value("RANDOM_ROOT_PASSWORD") else root, value("DATABASE"), user, password)
    if any(character in text for text in dataclasses.astuple(found) if text for character in "\n\r\0"):
        raise base.bad_env(spec, "a setting holds a line break", "set it without one")
    return found


def setup(wanted: Settings, *, mariadb: bool) -> str:
    """The statements of a first start, one a line, as an init file must have them."""
    root = _text(secrets.token_urlsafe(24) if wanted.root is None else wanted.root)
    lines = []
    if mariadb:  # its tables come with users who need no password
        lines.append("DELETE FROM mysql.global_priv WHERE User='' OR (User='root' AND Host<>'localhost');")
        lines.append("FLUSH PRIVILEGES;")
    lines += [
        f"ALTER USER 'root'@'localhost' IDENTIFIED BY {root};",
        f"CREATE USER 'root'@'%' IDENTIFIED BY {root};",
        "GRANT ALL ON *.* TO 'root'@'%' WITH GRANT OPTION;",
    ]
    if wanted.database:
        lines.append(f"CREATE DATABASE IF NOT EXISTS {_name(wanted.database)};")
    if wanted.user:
        lines.append(f"CREATE USER {_text(wanted.user)}@'%' IDENTIFIED BY {_text(wanted.password)};")
        if wanted.database:
            pattern = _name(wanted.database.replace("_", r"\_"))
            lines.append(f"GRANT ALL ON {pattern}.* TO {_text(wanted.user)}@'%';")
    return "\n".join((*lines, "SHUTDOWN;", ""))


def prepare(
    spec: ServiceSpec,
    server: Server,
    defaults: str,
    flags: tuple[str, ...],
    data: Path,
    templates: Templates,
    owner: Owner | None,
    run: Run,
    job: Job,
) -> None:
    """Make `data`, or leave it as it is. defaults: the option that names the configuration file, or none."""
    mariadb = server.program.name != "mysqld"
    kind = "mariadb" if mariadb else "mysql"
    if not missing(spec, data, data / MADE):
        if made_by(data) != kind:
            raise DevbayError(
                "data_unusable",
                f"the data of {spec.name} is {made_by(data)}'s, and {server.origin} has {kind}",
                next=f"install {made_by(data)}, or remove the bay and make it anew",
                exit_code=WORK_FAILED,
            )
        return
    wanted = settings(spec)

    def start(
        script: str, words: tuple[str, ...], env: Mapping[str, str], cwd: Path, user: Owner | None
    ) -> None:
        full = {**server_env(server), **env, "SERVER": str(server.program), "DEFAULTS": defaults}
        argv = ("/bin/sh", "-c", script, "init", *words)
        launch = Launch(base.mark(spec, "prepare"), argv, full, str(cwd), user=user)
        base.run_to_end(launch, f"making the data of {spec.name} with {server.origin}", run, job)

    def initialise(made: Path, user: Owner | None) -> None:
        env = {"DATA": str(made), "KIND": kind, "SETUP": setup(wanted, mariadb=mariadb)}
        start(INITIALISE, (*SETTINGS, *ALONE, *flags), env, made.parent, user)

    def run_scripts(made: Path, scripts: list[Path], user: Owner | None) -> None:
        if wanted.root is None:
            raise base.bad_env(
                spec, f"scripts in {INIT_FOLDER} need root's password", "set MARIADB_ROOT_PASSWORD"
            )
        env = {
            **spec.env,
            **client_env(base.given(spec, declared=PORT)),
            "MYSQL_PWD": wanted.root,
            "DATA": str(made),
            "DATABASE": wanted.database,
            "FLAGS": " ".join((*SETTINGS, *ALONE)),
        }
        start(SCRIPTS, tuple(map(str, scripts)), env, scripts[0].parent, user)

    settled = [dataclasses.asdict(wanted), SETTINGS, flags, defaults and _content(defaults)]
    first = FirstStart(settled, _REACHES_OUT, initialise, run_scripts)
    provide(spec, server, data, first, templates, owner, job)


def made_by(data: Path) -> str | None:
    """`mariadb` or `mysql`: neither reads the other's data; None without data."""
    try:
        return (data / MADE).read_text().strip()
    except FileNotFoundError:
        return None


def server_env(server: Server) -> dict[str, str]:
    return {"PATH": f"{server.bin}:{base.SYSTEM_PATH}", "LC_ALL": "C.UTF-8"}


def client_env(port: int) -> dict[str, str]:
    return {"MYSQL_HOST": base.LOOPBACK, "MYSQL_TCP_PORT": str(port)}


def _content(defaults: str) -> str:
    path = defaults.partition("=")[2]
    return Path(path).read_text() if path else ""


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


def _name(value: str) -> str:
    escaped = value.replace("`", "``")
    return f"`{escaped}`"

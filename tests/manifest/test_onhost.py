"""What is asked of a person on a machine without containers: all but devbay's own servers."""

from __future__ import annotations

import pytest

from devbay.manifest import Service, parse
from devbay.manifest.onhost import asked_of, commands, is_asked


def service(image: str, **keys: object) -> Service:
    return Service.model_validate({"image": image, "port": 1, "health": {"tcp": 1}, **keys})


def test_a_datastore_with_nothing_of_the_users_is_not_asked() -> None:
    for image in ("postgres:16", "redis:7", "mariadb:11", "axllent/mailpit:v1"):
        assert not is_asked(service(image))


@pytest.mark.parametrize(
    "keys",
    [
        {"start": ["postgres", "-c", "archive_command=x"]},
        {"entrypoint": ["sh", "x"]},
        {"install": ["make"]},
        {"mounts": [{"source": "db", "target": "/docker-entrypoint-initdb.d"}]},
        {"mounts": [{"source": "a.sh", "target": "/docker-entrypoint-initdb.d/a.sh"}]},
    ],
)
def test_one_that_runs_something_of_the_users_is_asked(keys: dict[str, object]) -> None:
    assert is_asked(service("postgres:16", **keys))


def test_a_mount_elsewhere_is_no_script() -> None:
    assert not is_asked(service("postgres:16", mounts=[{"source": "c", "target": "/etc/postgresql"}]))


QUESTIONS = [
    ("postgres:16", ["pg_isready", "-q", "-h", "127.0.0.1", "-U", "postgres"]),
    ("pgvector/pgvector:pg16", ["sh", "-c", "pg_isready -U $POSTGRES_USER -d ${POSTGRES_DB} || exit 1"]),
    ("redis:7", ["redis-cli", "ping"]),
    ("valkey/valkey:8", ["valkey-cli", "-a", "x", "--no-auth-warning", "PING"]),
    ("redis:7", ["redis-cli", "-h", "127.0.0.1", "--raw", "ping"]),
    ("mysql:8", ["mysqladmin", "ping", "-h", "localhost", "-uroot", "-p$MYSQL_ROOT_PASSWORD", "--silent"]),
    ("mariadb:11", ["healthcheck.sh", "--connect", "--innodb_initialized"]),
    ("minio/minio:x", ["curl", "-f", "http://localhost:9000/minio/health/live"]),
    ("minio/minio:x", ["mc", "ready", "local"]),
    ("axllent/mailpit:v1", ["/mailpit", "readyz"]),
]


@pytest.mark.parametrize(("image", "cmd"), QUESTIONS)
def test_a_known_clients_question_is_not_asked(image: str, cmd: list[str]) -> None:
    argv = [word.replace("$MYSQL_ROOT_PASSWORD", "x") for word in cmd] if cmd[0] == "mysqladmin" else cmd
    assert not is_asked(service(image, health={"cmd": argv}))


@pytest.mark.parametrize(
    ("image", "cmd"),
    [
        ("postgres:16", ["redis-cli", "ping"]),
        ("postgres:16", ["./pg_isready"]),
        ("postgres:16", ["psql", "-c", "select 1"]),
        ("postgres:16", ["sh", "-c", "pg_isready; evil"]),
        ("postgres:16", ["sh", "-c", "pg_isready $(evil)"]),
        ("postgres:16", ["sh", "-c", "pg_isready `evil`"]),
        ("postgres:16", ["sh", "-c", "pg_isready > file"]),
        ("postgres:16", ["sh", "-c", "pg_isready\nevil"]),
        ("postgres:16", ["sh", "-c", 'pg_isready "$(evil)"']),
        ("postgres:16", ["sh", "-c", "pg_isready", "x"]),
        ("postgres:16", ["pg_isready\n", "x"]),
        ("redis:7", ["redis-cli", "--eval", "x.lua", "ping"]),
        ("redis:7", ["redis-cli", "info"]),
        ("mysql:8", ["mysqladmin", "--plugin-dir=evil", "ping"]),
        ("mysql:8", ["mysqladmin", "--defaults-file=evil", "ping"]),
        ("minio/minio:x", ["curl", "-o", "/x", "http://localhost/minio/health/live"]),
        ("node:22", ["pg_isready"]),
    ],
)
def test_any_other_health_command_is_asked(image: str, cmd: list[str]) -> None:
    assert is_asked(service(image, health={"cmd": cmd}))


def test_tasks_of_this_machine_are_asked_in_any_bay_and_all_else_in_one_of_this_machine() -> None:
    manifest = parse(
        """
version: 1
project: a
services:
  db: {image: "postgres:16", port: 1, health: {tcp: 1}}
  web: {image: "node:22", start: [x], health: {process: true}}
  bare: {image: "node:22", health: {process: true}}
tasks:
  own: {in: host, run: [x], needs: []}
  unit: {in: web, run: [x], needs: []}
"""
    ).require()
    assert [each[:2] for each in asked_of(manifest, whole=False)] == [(None, "own")]
    found = [each[:2] for each in asked_of(manifest, whole=True)]
    assert found == [("web", None), (None, "own"), (None, "unit")]


def test_commands_are_all_argvs_by_key() -> None:
    found = commands(service("a:1", install=["i"], entrypoint=["e"], start=["s"], health={"cmd": ["h"]}))
    assert found == {"install": ("i",), "entrypoint": ("e",), "start": ("s",), "health.cmd": ("h",)}

from dataclasses import dataclass

import pytest

from devbay.runtimes.families import family, wants_worktree


@dataclass
class Some:
    image: str | None = None
    build: object | None = None
    install: tuple[str, ...] | None = None
    start: tuple[str, ...] | None = None
    run: tuple[str, ...] | None = None
    workdir: str | None = None
    volumes: tuple[str, ...] = ()


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("postgres:17", "postgres"),
        ("docker.io/library/postgres:17-alpine", "postgres"),
        ("bitnami/postgresql:16", "postgres"),
        ("pgvector/pgvector:pg17", "postgres"),
        ("timescale/timescaledb-ha:pg16", "postgres"),
        ("redis@sha256:" + "0" * 64, "redis"),
        ("localhost:5000/redis7", "redis"),
        ("valkey/valkey:8", "valkey"),
        ("mongo:7", "mongo"),
        ("mcr.microsoft.com/mssql/server:2022-latest", "mssql"),
        ("docker.elastic.co/elasticsearch/elasticsearch:8.15.0", "elasticsearch"),
        ("rabbitmq:3-management", "rabbitmq"),
        ("nginx", "nginx"),
        ("node:20", None),
        ("python:3.13-slim", None),
        ("ghcr.io/acme/caddyshack:1", None),
        ("registry.example:5000/web", None),
    ],
)
def test_an_image_name_tells_its_family(reference, expected):
    assert family(reference) == expected


def test_everything_built_gets_the_worktree():
    assert wants_worktree(Some(build=object()))


@pytest.mark.parametrize(
    "part",
    [
        {"start": ("npm", "start")},
        {"run": ("npm", "test")},
        {"install": ("npm", "ci")},
        {"workdir": "app"},
        {"volumes": ("node_modules",)},
    ],
)
def test_a_pulled_image_gets_the_worktree_with_anything_of_the_users_in_it(part):
    assert wants_worktree(Some(image="node:20", **part))
    assert not wants_worktree(Some(image="postgres:17", **part))


def test_a_pulled_image_as_it_is_gets_no_worktree():
    assert not wants_worktree(Some(image="mailserver:1", volumes=("/var/mail",)))

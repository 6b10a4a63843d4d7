"""What an image's name says: its family, the scheme of its URL, and whether a browser can talk to it."""

from __future__ import annotations

import pytest

from devbay.manifest.images import FAMILIES, family, scheme, speaks_http


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
        ("mongo-express:1", "console"),
        ("percona/percona-server-mongodb:7", "mongo"),
        ("confluentinc/cp-zookeeper", "zookeeper"),
        ("prometheuscommunity/postgres-exporter", None),
        ("natsio/prometheus-nats-exporter", None),
        ("traefik/whoami", None),
        ("postgresapp", None),
        ("server", None),
        (None, None),
        ("node:20", None),
        ("python:3.13-slim", None),
        ("ghcr.io/acme/caddyshack:1", None),
        ("registry.example:5000/web", None),
    ],
)
def test_an_image_name_tells_its_family(reference: str | None, expected: str | None) -> None:
    assert family(reference) == expected


@pytest.mark.parametrize("name", FAMILIES)
def test_every_word_of_a_family_names_it_alone(name: str) -> None:
    for word in FAMILIES[name].words:
        assert family(f"registry.example:5000/acme/{word}:1") == name


@pytest.mark.parametrize(
    ("image", "expected", "browsable"),
    [
        ("timescale/timescaledb", "postgres", False),
        ("mariadb:11", "mysql", False),
        ("valkey/valkey", "redis", False),
        ("mongo:7", "mongodb", False),
        ("rabbitmq:3", "amqp", False),
        ("nats:2", "nats", False),
        ("memcached", "http", False),
        ("apache/kafka", "http", False),
        ("minio/minio", "http", True),
        ("axllent/mailpit", "http", True),
        ("node:20", "http", True),
        (None, "http", True),
    ],
)
def test_a_family_decides_the_scheme_and_whether_a_browser_can_talk_to_it(
    image: str | None, expected: str, browsable: bool
) -> None:
    assert scheme(image) == expected
    assert speaks_http(image) == browsable

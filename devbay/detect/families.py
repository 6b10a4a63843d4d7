"""What is known of the images that keep data, pass messages or forward requests: ports, checks, passwords."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from devbay.manifest import images

PORTS = {
    "postgres": 5432, "cockroach": 26257, "mysql": 3306, "mariadb": 3306, "mssql": 1433, "redis": 6379,
    "valkey": 6379, "dragonfly": 6379, "keydb": 6379, "memcached": 11211, "mongo": 27017,
    "elasticsearch": 9200, "opensearch": 9200, "meilisearch": 7700, "typesense": 8108, "solr": 8983,
    "cassandra": 9042, "clickhouse": 8123, "influxdb": 8086, "neo4j": 7474, "qdrant": 6333,
    "weaviate": 8080, "etcd": 2379, "zookeeper": 2181, "minio": 9000, "rabbitmq": 5672, "kafka": 9092,
    "nats": 4222, "mosquitto": 1883, "mail": 8025, "nginx": 80, "caddy": 80, "traefik": 80,
    "envoy": 10000,
}  # fmt: skip
"""The ports that the official images listen on (their documentation)."""
PROXIES = frozenset({"nginx", "caddy", "traefik", "haproxy", "envoy"})
SQL = frozenset({"postgres", "mysql", "mariadb", "cockroach"})
REDIS = frozenset({"redis", "valkey", "dragonfly", "keydb"})
THROWAWAY = "devbay"
"""The password of a bay's own datastore where no file gives one: it guards only the bay's own data."""

_PASSWORDS = {
    "postgres": ("POSTGRES_PASSWORD", ("POSTGRES_PASSWORD_FILE", "POSTGRES_HOST_AUTH_METHOD")),
    "mysql": (
        "MYSQL_ROOT_PASSWORD",
        ("MYSQL_ROOT_PASSWORD_FILE", "MYSQL_ALLOW_EMPTY_PASSWORD", "MYSQL_RANDOM_ROOT_PASSWORD"),
    ),
    "mariadb": (
        "MARIADB_ROOT_PASSWORD",
        ("MARIADB_ROOT_PASSWORD_FILE", "MARIADB_ROOT_PASSWORD_HASH", "MARIADB_ALLOW_EMPTY_ROOT_PASSWORD",
         "MARIADB_RANDOM_ROOT_PASSWORD", "MYSQL_ROOT_PASSWORD", "MYSQL_ALLOW_EMPTY_PASSWORD",
         "MYSQL_RANDOM_ROOT_PASSWORD", "MYSQL_ROOT_PASSWORD_FILE"),
    ),
}  # fmt: skip


def is_store(image: str | None) -> bool:
    """Whether an image keeps data or passes messages, so that it is no site of its own."""
    family = images.family(image)
    return family is not None and family not in PROXIES and family != "console"


def missing_password(image: str | None, env: Mapping[str, str]) -> str | None:
    """The variable without which the family's image refuses to start; None where it starts."""
    known = _PASSWORDS.get(images.family(image) or "")
    if known is None or any(env.get(name) for name in (known[0], *known[1])):
        return None
    return known[0]


def health(image: str | None, env: Mapping[str, str], command: tuple[str, ...], port: int) -> dict[str, Any]:
    """The family's own check. Postgres is asked over TCP: its set-up server answers on a socket only."""
    family = images.family(image)
    if family == "postgres":
        user = env.get("POSTGRES_USER") or "postgres"
        return {"cmd": ["pg_isready", "-q", "-h", "127.0.0.1", "-U", user], "timeout": "60s"}
    if family in ("redis", "valkey") and "requirepass" not in " ".join(command):
        return {"cmd": ["redis-cli" if family == "redis" else "valkey-cli", "ping"]}
    return {"tcp": port, "timeout": "60s"}

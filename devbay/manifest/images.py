"""What an image's name says: its family, the scheme of its URL, and where its credentials stand."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_FAMILIES = {
    "postgres": "postgres", "postgis": "postgres", "pgvector": "postgres", "timescale": "postgres",
    "mysql": "mysql", "mariadb": "mysql", "percona": "mysql",
    "redis": "redis", "valkey": "redis", "keydb": "redis", "memcached": "memcached",
    "mongo": "mongodb", "rabbitmq": "amqp", "nats": "nats",
    "minio": "minio", "elasticsearch": "search", "opensearch": "search", "meilisearch": "search",
    "kafka": "broker", "cp-kafka": "broker", "redpanda": "broker", "zookeeper": "broker",
    "clickhouse": "clickhouse", "nginx": "proxy", "traefik": "proxy", "caddy": "proxy", "haproxy": "proxy",
    "mailpit": "mail", "mailhog": "mail",
}  # fmt: skip
_SCHEMES = frozenset({"postgres", "mysql", "redis", "mongodb", "amqp", "nats"})
_TOOLS = re.compile(r"-(express|commander|exporter|admin|ui|backup|client)|insight")


@dataclass(frozen=True)
class Access:
    """Templates (not yet interpolated) of what a client needs to log in; None where there is none."""

    user: str | None = None
    password: str | None = None
    name: str | None = None


def family(image: str | None) -> str | None:
    """The family of a datastore, broker or proxy image by the start of its last path part; None for others.

    Tools that only carry such a name (`mongo-express`, `redis-exporter`) are others.
    """
    if image is None:
        return None
    basename = image.split("@")[0].rsplit("/", 1)[-1].split(":")[0].lower()
    if _TOOLS.search(basename):
        return None
    return next((kind for prefix, kind in _FAMILIES.items() if basename.startswith(prefix)), None)


def scheme(image: str | None) -> str:
    """The scheme of the service's URL: that of its family, else `http`."""
    kind = family(image)
    return kind if kind in _SCHEMES else "http"


def access(image: str | None, env: Mapping[str, str]) -> Access:
    """How the official image of the family takes user, password and database from its environment.

    Database names follow the images: Postgres makes one named like the user unless told otherwise, MySQL
    makes none.
    """
    match family(image):
        case "postgres":
            password = env.get("POSTGRES_PASSWORD")
            user = env.get("POSTGRES_USER") or ("postgres" if password else None)
            return Access(user, password, env.get("POSTGRES_DB") or user or "postgres")
        case "mysql":
            name = _first(env, "MYSQL_DATABASE", "MARIADB_DATABASE")
            if user := _first(env, "MYSQL_USER", "MARIADB_USER"):
                return Access(user, _first(env, "MYSQL_PASSWORD", "MARIADB_PASSWORD"), name)
            password = _first(env, "MYSQL_ROOT_PASSWORD", "MARIADB_ROOT_PASSWORD")
            return Access("root" if password else None, password, name)
        case "mongodb":
            user, password = env.get("MONGO_INITDB_ROOT_USERNAME"), env.get("MONGO_INITDB_ROOT_PASSWORD")
            both = bool(user and password)
            return Access(
                user if both else None, password if both else None, env.get("MONGO_INITDB_DATABASE")
            )
        case "amqp":
            return Access(env.get("RABBITMQ_DEFAULT_USER"), env.get("RABBITMQ_DEFAULT_PASS"))
        case _:
            return Access(env.get("MINIO_ROOT_USER"), env.get("MINIO_ROOT_PASSWORD"))


def _first(env: Mapping[str, str], *names: str) -> str | None:
    return next((env[name] for name in names if env.get(name)), None)

"""What an image's name says: its family, the scheme of its URL, and where its credentials stand."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    """Images that keep data, pass messages, forward requests or show one of these; none runs the user's code.

    words: what a repository's name begins with. scheme: of the URL of its primary port; None where that
    speaks neither HTTP nor anything else that URLs have a scheme for.
    """

    words: tuple[str, ...]
    scheme: str | None = "http"


FAMILIES: Mapping[str, Family] = {
    "postgres": Family(
        ("postgres", "postgresql", "pgvector", "pgvecto", "postgis", "timescale", "timescaledb", "pgbouncer",
         "percona-distribution-postgresql"),
        "postgres",
    ),
    "cockroach": Family(("cockroach", "cockroachdb"), "postgres"),
    "mysql": Family(("mysql", "percona"), "mysql"),
    "mariadb": Family(("mariadb",), "mysql"),
    "mssql": Family(("mssql", "azure-sql-edge"), None),
    "redis": Family(("redis",), "redis"),
    "valkey": Family(("valkey",), "redis"),
    "dragonfly": Family(("dragonfly", "dragonflydb"), "redis"),
    "keydb": Family(("keydb",), "redis"),
    "memcached": Family(("memcached",), None),
    "mongo": Family(("mongo", "mongodb", "percona-server-mongodb"), "mongodb"),
    "elasticsearch": Family(("elasticsearch",)),
    "opensearch": Family(("opensearch",)),
    "meilisearch": Family(("meilisearch",)),
    "typesense": Family(("typesense",)),
    "solr": Family(("solr",)),
    "cassandra": Family(("cassandra", "scylla"), None),
    "clickhouse": Family(("clickhouse",)),
    "influxdb": Family(("influxdb",)),
    "neo4j": Family(("neo4j",)),
    "qdrant": Family(("qdrant",)),
    "weaviate": Family(("weaviate",)),
    "etcd": Family(("etcd",)),
    "zookeeper": Family(("zookeeper", "cp-zookeeper"), None),
    "minio": Family(("minio",)),
    "rabbitmq": Family(("rabbitmq",), "amqp"),
    "kafka": Family(("kafka", "cp-kafka", "redpanda"), None),
    "nats": Family(("nats",), "nats"),
    "mosquitto": Family(("eclipse-mosquitto", "mosquitto"), None),
    "mail": Family(("mailpit", "mailhog", "mailcatcher")),
    "nginx": Family(("nginx", "openresty")),
    "caddy": Family(("caddy",)),
    "traefik": Family(("traefik",)),
    "haproxy": Family(("haproxy",)),
    "envoy": Family(("envoy",)),
    "console": Family(
        ("adminer", "kibana", "mongo-express", "pgadmin", "phpmyadmin", "redis-commander", "redisinsight")
    ),
}  # fmt: skip
_BY_WORD = {word: name for name, family in FAMILIES.items() for word in family.words}
_WORD = re.compile("|".join(sorted(map(re.escape, _BY_WORD), key=len, reverse=True)))
_TOOLS = re.compile(r"-(admin|backup|client|commander|exporter|express|ui)\b")
_SAYS_NOTHING = frozenset({"db", "database", "server"})


@dataclass(frozen=True)
class Access:
    """Templates (not yet interpolated) of what a client needs to log in; None where there is none."""

    user: str | None = None
    password: str | None = None
    name: str | None = None


def family(image: str | None) -> str | None:
    """The name in `FAMILIES` of an image reference's family, or None for any other image.

    A word counts where no letter follows it: `postgres`, `postgres-alpine` and `redis7` are families,
    `caddyshack` is not, and tools that only carry such a name (`redis-exporter`) are not. Where the last
    path component says nothing (`mssql/server`), the one before counts.
    """
    path = (image or "").partition("@")[0].lower().split("/")
    path[-1] = path[-1].partition(":")[0]
    name = path[-2] if path[-1] in _SAYS_NOTHING and len(path) > 1 else path[-1]
    found = _WORD.match(name)
    if found is None or name[found.end() : found.end() + 1].isalpha() or _TOOLS.search(name, found.end()):
        return None
    return _BY_WORD[found.group()]


def scheme(image: str | None) -> str:
    """The scheme of the service's URL: that of its family, else `http`."""
    name = family(image)
    return (FAMILIES[name].scheme if name else None) or "http"


def speaks_http(image: str | None) -> bool:
    """Whether a service's primary port speaks HTTP, as far as its image tells; its named ports may anyway."""
    name = family(image)
    return name is None or FAMILIES[name].scheme == "http"


def access(image: str | None, env: Mapping[str, str]) -> Access:
    """How the family's official image takes user, password and database from its environment.

    Database names follow the images: Postgres makes one named like the user unless told otherwise, MySQL
    makes none.
    """
    match scheme(image):
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

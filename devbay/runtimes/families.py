"""Image families: what an image's name says about it, and which services get the worktree (decision 26)."""

from __future__ import annotations

import re
from typing import Protocol

# family -> the first words of a repository name (its last path component) that mean it. Families that
# keep data, pass messages or forward requests run nothing of the user's, so they never see the worktree.
_WORDS: dict[str, tuple[str, ...]] = {
    "postgres": ("postgres", "postgresql", "pgvector", "postgis", "timescale", "timescaledb", "pgbouncer"),
    "mysql": ("mysql", "percona"),
    "mariadb": ("mariadb",),
    "mssql": ("mssql", "azure-sql-edge"),
    "cockroach": ("cockroach", "cockroachdb"),
    "redis": ("redis", "redisinsight"),
    "valkey": ("valkey",),
    "dragonfly": ("dragonfly", "dragonflydb"),
    "keydb": ("keydb",),
    "memcached": ("memcached",),
    "mongo": ("mongo", "mongodb"),
    "elasticsearch": ("elasticsearch", "kibana"),
    "opensearch": ("opensearch",),
    "meilisearch": ("meilisearch",),
    "typesense": ("typesense",),
    "solr": ("solr",),
    "cassandra": ("cassandra", "scylla"),
    "clickhouse": ("clickhouse",),
    "influxdb": ("influxdb",),
    "neo4j": ("neo4j",),
    "qdrant": ("qdrant",),
    "weaviate": ("weaviate",),
    "etcd": ("etcd",),
    "zookeeper": ("zookeeper",),
    "minio": ("minio",),
    "rabbitmq": ("rabbitmq",),
    "kafka": ("kafka", "cp-kafka", "redpanda"),
    "nats": ("nats",),
    "mosquitto": ("eclipse-mosquitto", "mosquitto"),
    "mail": ("mailpit", "mailhog", "mailcatcher"),
    "nginx": ("nginx", "openresty"),
    "caddy": ("caddy",),
    "traefik": ("traefik",),
    "haproxy": ("haproxy",),
    "envoy": ("envoy",),
}
_BY_WORD = {word: name for name, words in _WORDS.items() for word in words}
_PATTERN = re.compile("|".join(sorted(map(re.escape, _BY_WORD), key=len, reverse=True)))


class ServiceLike(Protocol):
    """What of a service's (or task's) manifest decides whether it gets the worktree."""

    @property
    def image(self) -> str | None: ...
    @property
    def build(self) -> object | None: ...
    @property
    def install(self) -> tuple[str, ...] | None: ...
    @property
    def workdir(self) -> str | None: ...
    @property
    def volumes(self) -> tuple[str, ...]: ...


def family(reference: str) -> str | None:
    """The datastore, broker or proxy that an image reference names, or None for anything else.

    A word counts where no letter follows it: `postgres`, `postgres-alpine` and `redis7` are families,
    `caddyshack` is not. Where the last path component says nothing (`mssql/server`), the one before counts.
    """
    path = reference.partition("@")[0].split("/")
    path[-1] = path[-1].partition(":")[0]
    for component in reversed(path[-2:]):
        found = _PATTERN.match(component.lower())
        if found and not component[found.end() : found.end() + 1].isalpha():
            return _BY_WORD[found.group()]
    return None


def wants_worktree(service: ServiceLike) -> bool:
    """Whether the worktree is mounted into a service: all that is built, and pulled images that are given
    something to run, install or keep beside the sources, unless their family runs nothing of the user's.
    """
    if service.build is not None:
        return True
    if service.image is None or family(service.image):
        return False
    command = getattr(service, "start", None) or getattr(service, "run", None)
    relative = any(not path.startswith("/") for path in service.volumes or ())
    return bool(service.install or command or service.workdir or relative)

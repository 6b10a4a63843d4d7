"""Servers that stand in for images: one module per family, and the registry of them."""

from __future__ import annotations

from collections.abc import Mapping

from devbay.manifest.images import family
from devbay.runtimes.host.providers.base import Provider, Run, Server
from devbay.runtimes.host.providers.mail import Mail
from devbay.runtimes.host.providers.mariadb import MariaDB
from devbay.runtimes.host.providers.memcached import Memcached
from devbay.runtimes.host.providers.postgres import Postgres
from devbay.runtimes.host.providers.redis import Redis
from devbay.runtimes.host.providers.s3 import S3

PROVIDERS: Mapping[str, Provider] = {
    "postgres": Postgres(),
    "redis": Redis(),
    "valkey": Redis(),
    "keydb": Redis(),
    "mariadb": MariaDB(),
    "mysql": MariaDB(),
    "memcached": Memcached(),
    "mail": Mail(),
    "minio": S3(),
}
"""By the families of `devbay.manifest.images`."""

__all__ = ["PROVIDERS", "Provider", "Run", "Server", "provider"]


def provider(image: str | None) -> Provider | None:
    """What meets an image, by its family; None for images of no family that a provider knows."""
    return PROVIDERS.get(family(image) or "")

"""References per plane: what a process in a bay, one of this machine and a browser each get."""

from __future__ import annotations

import pytest

from devbay.errors import DevbayError
from devbay.manifest import Manifest, parse, resolve, secret_refs, service_url
from devbay.manifest.interpolate import Plane

TEXT = """
version: 1
project: shop
services:
  db:
    image: pgvector/pgvector:pg16
    port: 5432
    health: {tcp: 5432}
    env: {POSTGRES_USER: 'sh op', POSTGRES_PASSWORD: '${secret:db/pw}', POSTGRES_DB: shop}
  plain: {image: 'postgres:16', port: 5432, health: {tcp: 5432}, env: {POSTGRES_PASSWORD: local}}
  sql:
    image: mariadb:11
    port: 3306
    health: {tcp: 3306}
    env: {MYSQL_USER: u, MYSQL_PASSWORD: p, MYSQL_DATABASE: d, MYSQL_ROOT_PASSWORD: r}
  root: {image: 'mysql:8', port: 3306, health: {tcp: 3306}, env: {MYSQL_ROOT_PASSWORD: r}}
  cache: {image: 'r.example:5000/valkey/valkey:8', port: 6379, health: {tcp: 6379}}
  docs:
    image: mongo:7
    port: 27017
    health: {tcp: 27017}
    env: {MONGO_INITDB_ROOT_USERNAME: u, MONGO_INITDB_ROOT_PASSWORD: p, MONGO_INITDB_DATABASE: d}
  half: {image: 'mongo:7', port: 27017, health: {tcp: 27017}, env: {MONGO_INITDB_ROOT_USERNAME: u}}
  queue:
    image: rabbitmq:3-management
    port: 5672
    ports: {ui: 15672}
    health: {tcp: 5672}
    env: {RABBITMQ_DEFAULT_USER: u, RABBITMQ_DEFAULT_PASS: p}
  bus: {image: 'nats:2', port: 4222, health: {tcp: 4222}}
  admin: {image: 'mongo-express:1', port: 8081, health: {tcp: 8081}}
  files:
    image: minio/minio:RELEASE.2025
    port: 9000
    health: {tcp: 9000}
    env: {MINIO_ROOT_USER: minio, MINIO_ROOT_PASSWORD: local}
  web: {build: web, port: 3000, ports: {metrics: 9100}, primary: true, health: {http: /}}
  worker: {build: web, health: {process: true}}
"""


class Here:
    """Addresses of one bay on a machine whose proxy is on 7780."""

    def public_host(self, service: str, port: str | None = None) -> str:
        return f"{service}.bay--shop.localhost"

    def public_url(self, service: str, port: str | None = None) -> str:
        return f"http://{self.public_host(service, port)}:7780"

    def host_port(self, service: str, port: str) -> int:
        return {"port": 20000, "metrics": 20001, "ui": 20002}[port]


@pytest.fixture(scope="module")
def manifest() -> Manifest:
    return parse(TEXT).require()


def filled(manifest: Manifest, text: str, plane: Plane = "container", run_dir: str | None = None) -> str:
    return resolve(
        text,
        manifest=manifest,
        plane=plane,
        addresses=Here(),
        secret=lambda ref: f"<{ref}>/@",
        run_dir=run_dir,
    )


CONTAINER = {
    "${bay.db.url}": "postgres://sh%20op:%3Cdb%2Fpw%3E%2F%40@db:5432/shop",
    "${bay.plain.url}": "postgres://postgres:local@plain:5432/postgres",
    "${bay.sql.url}": "mysql://u:p@sql:3306/d",
    "${bay.root.url}": "mysql://root:r@root:3306",
    "${bay.cache.url}": "redis://cache:6379",
    "${bay.docs.url}": "mongodb://u:p@docs:27017",
    "${bay.half.url}": "mongodb://half:27017",
    "${bay.queue.url}": "amqp://u:p@queue:5672",
    "${bay.bus.url}": "nats://bus:4222",
    "${bay.admin.url}": "http://admin:8081",
    "${bay.files.url}": "http://files:9000",
    "${bay.web.url}": "http://web:3000",
    "${bay.web.public_url}/x": "http://web.bay--shop.localhost:7780/x",
    "${bay.web.public_host}": "web.bay--shop.localhost",
    "${bay.worker.host}": "worker",
    "${bay.web.port}": "3000",
    "${bay.web.ports.metrics}": "9100",
    "${bay.web.ports.port}": "3000",
    "${bay.db.name}": "shop",
    "${bay.db.user}": "sh op",
    "${bay.db.password}": "<db/pw>/@",
    "${bay.files.user}:${bay.files.password}": "minio:local",
    "${secret:a/b}": "<a/b>/@",
    "a$${bay.db.url}$$b $c": "a${bay.db.url}$$b $c",
    "": "",
}


@pytest.mark.parametrize(("text", "value"), CONTAINER.items())
def test_container_plane(manifest: Manifest, text: str, value: str) -> None:
    assert filled(manifest, text) == value


HOST = {
    "${bay.db.url}": "postgres://sh%20op:%3Cdb%2Fpw%3E%2F%40@127.0.0.1:20000/shop",
    "${bay.web.url}": "http://127.0.0.1:20000",
    "${bay.web.public_url}": "http://web.bay--shop.localhost:7780",
    "${bay.web.host}:${bay.web.ports.metrics}": "127.0.0.1:20001",
    "${bay.queue.ports.ui}": "20002",
}


@pytest.mark.parametrize(("text", "value"), HOST.items())
def test_host_plane(manifest: Manifest, text: str, value: str) -> None:
    assert filled(manifest, text, "host") == value


def test_the_run_folder_exists_only_in_a_run(manifest: Manifest) -> None:
    assert filled(manifest, "${run.dir}/a.xml", run_dir="/runs/1") == "/runs/1/a.xml"
    with pytest.raises(DevbayError) as caught:
        filled(manifest, "${run.dir}/a.xml")
    assert caught.value.code == "bad_reference"


def test_a_value_that_looks_like_a_reference_is_not_filled_in_again(manifest: Manifest) -> None:
    text = resolve(
        "${secret:x}",
        manifest=manifest,
        plane="container",
        addresses=Here(),
        secret=lambda _: "${bay.db.url}",
        run_dir=None,
    )
    assert text == "${bay.db.url}"


@pytest.mark.parametrize(
    "text", ["${HOME}", "${bay.no.url}", "${bay.worker.url}", "${bay.half.password}", "${x"]
)
def test_what_a_valid_manifest_cannot_hold_is_an_error(manifest: Manifest, text: str) -> None:
    with pytest.raises(DevbayError) as caught:
        filled(manifest, text)
    assert caught.value.code == "bad_reference"


def test_secret_refs_are_named_once_in_order() -> None:
    assert secret_refs("${secret:b}${secret:a} $${secret:c} ${secret:b}") == ("b", "a")


def test_a_shown_url_leaves_secret_passwords_out(manifest: Manifest) -> None:
    assert service_url(manifest, "db", "host", Here()) == "postgres://sh%20op@127.0.0.1:20000/shop"
    assert (
        service_url(manifest, "plain", "host", Here()) == "postgres://postgres:local@127.0.0.1:20000/postgres"
    )
    assert service_url(manifest, "worker", "host", Here()) is None

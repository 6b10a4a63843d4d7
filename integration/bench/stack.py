"""The stack that is measured, once as a devbay manifest, once as a compose file, once as bare API calls."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from integration.repositories import repository

IMAGES = ("postgres:17", "redis:7", "python:3.13-slim")
COMMAND = ("python", "-c", "print('done')")
_SERVE = ["python", "-m", "http.server", "8000"]

MANIFEST = f"""\
version: 1
project: bench
services:
  db:
    image: postgres:17
    port: 5432
    env: {{POSTGRES_PASSWORD: bench}}
    health: {{cmd: [pg_isready, -q, -h, 127.0.0.1, -U, postgres]}}
  cache:
    image: redis:7
    port: 6379
    health: {{tcp: 6379}}
  web:
    image: python:3.13-slim
    start: {_SERVE}
    port: 8000
    primary: true
    needs: NEEDS
    health: {{http: /}}
tasks:
  nothing:
    in: web
    run: {list(COMMAND)}
    needs: []
"""

COMPOSE = f"""\
x-every: &every {{interval: 1s, timeout: 5s, retries: 60}}
services:
  db:
    image: postgres:17
    ports: ["127.0.0.1::5432"]
    environment: {{POSTGRES_PASSWORD: bench}}
    volumes: ["data:/var/lib/postgresql/data"]
    healthcheck: {{<<: *every, test: [CMD, pg_isready, -q, -h, 127.0.0.1, -U, postgres]}}
  cache:
    image: redis:7
    ports: ["127.0.0.1::6379"]
    healthcheck: {{<<: *every, test: [CMD, redis-cli, ping]}}
  web:
    image: python:3.13-slim
    command: {_SERVE}
    ports: ["127.0.0.1::8000"]
    working_dir: /srv
    volumes: ["./:/srv"]
    depends_on: {{DEPENDS}}
    healthcheck:
      <<: *every
      test: [CMD, bash, -c, "exec 3<>/dev/tcp/127.0.0.1/8000"]
volumes: {{data: {{}}}}
"""


def make_repository(folder: Path, *, chained: bool) -> Path:
    """A repository with both files. chained: web waits for database and cache, else all start at once."""
    waits = "db: {condition: service_healthy}, cache: {condition: service_healthy}"
    return repository(
        folder,
        {
            "devbay.yaml": MANIFEST.replace("NEEDS", "[db, cache]" if chained else "[]"),
            "compose.yaml": COMPOSE.replace("DEPENDS", waits if chained else ""),
            "index.html": "<title>bench</title>\n",
        },
    )


class Bare:
    """The floor: the same containers by parallel API calls, watched as closely as the engine answers."""

    def __init__(self, engine: Any, name: str, folder: Path, *, chained: bool) -> None:
        self._engine = engine
        self._name = name
        self._folder = folder
        self._chained = chained
        self._pool = ThreadPoolExecutor(max_workers=4)

    def up(self) -> None:
        """Network, volume and three containers, until the database, the cache and the page answer."""
        network = self._pool.submit(self._engine.networks.create, self._name)
        volume = self._pool.submit(self._engine.volumes.create, f"{self._name}-data")
        network.result(), volume.result()
        data = {f"{self._name}-data": {"bind": "/var/lib/postgresql/data"}}
        password = {"POSTGRES_PASSWORD": "bench"}
        others = [
            self._pool.submit(
                self._start, "db", "postgres:17", 5432, self._db_ready, environment=password, volumes=data
            ),
            self._pool.submit(self._start, "cache", "redis:7", 6379, self._cache_ready),
        ]
        if self._chained:
            [each.result() for each in others]
        page = {str(self._folder): {"bind": "/srv"}}
        self._start(
            "web", "python:3.13-slim", 8000, self._web_ready, command=_SERVE, working_dir="/srv", volumes=page
        )
        [each.result() for each in others]

    def down(self) -> None:
        """Remove all of it, killing what runs; also after an `up` that was cut short."""
        filters = {"name": f"^/{self._name}-"}
        gone = [
            self._pool.submit(container.remove, v=True, force=True)
            for container in self._engine.containers.list(all=True, filters=filters)
        ]
        [each.result() for each in gone]
        for network in self._engine.networks.list(names=[f"^{self._name}$"]):
            network.remove()
        for volume in self._engine.volumes.list(filters={"name": f"^{self._name}-data$"}):
            volume.remove()
        self._pool.shutdown()

    def _start(self, service: str, image: str, port: int, ready: Callable[[Any], bool], **given: Any) -> None:
        container = self._engine.containers.create(
            image, name=f"{self._name}-{service}", network=self._name,
            ports={f"{port}/tcp": ("127.0.0.1", None)}, **given,
        )  # fmt: skip
        container.start()
        deadline = time.monotonic() + 60
        while not ready(container):
            if time.monotonic() > deadline:
                raise SystemExit(f"the bare {service} was not ready within 60 s")
            time.sleep(0.02)

    @staticmethod
    def _db_ready(container: Any) -> bool:
        done = container.exec_run(["pg_isready", "-q", "-h", "127.0.0.1", "-U", "postgres"])
        return bool(done.exit_code == 0)

    @staticmethod
    def _cache_ready(container: Any) -> bool:
        return bool(container.exec_run(["redis-cli", "ping"]).exit_code == 0)

    @staticmethod
    def _web_ready(container: Any) -> bool:
        done = container.exec_run(["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/8000"])
        return bool(done.exit_code == 0)

"""A running container as what a probe asks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from devbay.errors import DevbayError
from devbay.jobs import Job
from devbay.runtimes.docker import containers, logs
from devbay.runtimes.docker.engine import Engine
from devbay.runtimes.probes import ExecOutcome, ProcessState

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class ContainerTarget:
    """ports: port of the service to port of this machine; primary: the service's own port, if it has one."""

    engine: Engine
    container: str
    name: str
    ports: Mapping[int, int]
    primary: int | None = None

    def address(self, port: int | None) -> tuple[str, int]:
        wanted = self.primary if port is None else port
        if wanted is None or wanted not in self.ports:
            raise DevbayError("not_published", f"{self.name} publishes no port {wanted or ''}".rstrip())
        return LOOPBACK, self.ports[wanted]

    def exec(self, argv: Sequence[str], timeout_s: float) -> ExecOutcome:
        result = containers.exec_(self.engine, self.container, argv, timeout_s=timeout_s)
        return ExecOutcome(result.exit_code, result.output.decode("utf-8", "replace"), result.timed_out)

    def log_lines(self, job: Job) -> Iterator[str]:
        found = containers.inspect(self.engine, self.container)
        if found is None:
            return
        since = logs.start_of_run(found)
        for line in logs.follow(self.engine, self.container, job=job, lines=None, since=since):
            yield line.text

    def log_tail(self, lines: int) -> list[str]:
        try:
            return [line.text for line in logs.tail(self.engine, self.container, lines=lines)]
        except DevbayError as error:
            return [f"(no log: {error.message})"]

    def state(self) -> ProcessState:
        found = containers.inspect(self.engine, self.container)
        if found is None:
            return ProcessState(running=False)
        running = found.state in ("running", "paused")
        return ProcessState(running, found.exit_code, not running and found.will_restart)

"""Runs: finite commands in containers of their own, from their start to the containers' end."""

from __future__ import annotations

import threading

from devbay.jobs import Job
from devbay.runtimes.base import BayRef, Exit, Sink
from devbay.runtimes.docker import containers, logs
from devbay.runtimes.docker.engine import Engine
from devbay.runtimes.docker.objects import BAY, HOME, RUN

OOM_CODE = 137


def run_to_end(engine: Engine, container: str, name: str, sink: Sink, *, timeout_s: float, job: Job) -> Exit:
    """Start a container that was made for a run, read it to its end, and remove it whatever happens."""
    timed_out = threading.Event()

    def end() -> None:
        timed_out.set()
        containers.kill(engine, container)

    timer = threading.Timer(timeout_s, end)
    try:
        with job.when_cancelled(lambda: containers.kill(engine, container)):
            with containers.attach(engine, container) as output:
                job.check()
                containers.start(engine, container, doing=f"run {name}")
                if job.cancelled:  # a signal sent between the two lines above reached nothing
                    containers.kill(engine, container)
                timer.start()
                for frame in output.frames():
                    sink(frame)
            code = containers.wait(engine, container, Job())
        found = containers.inspect(engine, container)
        oom = bool(found and found.oom_killed) and code == OOM_CODE
        return Exit(code, timed_out.is_set(), oom and not timed_out.is_set(), job.cancelled)
    finally:
        timer.cancel()
        containers.remove(engine, container)


def end_run(engine: Engine, bay: BayRef, run: str, sink: Sink) -> Exit | None:
    """Kill and remove what is left of a run that nobody reads any more; its output to `sink`."""
    found = containers.find(engine, {HOME: bay.home, BAY: bay.id, RUN: run})
    if not found:
        return None
    container = found[0].id
    containers.kill(engine, container)
    code = containers.wait(engine, container, Job())
    for line in logs.tail(engine, container):
        sink(line.text.encode() + b"\n")
    containers.remove(engine, container)
    return Exit(code)

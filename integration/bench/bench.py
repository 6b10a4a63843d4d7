"""What devbay promises about speed and cost, measured side by side with what people use otherwise.

`make bench` prints a table and writes the numbers as JSON; it exits 1 if a bar is missed. Everything it makes
lives in a home of its own and is removed at the end, also after Ctrl-C.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import docker

from integration import leftovers
from integration.bench import load
from integration.bench.stack import COMMAND, IMAGES, Bare, make_repository
from integration.house import COMMAND as DEVBAY
from integration.house import House

TYPER = (
    'import typer\napp = typer.Typer()\n@app.command()\ndef main() -> None:\n    print("one line")\napp()\n'
)
BAYS = 10


@dataclass
class Row:
    """One line of the table. value is held against bar, both in `unit`, less is better; None: only shown."""

    what: str
    value: float
    bar: float | None
    unit: str
    said: str
    samples: dict[str, list[float]] = field(default_factory=dict)

    @property
    def reached(self) -> bool:
        return self.bar is None or self.value <= self.bar


@dataclass
class Bench:
    """What the measurements share."""

    house: House
    pairs: int
    rest_s: float
    engine: Any

    def run(self, *argv: str, cwd: Path) -> None:
        done = subprocess.run(
            argv, cwd=cwd, env=self.house.env, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        if done.returncode:
            raise SystemExit(f"{' '.join(argv)} failed ({done.returncode}):\n{done.stdout}{done.stderr}")


def timed(work: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def median(samples: dict[str, list[float]], name: str) -> float:
    return statistics.median(samples[name])


def in_turn(count: int, **works: Callable[[int], float]) -> dict[str, list[float]]:
    """`count` rounds of all works; the order turns from round to round, so that none always goes first."""
    samples: dict[str, list[float]] = {name: [] for name in works}
    names = list(works)
    for number in range(count):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            samples[name].append(works[name](number))
    return samples


def create_and_destroy(bench: Bench, *, chained: bool) -> Iterator[Row]:
    """`devbay new` and `rm` against compose and against bare API calls.

    The bars are for services that wait for each other. Where all start at once, what is left is the
    database's own start, which bare calls wait for too.
    """
    shape = "web after db and cache" if chained else "all at once"
    repository = make_repository(bench.house.root / f"stack-{chained}", chained=chained)
    bench.house.repositories.append(repository)
    gone: dict[str, list[float]] = {"devbay": [], "compose": [], "bare": []}

    def with_devbay(number: int) -> float:
        name = f"pair-{number}"
        taken = timed(lambda: bench.run(*DEVBAY, "new", name, cwd=repository))
        gone["devbay"].append(timed(lambda: bench.run(*DEVBAY, "rm", name, cwd=repository)))
        return taken

    def with_compose(number: int) -> float:
        words = ("docker", "compose", "-p", f"devbay-bench-{os.getpid()}-{number}")
        down = (*words, "down", "-v", "-t", "1")
        with undone(lambda: bench.run(*down, cwd=repository)):
            taken = timed(lambda: bench.run(*words, "up", "-d", "--wait", cwd=repository))
            gone["compose"].append(timed(lambda: bench.run(*down, cwd=repository)))
        return taken

    def with_bare_calls(number: int) -> float:
        bare = Bare(bench.engine, f"devbay-bare-{os.getpid()}-{number}", repository, chained=chained)
        begin = time.perf_counter()
        try:
            bare.up()
            taken = time.perf_counter() - begin
        finally:
            begin = time.perf_counter()
            bare.down()
        gone["bare"].append(time.perf_counter() - begin)
        return taken

    with_devbay(bench.pairs)  # starts daemon and proxy
    gone["devbay"].clear()
    made = in_turn(bench.pairs, devbay=with_devbay, compose=with_compose, bare=with_bare_calls)
    for what, samples, bar in (
        (f"create ({shape})", made, 0.65 if chained else None),
        (f"destroy ({shape})", gone, 0.5 if chained else None),
    ):
        ours, theirs, floor = (median(samples, name) for name in ("devbay", "compose", "bare"))
        said = f"devbay {ours:.2f} s, compose {theirs:.2f} s, bare calls {floor:.2f} s"
        yield Row(what, ours / theirs, bar, "ratio", said, samples)


@contextmanager
def undone(undo: Callable[[], None]) -> Iterator[None]:
    """Undo what the block made if it is left by an error or Ctrl-C."""
    try:
        yield
    except BaseException:
        undo()
        raise


def run_task(bench: Bench, repository: Path) -> Iterator[Row]:
    """A task that needs no service, against `docker run --rm` of the same command with the same mount."""
    bench.run(*DEVBAY, "new", "task", "--no-boot", cwd=repository)
    mount = f"{repository}:{repository}"
    with bench.house.client(repository) as client:

        def ours(_: int) -> float:
            def call() -> None:
                result = client.tool("bay_run_task", {"bay": "task", "task": "nothing"})
                assert result["status"] == "passed", result

            return timed(call)

        def theirs(_: int) -> float:
            words = ("docker", "run", "--rm", "-v", mount, "-w", str(repository), "python:3.13-slim")
            return timed(lambda: bench.run(*words, *COMMAND, cwd=repository))

        ours(0)
        samples = in_turn(2 * bench.pairs, devbay=ours, docker=theirs)
    bench.run(*DEVBAY, "rm", "task", cwd=repository)
    mine, plain = median(samples, "devbay"), median(samples, "docker")
    said = f"bay_run_task {mine:.2f} s, docker run --rm {plain:.2f} s"
    yield Row("run a task with needs: [], added", mine - plain, 0.25, "s", said, samples)


def listing(bench: Bench, repository: Path) -> Iterator[Row]:
    """`devbay ls` as a whole process, and `bay_list` over an open socket."""
    program = bench.house.root / "one_line.py"
    program.write_text(TYPER)
    samples = in_turn(
        4 * bench.pairs,
        devbay=lambda _: timed(lambda: bench.run(*DEVBAY, "ls", cwd=repository)),
        typer=lambda _: timed(lambda: bench.run(sys.executable, str(program), cwd=repository)),
    )
    ours, theirs = median(samples, "devbay"), median(samples, "typer")
    said = f"devbay ls {ours * 1000:.0f} ms, Typer {theirs * 1000:.0f} ms"
    yield Row(f"devbay ls, {BAYS} bays", ours / theirs, 1.3, "ratio", said, samples)

    with bench.house.client(repository) as client:
        times = [timed(lambda: client.tool("bay_list", {})) for _ in range(200)]
        assert len(client.tool("bay_list", {})["bays"]) == BAYS
    p50, p95 = statistics.median(times), sorted(times)[int(len(times) * 0.95)]
    said = f"p50 {p50 * 1000:.1f} ms, p95 {p95 * 1000:.1f} ms of {len(times)} calls"
    yield Row(f"bay_list on an open socket, {BAYS} bays", p50, 0.005, "s", said, {"bay_list": times})


def pipe(bench: Bench, repository: Path) -> Iterator[Row]:
    """`devbay mcp` from its spawn to the daemon's answer to `initialize`."""
    params = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"},
    }
    hello = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).encode() + b"\n"

    def once(_: int) -> float:
        begin = time.perf_counter()
        with subprocess.Popen(
            [*DEVBAY, "mcp"],
            cwd=repository,
            env=bench.house.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as child:
            assert child.stdin and child.stdout
            child.stdin.write(hello)
            child.stdin.flush()
            answer = json.loads(child.stdout.readline())
            taken = time.perf_counter() - begin
            assert "result" in answer, answer
            child.stdin.close()
        return taken

    once(0)
    samples = in_turn(4 * bench.pairs, pipe=once)
    taken = median(samples, "pipe")
    said = f"{taken * 1000:.0f} ms (worst {max(samples['pipe']) * 1000:.0f} ms)"
    yield Row("devbay mcp, spawn to first answer", taken, 0.12, "s", said, samples)


def rest(bench: Bench) -> Iterator[Row]:
    """The daemon's memory, and what daemon, proxy and engine use more than the same containers alone.

    The same containers are watched twice: with the daemon, then with daemon and proxy stopped.
    """
    daemon = bench.house.daemon_pid()
    assert daemon is not None
    memory = load.resident_mb(daemon)
    yield Row(f"daemon's memory, {BAYS} bays", memory, 120, "MB", f"{memory:.0f} MB resident")

    ids = [each.id for each in bench.engine.containers.list()]
    processes = {
        "devbay": {daemon, *(pid for pid, line in leftovers.processes(bench.house.root) if "caddy" in line)},
        "engine": load.engine_pids(engine_socket(), ids),
    }
    time.sleep(10)  # what creating the bays left to do
    with_devbay = load.cores(processes, bench.rest_s)
    bench.run(*DEVBAY, "daemon", "stop", cwd=bench.house.root)
    time.sleep(2)
    alone = load.cores({"engine": processes["engine"]}, bench.rest_s)["engine"]
    ours, engine = with_devbay["devbay"], with_devbay["engine"]
    said = f"daemon and proxy {ours:.2%}, engine {engine:.2%}, without devbay {alone:.2%} of a core"
    samples = {"devbay": [ours], "engine": [engine], "alone": [alone]}
    yield Row("use at rest beyond the containers' own", ours + engine - alone, 0.02, "cores", said, samples)


def engine_socket() -> str:
    """The engine's socket; the cost at rest can only be measured on this machine."""
    host = os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
    if not host.startswith("unix://"):
        raise SystemExit(f"the bench needs an engine on this machine, not {host}")
    return host.removeprefix("unix://")


def rows(bench: Bench) -> Iterator[Row]:
    """Every row, in an order that makes the ten bays once."""
    yield from create_and_destroy(bench, chained=True)
    yield from create_and_destroy(bench, chained=False)
    repository = bench.house.repositories[0]
    yield from run_task(bench, repository)
    for number in range(BAYS):
        bench.run(*DEVBAY, "new", f"bay-{number}", cwd=repository)
    yield from listing(bench, repository)
    yield from pipe(bench, repository)
    yield from rest(bench)


def measured(pairs: int, rest_s: float) -> list[Row]:
    """Measure in a home of its own that is gone afterwards, whatever ends this."""
    found = []
    with House() as house:
        bench = Bench(house, pairs, rest_s, docker.from_env())
        for image in IMAGES:
            bench.engine.images.get(image)
        for row in rows(bench):
            found.append(row)
            print(line(row), flush=True)
    return found


def line(row: Row) -> str:
    """A row as text."""
    verdict = "shown" if row.bar is None else "ok" if row.reached else "MISSED"
    form = "{:.1%}" if row.unit == "cores" else "{:.3g}"
    bar = "" if row.bar is None else f"<= {form.format(row.bar)}"
    return f"{verdict:<6} {row.what:<42} {form.format(row.value):>7} {bar:<8} {row.unit:<5}  {row.said}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=5, help="rounds of create and destroy (5)")
    parser.add_argument("--rest", type=float, default=60.0, metavar="S", help="seconds of rest (60)")
    parser.add_argument("--json", type=Path, default=Path("bench.json"), help="file for the numbers")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    load_before = os.getloadavg()
    found = measured(given.pairs, given.rest)
    machine = {
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "engine": docker.from_env().version()["Version"],
        "load_before": load_before,
        "load_after": os.getloadavg(),
    }
    table = [{**asdict(row), "reached": row.reached} for row in found]
    given.json.write_text(json.dumps({"machine": machine, "rows": table}, indent=1) + "\n")
    print(f"load {load_before[0]:.1f} before, {os.getloadavg()[0]:.1f} after; numbers in {given.json}")
    return 0 if all(row.reached for row in found) else 1


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except KeyboardInterrupt:
        raise SystemExit("stopped; everything was removed") from None

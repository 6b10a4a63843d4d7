"""What bays cost without a container engine, side by side with the same processes started by hand.

`python -m integration.bench.host` prints a table and exits 1 if a bar is missed. The bars are the issue's: a
second bay all healthy at most 1.0 s after `new` beyond the application's own start, ten bays in at most
600 MB besides the applications.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from integration.house import House
from integration.repositories import repository

PAIRS = 5
BAYS = 10
SECOND_BAY_S, BAYS_MB = 1.0, 600
SERVE = ("python3", "-m", "http.server", "-b", "127.0.0.1")
MANIFEST = """\
version: 1
project: bench
services:
  db:
    image: postgres:17
    port: 5432
    env: {POSTGRES_PASSWORD: bench}
    health: {cmd: [pg_isready, -q, -h, 127.0.0.1, -U, postgres]}
  api:
    image: python:3.11
    start: [python, -m, http.server, "8000", -b, 127.0.0.1]
    port: 8000
    needs: [db]
    health: {http: /}
    env: {DATABASE_URL: "${bay.db.url}"}
  web:
    image: python:3.11
    start: [python, -m, http.server, "8080", -b, 127.0.0.1]
    port: 8080
    primary: true
    needs: [api]
    health: {http: /}
    env: {API_URL: "${bay.api.url}"}
"""


def main() -> int:
    with House(runtime="host") as house:
        folder = repository(house.root / "repo", {"devbay.yaml": MANIFEST, "index.html": "bench\n"})
        house.repositories.append(folder)
        house.devbay("new", "first", "--no-boot", cwd=folder, code=None)
        house.approve(folder)
        house.devbay("up", "first", cwd=folder)
        rows = [second_bay(house, folder), ten_bays(house, folder)]
    missed = [row["what"] for row in rows if row["value"] > row["bar"]]
    for row in rows:
        print(f"{row['what']:<60} {row['value']:>8.3f} {row['unit']} (<= {row['bar']})  {row['said']}")
    print(json.dumps(rows))
    return 1 if missed else 0


def second_bay(house: House, folder: Path) -> dict[str, Any]:
    """A whole `devbay new`, less what both application servers need by themselves, one after the other."""
    wholes, own = [], []
    for number in range(PAIRS):
        own.append(timed(start_by_hand))
        name = f"second-{number}"
        wholes.append(timed(lambda name=name: house.devbay("new", name, cwd=folder)))
    for number in range(PAIRS):  # afterwards: ext4 makes files slowly for a while after many were removed
        house.devbay("rm", f"second-{number}", "--force", cwd=folder)
    whole, application = statistics.median(wholes), statistics.median(own)
    return {
        "what": "second bay, all healthy, without the applications' own start",
        "value": whole - application, "bar": SECOND_BAY_S, "unit": "s",
        "said": f"new {whole:.3f} s, the two applications by hand {application:.3f} s",
    }  # fmt: skip


def start_by_hand() -> None:
    """Both application servers, the second once the first answers, as the bay starts them."""
    started: list[subprocess.Popen[bytes]] = []
    try:
        for port in (29871, 29872):
            argv = [*SERVE, str(port)]
            started.append(subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            until_answers(port)
    finally:
        for process in started:
            process.kill()
            process.wait()


def until_answers(port: int) -> None:
    while True:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5).close()
            return
        except OSError:
            time.sleep(0.005)


def ten_bays(house: House, folder: Path) -> dict[str, Any]:
    """Memory (proportional set size) of all that devbay and its servers use with ten bays up."""
    names = ["first", *(f"bay-{number}" for number in range(1, BAYS))]
    for name in names[1:]:
        house.devbay("new", name, cwd=folder)
    parts: dict[str, float] = {}
    for pid, kind in processes(house):
        parts[kind] = parts.get(kind, 0) + pss_mb(pid)
    for name in names:
        house.devbay("rm", name, "--force", cwd=folder)
    application = parts.pop("application", 0.0)
    said = ", ".join(f"{kind} {mb:.0f}" for kind, mb in sorted(parts.items()))
    return {
        "what": "ten bays (Postgres, API, web) besides the applications",
        "value": sum(parts.values()), "bar": BAYS_MB, "unit": "MB",
        "said": f"{said}; the applications {application:.0f}",
    }  # fmt: skip


def processes(house: House) -> list[tuple[int, str]]:
    """Every process of the home: devbayd, Caddy, keepers, sandboxes, servers, applications."""
    keeper = f"DEVBAY_KEEPER={house.home.id}".encode()
    needles = (f"DEVBAY_KEPT={house.home.id}".encode(), f"={house.root}/home".encode())
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            environment, line = (entry / "environ").read_bytes(), (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if keeper in environment:
            found.append((int(entry.name), "keepers"))
        elif any(needle in environment for needle in needles) or str(house.root).encode() in line:
            found.append((int(entry.name), kind_of(line.replace(b"\0", b" ").decode(errors="replace"))))
    return found


def kind_of(line: str) -> str:
    kinds = {"bwrap": "sandboxes", "devbay.daemon": "devbayd", "caddy": "Caddy"}
    for word, kind in kinds.items():
        if word in line.split(" -- ")[0]:
            return kind
    return "Postgres" if "postgres" in line else "application"


def pss_mb(pid: int) -> float:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in text.splitlines() if line.startswith("Pss:")), 0.0)


def timed(work: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


if __name__ == "__main__":
    sys.exit(main())

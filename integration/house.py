"""A devbay home of the tests' own: the real command, a client of its daemon, and what must not outlive it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devbay.client import Client
from devbay.home import Home
from devbay.runtimes.host.keptstate import read_state
from devbay.runtimes.host.place import Place
from devbay.store import GrantRecord, Store
from devbay.worktrees.repository import Repository
from integration import leftovers

COMMAND = (str(Path(sys.executable).with_name("devbay")),)


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    argv: Sequence[str]
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, Any]:
        """The error of a command under `--json`."""
        found: dict[str, Any] = self.json["error"]
        return found

    def __str__(self) -> str:
        return f"{' '.join(self.argv)} -> {self.code}\n{self.out}\n{self.err}"


class House:
    """A home below a folder of its own, with its own runtime folder; use as a context manager."""

    def __init__(self, config: str = "", *, runtime: str = "docker") -> None:
        self.runtime_name = runtime
        self.root = Path(tempfile.mkdtemp(prefix="devbay-house-"))
        self.runtime = self.root / "run"
        self.runtime.mkdir(mode=0o700)
        own = {key: value for key, value in os.environ.items() if not key.startswith(("DEVBAY_", "XDG_"))}
        self.env = {
            **own,
            "DEVBAY_HOME": str(self.root / "home"),
            "XDG_RUNTIME_DIR": str(self.runtime),
            "GIT_CONFIG_GLOBAL": os.devnull,
        }
        if runtime == "host":
            self.env = {key: value for key, value in self.env.items() if not key.startswith("DOCKER_")}
            self.env |= {"DEVBAY_RUNTIME": "host", "PATH": self._path_without_engine()}
        self.home = Home.from_environment(self.env)
        if config:
            self.home.config_dir.mkdir(parents=True)
            (self.home.config_dir / "config.toml").write_text(config)
        self.before = leftovers.in_the_kernel() if runtime == "host" else set()
        leftovers.remember(self.home.id, self.root)
        self.repositories: list[Path] = []

    def __enter__(self) -> House:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- using it --------------------------------------------------------------------------------------

    def devbay(
        self,
        *words: str,
        cwd: Path | None = None,
        code: int | None = 0,
        env: Mapping[str, str] | None = None,
        timeout: float = 120,
    ) -> Ran:
        """Run the real command and wait; fails unless it exits with `code` (None: any)."""
        argv = [*COMMAND, *words]
        done = subprocess.run(
            argv, cwd=cwd or self.root, env={**self.env, **(env or {})}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=timeout,
        )  # fmt: skip
        ran = Ran(words, done.returncode, done.stdout, done.stderr)
        assert code is None or ran.code == code, f"expected exit code {code}: {ran}"
        return ran

    def json(self, *words: str, cwd: Path, code: int | None = 0, **given: Any) -> Any:
        """The structured result of a command."""
        return self.devbay(*words, "--json", cwd=cwd, code=code, **given).json

    def start(self, *words: str, cwd: Path) -> subprocess.Popen[str]:
        """Start the command and do not wait."""
        return subprocess.Popen(
            [*COMMAND, *words], cwd=cwd, env=self.env, stdin=subprocess.DEVNULL, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def client(self, cwd: Path, env: Mapping[str, str] | None = None) -> Client:
        """A connection to the daemon, which is started where needed."""
        return Client(self.home, {**self.env, **(env or {})}, str(cwd))

    # -- the daemon ------------------------------------------------------------------------------------

    def daemon_pid(self) -> int | None:
        """The process that serves this home, if there is one."""
        with_pid = self.home.state_dir / "daemon.lock"
        text = with_pid.read_text().strip() if with_pid.exists() else ""
        return int(text) if text and Path(f"/proc/{text}").exists() else None

    def kill_daemon(self) -> None:
        """`kill -9` of the daemon; returns when the process is gone."""
        pid = self.daemon_pid()
        assert pid is not None, "no daemon runs"
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not leftovers.alive(pid), "the killed daemon to be gone")

    # -- what runs, on either runtime ------------------------------------------------------------------

    def running(self) -> dict[str, str]:
        """Every service that has a process now, and what changes when it is started again."""
        if self.runtime_name == "docker":
            found = {
                name.split("-", 2)[2]: docker(
                    "inspect", "-f", "{{.Id}} {{.State.StartedAt}}", name, code=None
                )
                for name in self.containers("label=dev.devbay.service", everything=False)
            }
            return {name: mark for name, mark in found.items() if mark.strip()}  # it may go meanwhile
        states = [read_state(folder) for folder in Place.of(self.home).bays.glob("*/services/*")]
        return {each.name: f"{each.pid} {each.started}" for each in states if each and each.pid}

    def runs(self, *, everything: bool = False) -> list[str]:
        """Every run that has a process now; with `everything` also containers without one."""
        if self.runtime_name == "docker":
            return self.containers("label=dev.devbay.run", everything=everything)
        found = leftovers.kept(self.home.id)
        return sorted({name for pid, name, _ in found if name.startswith("run-") and leftovers.alive(pid)})

    def kill(self, service: str) -> None:
        """End a service's processes from outside, as a crash does."""
        if self.runtime_name == "docker":
            docker("kill", *self.containers(f"label=dev.devbay.service={service}"))
            return
        os.kill(int(self.running()[service].split()[0]), signal.SIGKILL)

    def approve(self, repository: Path) -> None:
        """What a person does at a terminal: allow all that waits in a repository, where its commands run on
        this machine. (That only a person can is tested on its own.)
        """
        if self.runtime_name != "host":
            return
        with self.client(repository) as client:
            items = client.private("devbay/approve.list", {})["items"]
        store, known = Store(self.home.store), Repository.discover(repository).id
        for item in items:
            store.add_grant(GrantRecord(known, item["key"], item["kind"], item["summary"], ""))
        store.close()

    def _path_without_engine(self) -> str:
        """The PATH as links to all programs but an engine's client."""
        folder = self.root / "programs"
        folder.mkdir()
        for place in os.environ["PATH"].split(":"):
            for program in sorted(Path(place).iterdir()) if Path(place).is_dir() else ():
                link = folder / program.name
                engine = program.name.startswith(("docker", "podman"))
                if not engine and not link.is_symlink() and os.access(program, os.X_OK):
                    link.symlink_to(program)
        return str(folder)

    # -- what there is on the engine -------------------------------------------------------------------

    def containers(self, *filters: str, everything: bool = True) -> list[str]:
        """Names of this home's containers."""
        words = [word for each in filters for word in ("--filter", each)]
        return docker(
            "ps", *(["-a"] if everything else []), "--filter", f"label=dev.devbay.home={self.home.id}",
            *words, "--format", "{{.Names}}",
        ).split()  # fmt: skip

    def objects(self, bay: str = "") -> list[str]:
        """`<kind> <name>` of everything on the engine of a bay (by id), or of all bays; no caches."""
        label = f"dev.devbay.bay={bay}" if bay else "dev.devbay.bay"
        found = leftovers.engine_objects(self.home.id, label=label)
        return found + leftovers.host_objects(self.home.id, self.root, bay)

    # -- the end ---------------------------------------------------------------------------------------

    def close(self) -> None:
        """Destroy every bay, collect all, stop the daemon; what is then left is an error of devbay."""
        try:
            for bay in self.json("ls", "--all", cwd=self.root)["bays"]:
                self.devbay("rm", bay["id"], "--force", code=None)
            self.devbay("gc", "--all")
            self.devbay("daemon", "stop")
            left = leftovers.of_home(self.home.id, self.root, self.repositories)
            if self.runtime_name == "host":
                left += leftovers.settled(lambda: leftovers.in_the_kernel() - self.before)
        finally:
            self._sweep()
        assert not left, "left after gc --all and daemon stop:\n" + "\n".join(left)

    def _sweep(self) -> None:
        """Remove what may be left, so that one failure does not spoil later runs."""
        leftovers.sweep(self.home.id, self.root)
        shutil.rmtree(self.root, ignore_errors=True)
        leftovers.forget(self.home.id)


def docker(*words: str, code: int | None = 0) -> str:
    """The output of the engine's own client."""
    done = subprocess.run(["docker", *words], capture_output=True, text=True, timeout=120)
    assert code is None or done.returncode == code, f"docker {' '.join(words)}: {done.stderr}"
    return done.stdout


def wait_for(condition: Any, what: str, timeout_s: float = 20.0, pause_s: float = 0.05) -> Any:
    """The first true value of `condition()`; fails naming `what` when it does not come."""
    deadline = time.monotonic() + timeout_s
    while True:
        if found := condition():
            return found
        assert time.monotonic() < deadline, f"waited {timeout_s} s for {what}"
        time.sleep(pause_s)

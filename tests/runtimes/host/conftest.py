from __future__ import annotations

import os
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from devbay.manifest.models import Limits
from devbay.runtimes.host import tree
from devbay.runtimes.host.keepers import Keepers
from devbay.runtimes.host.keptstate import KeptState, holder
from devbay.runtimes.host.launch import MARK, Launch
from devbay.runtimes.host.place import Place


class Kept:
    """Keepers of a home of their own, and short words for one service `web` of one bay `b1`."""

    def __init__(self, root: Path, sockets: Path) -> None:
        self.place = Place(root, sockets)
        self.home = f"t{secrets.token_hex(8)}"
        self.keepers = Keepers(self.place, self.home)
        self.bay = f"b{secrets.token_hex(4)}"  # control groups of tests that run at once differ by it
        self.folder, self.socket = self.place.service(self.bay, "web"), self.place.socket(self.bay, "web")
        self.mark = f"{self.home}/{self.bay}/web"

    def launch(
        self,
        script: str,
        *,
        argv: tuple[str, ...] = (),
        name: str = "web",
        restart: str = "no",
        limits: Limits | None = None,
        cwd: str = "/",
    ) -> Launch:
        return Launch(
            f"{self.home}/{self.bay}/{name}",
            argv or ("sh", "-c", script),
            {"PATH": os.environ["PATH"]},
            cwd,
            restart=restart,
            limits=limits,
        )

    def start(self, script: str, *, config: str = "c1", **more: object) -> str:
        launch = self.launch(script, **more)  # type: ignore[arg-type]
        return self.keepers.start(self.folder, self.socket, launch, config)

    def stop(self, timeout_s: float = 10) -> None:
        self.keepers.stop(self.folder, self.socket, timeout_s)

    @property
    def state(self) -> KeptState:
        found = self.keepers.state(self.folder)
        assert found is not None
        return found

    @property
    def log(self) -> str:
        path = self.folder / "log"
        return path.read_text() if path.exists() else ""

    def marked(self, mark: str = "") -> list[tree.Process]:
        return tree.marked(MARK, mark or self.mark)


def eventually(check: Callable[[], object], timeout_s: float = 20) -> None:
    """Wait until `check` holds; how long it takes is no matter."""
    deadline = time.monotonic() + timeout_s
    while not check():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.005)


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    with tempfile.TemporaryDirectory(prefix="db", dir="/tmp") as sockets:
        kept = Kept(tmp_path / "root", Path(sockets))
        yield kept
        kept.keepers.close()
        kept.stop(0)
        for mark in (kept.mark, f"{kept.home}/{kept.bay}/run-1"):
            kept.keepers.end_strays(mark)
            assert kept.marked(mark) == []
        assert not holder(kept.folder)

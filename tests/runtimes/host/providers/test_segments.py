"""What a killed Postgres leaves in its data directory, beside processes that live."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from devbay.runtimes.host.providers.segments import remove_left_lock

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")


@pytest.fixture
def lock(tmp_path: Path) -> Iterator[Callable[[Path], Path]]:
    """`lock(at)`: a data directory's lock that names a live process which works in the folder `at`."""
    running: list[subprocess.Popen[bytes]] = []

    def named(at: Path) -> Path:
        running.append(subprocess.Popen(["sleep", "60"], cwd=at))
        file = tmp_path / "data" / "postmaster.pid"
        file.write_text(f"{running[-1].pid}\n{file.parent}\n")
        return file

    (tmp_path / "data").mkdir()
    yield named
    for one in running:
        one.kill()
        one.wait()


def test_a_lock_whose_process_is_another_program_is_removed(lock: Callable[[Path], Path], tmp_path: Path):
    file = lock(tmp_path)
    assert remove_left_lock(file.parent)
    assert not file.exists()


def test_the_lock_of_a_server_that_runs_stays(lock: Callable[[Path], Path], tmp_path: Path):
    file = lock(tmp_path / "data")
    (tmp_path / "link").symlink_to(tmp_path / "data")
    assert not remove_left_lock(file.parent)
    assert not remove_left_lock(tmp_path / "link")
    assert file.exists()


@pytest.mark.parametrize("text", ["", "no number\n", "999999999\n"])
def test_a_lock_that_names_no_live_process_is_left_to_postgres(tmp_path: Path, text: str):
    (tmp_path / "postmaster.pid").write_text(text)
    assert not remove_left_lock(tmp_path)
    assert not remove_left_lock(tmp_path / "no data")

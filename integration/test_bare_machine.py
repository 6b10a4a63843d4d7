"""The README's first command on a machine with Python, git and make and nothing else, without privileges."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.full
IMAGE = "devbay-test-bare"
DOCKERFILE = """\
FROM debian:bookworm-slim
RUN apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
 git make python3 python3-venv && rm -rf /var/lib/apt/lists/*
RUN useradd --create-home --uid 1234 person
"""
SCRIPT = """\
set -e
cd "$HOME"; mkdir -p checkout; tar -x -C checkout; cd checkout
! command -v docker
make demo
.venv/bin/devbay gc --all
.venv/bin/devbay daemon stop
cd /
for entry in /proc/[0-9]*; do
  command=$(tr '\\0' ' ' < $entry/cmdline 2>/dev/null || true)
  case $command in "sh -c set"* | "") ;; *) echo "left: $command" ;; esac
done
for place in /var/lib/devbay /tmp/devbay-demo-* /dev/shm/*; do [ ! -e "$place" ] || echo "left: $place"; done
awk 'FNR > 1 {print "left:", FILENAME, $0}' /proc/sysvipc/shm /proc/sysvipc/sem
"""


@pytest.fixture(scope="module")
def image() -> Iterator[str]:
    """A Debian with what a person has who never installed an engine."""
    subprocess.run(["docker", "build", "-q", "-t", IMAGE, "-"], input=DOCKERFILE, text=True, check=True)
    yield IMAGE
    subprocess.run(["docker", "rmi", "-f", IMAGE], capture_output=True, check=True)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of this checkout as an archive; nothing of what was installed or built in it."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, check=True,
    ).stdout  # fmt: skip
    there = b"\0".join(name for name in listed.split(b"\0") if name and (ROOT / name.decode()).is_file())
    path: Path = tmp_path_factory.mktemp("checkout") / "checkout.tar"
    subprocess.run(["tar", "-c", "-f", path, "--null", "-T", "-"], cwd=ROOT, input=there, check=True)
    return path


@pytest.mark.parametrize("user", ["root", "person"])
def test_make_demo_runs_to_its_end(image: str, checkout: Path, user: str, capsys: pytest.CaptureFixture[str]):
    home = "/root" if user == "root" else "/home/person"
    command = ["docker", "run", "--rm", "-i", "-u", user, "-e", f"HOME={home}", image, "sh", "-c", SCRIPT]
    with checkout.open("rb") as archive:
        began = time.monotonic()
        done = subprocess.run(command, stdin=archive, capture_output=True, timeout=600)
    took = time.monotonic() - began
    out, err = done.stdout.decode(), done.stderr.decode()
    with capsys.disabled():
        print(f"\nmake demo as {user}, without engine and privileges: {took:.1f} s with installation")
    assert done.returncode == 0, f"{out}\n{err}"
    assert out.count("http://") >= 2
    assert "tests/unit/test_prices.py:9: assert 1500 == 1350" in out
    assert "removed both bays" in out
    assert [line for line in out.splitlines() if line.startswith("left:")] == []

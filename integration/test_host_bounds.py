"""What a bay of this machine sees and changes, what stands in for images, and that nothing of it stays."""

from __future__ import annotations

import json
import os
import socket
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from integration import leftovers
from integration.conftest import maker
from integration.house import House, wait_for
from integration.repositories import TINY, git, write

RUNTIMES = ("host",)
LOOK = """\
import json, os, socket, sys

def tried(what):
    try:
        return what() or "done"
    except OSError as error:
        return type(error).__name__

def connect(path):
    with socket.socket(socket.AF_UNIX) as one:
        one.connect(path)

def write(folder):
    with open(os.path.join(folder, "written-by-a-bay"), "w") as file:
        file.write("x")

given = json.loads(sys.argv[1])
found = {"read " + path: tried(lambda: open(path).read()) for path in given["read"]}
found |= {"write " + path: tried(lambda: write(path)) for path in given["write"]}
found |= {"connect " + path: tried(lambda: connect(path)) for path in given["connect"]}
found |= {"signal " + str(pid): tried(lambda: os.kill(pid, 0)) for pid in given["signal"]}
found["pids"] = sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
found["env"] = sorted(os.environ)
found["workspace"] = os.path.realpath("/workspace")
json.dump(found, open("found.json", "w"))
"""
LITTER = """\
import ctypes, mmap, os, time
from multiprocessing import shared_memory, resource_tracker, Semaphore
libc = ctypes.CDLL(None)
libc.shmat(libc.shmget(4711, 4096, 0o1600), None, 0)
libc.semctl(libc.semget(4712, 1, 0o1600), 0, 16, 1)  # SETVAL: who used it is its owner
libc.msgsnd(libc.msgget(4713, 0o1600), b"\\1" + b"\\0" * 15, 8, 0)
resource_tracker.register = lambda *_: None
one = shared_memory.SharedMemory("devbay-litter", create=True, size=4096)
kept = Semaphore()
open(os.path.join(os.environ["TMPDIR"], "litter"), "w").close()
print("littered", flush=True)
time.sleep(9999)
"""
LITTERING = """\
version: 1
project: litter
services:
  db:
    image: postgres:17
    env: {POSTGRES_PASSWORD: word}
    port: 5432
    health: {cmd: [pg_isready, -U, postgres]}
  web:
    image: python:3
    start: [python, litter.py]
    health: {log: littered}
tasks: {}
"""
REQUIRING = """\
version: 1
project: requiring
services:
  web:
    image: python:3
    install: [pip, install, --no-index, --find-links, wheels, -r, requirements.txt]
    install_inputs: [requirements.txt, "wheels/*"]
    start: [python, -m, http.server, "8080", -b, 127.0.0.1, -d, www]
    port: 8080
    health: {http: /}
tasks:
  version: {in: web, run: [python, -c, "import thing; print(thing.VERSION)"], needs: []}
"""


@pytest.fixture
def make_own(own_house: House) -> Callable[..., Path]:
    return maker(own_house)


def lines(house: House, path: Path, bay: str, task: str) -> list[str]:
    run = house.json("run", bay, task, cwd=path)["run"]
    return [line["text"] for line in house.json("logs", bay, "--run", run, cwd=path)["lines"]]


def test_a_command_sees_and_changes_nothing_but_its_bay(own_house: House, make_own: Callable[..., Path]):
    home = own_house.root / "user"
    write(home, {".ssh/id_ed25519": "a key", ".config/tool/token": "a token", "documents/letter": "a letter"})
    own_house.env["HOME"] = str(home)
    path = make_own(
        "tiny", "look", TINY + "  look: {run: [python, look.py], needs: []}\n", **{"look.py": LOOK}
    )
    (path / ".env").write_text("SECRET=of the main checkout")
    own_house.env["OF_THE_CALLER"] = "not for bays"
    info = own_house.json("new", "one", cwd=path)
    if "private mount, pid, ipc namespaces" not in info["isolation"]:
        pytest.skip(info["isolation"])
    worktree = Path(info["worktree"])
    other = Path(own_house.json("new", "two", "--no-boot", cwd=path)["worktree"])
    outside = own_house.root / "outside"
    outside.mkdir()
    ask = {
        "read": [
            str(home / ".ssh/id_ed25519"), str(home / ".config/tool/token"), str(home / "documents/letter"),
            str(own_house.home.store), str(own_house.home.state_dir / "home-id"), str(path / ".env"),
        ],
        "write": [
            str(home), str(outside), str(path), str(path / ".git"), str(path / ".git/hooks"), str(other),
            "/etc", "/usr/local/bin", "/var/tmp", "/tmp", str(worktree), str(own_house.root),
        ],
        "connect": [str(own_house.home.socket), "/run/docker.sock", "/var/run/docker.sock"],
        "signal": [os.getpid(), own_house.daemon_pid()],
    }  # fmt: skip
    own_house.devbay("run", "one", "look", "--", json.dumps(ask), cwd=path)
    found = json.loads((worktree / "found.json").read_text())
    assert found[f"write {worktree}"] == found["write /tmp"] == found["write /var/tmp"] == "done"
    really = [folder for folder in ask["write"] if (Path(folder) / "written-by-a-bay").exists()]
    assert really == [str(worktree)], "its temporary folders are its own"
    assert not [
        key for key in found if key.startswith(("read", "connect", "signal")) and "Error" not in found[key]
    ]
    assert len(found["pids"]) < 6, "the processes of the machine are seen"
    assert os.getpid() not in found["pids"]
    assert "OF_THE_CALLER" not in found["env"]
    assert not [name for name in found["env"] if name.startswith("DOCKER_")]
    assert found["workspace"] == str(worktree)


def test_nothing_is_left_in_the_machine_by_a_bay_that_littered(
    own_house: House, make_own: Callable[..., Path]
):
    before = leftovers.in_the_kernel()
    path = make_own("tiny", "litter", LITTERING, **{"litter.py": LITTER})
    info = own_house.json("new", "one", cwd=path)
    (port,) = (port for each in info["services"] for port in each.get("ports", {}).values())
    assert own_house.objects(info["id"])
    answer = own_house.json("rm", "one", cwd=path)
    assert answer["destroyed"]
    assert own_house.objects(info["id"]) == []
    wait_for(lambda: leftovers.in_the_kernel() <= before, "shared memory and semaphores to be gone")
    with socket.socket() as one:
        one.bind(("127.0.0.1", port))


def test_a_killed_database_leaves_no_shared_memory_either(own_house: House, make_own: Callable[..., Path]):
    before = leftovers.in_the_kernel()
    path = make_own("tiny", "litter", LITTERING, **{"litter.py": LITTER})
    info = own_house.json("new", "one", cwd=path)
    own_house.kill("db")
    own_house.kill("web")
    own_house.devbay("rm", "one", cwd=path)
    assert own_house.objects(info["id"]) == []
    wait_for(lambda: leftovers.in_the_kernel() <= before, "shared memory and semaphores to be gone")


@pytest.mark.skipif(os.getuid() != 0, reason="devbay does not run as root here")
def test_a_server_that_refuses_root_runs_as_a_user_of_its_bays_own(
    own_house: House, make_own: Callable[..., Path]
):
    path = make_own("tiny", "litter", LITTERING, **{"litter.py": LITTER})
    owners = []
    for name in ("one", "two"):
        own_house.devbay("new", name, cwd=path)
    for pid, service, _ in leftovers.kept(own_house.home.id):
        if service == "db" and leftovers.alive(pid):
            owners.append(Path(f"/proc/{pid}").stat().st_uid)
    assert owners
    assert all(61184 <= user <= 65519 for user in owners)
    assert len(set(owners)) == 2, "the bays' servers are one user"


def test_two_bays_with_different_requirements_do_not_disturb_each_other(
    own_house: House, make_own: Callable[..., Path]
):
    path = make_own("tiny", "requiring", REQUIRING, **{"requirements.txt": "thing==1\n"})
    (path / "wheels").mkdir()
    for version in ("1", "2"):
        wheel(path / "wheels", version)
    git(path, "add", "-A")
    git(path, "commit", "-q", "-m", "Wheels")
    own_house.json("new", "one", cwd=path)
    own_house.devbay("new", "two", "--no-boot", cwd=path)
    (path / ".devbay/bays/two/requirements.txt").write_text("thing==2\n")
    info = own_house.json("up", "two", cwd=path, code=None)
    if info["pending_approvals"]:
        own_house.approve(path)
        own_house.devbay("up", "two", cwd=path)
    assert [lines(own_house, path, bay, "version") for bay in ("one", "two")] == [["1"], ["2"]]
    for bay in ("one", "two"):
        own_house.devbay("rm", bay, "--force", cwd=path)


def wheel(folder: Path, version: str) -> None:
    """A package that says its version."""
    name = f"thing-{version}"
    with zipfile.ZipFile(folder / f"{name}-py3-none-any.whl", "w") as archive:
        archive.writestr("thing.py", f"VERSION = {version}\n")
        archive.writestr(
            f"{name}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: thing\nVersion: {version}\n"
        )
        archive.writestr(
            f"{name}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{name}.dist-info/RECORD", "")


REFUSED = {
    "a server that nothing stands for": ("image: 'mongo:7'", "mongo:7"),
    "an image that nobody knows": ("image: 'example.org/team/app:1'", "example.org/team/app:1"),
    "an image to be built": ("build: .", "Dockerfile"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_image_that_is_not_met_is_refused_naming_both_ways_out(
    house: House, make: Callable[..., Path], case: str
):
    image, word = REFUSED[case]
    text = TINY.replace(
        "services:\n", f"services:\n  odd: {{{image}, start: [sleep, '9'], health: {{process: true}}}}\n"
    )
    text = text.replace("    port: 8080\n", "    port: 8080\n    primary: true\n")
    path = make("tiny", case.replace(" ", "-"), text, Dockerfile="FROM scratch\n")
    info: dict[str, Any] = house.json("new", "one", cwd=path, code=1)
    states = {each["name"]: each for each in info["services"]}
    assert states["web"]["health"] == "healthy", info
    assert states["odd"]["state"] == "failed"
    assert word in states["odd"]["reason"]
    assert "start a container engine" in states["odd"]["reason"], "one way out"
    assert "image:" in states["odd"]["reason"] or " devbay.yaml" in states["odd"]["reason"], "the other"
    house.devbay("rm", "one", cwd=path)


def test_another_version_than_the_images_is_said(house: House, make: Callable[..., Path]):
    path = make("tiny", "versions", TINY.replace("python:3.13-slim", "python:3.99-slim"))
    info = house.json("new", "one", cwd=path)
    assert info["state"] == "running"
    assert [text for text in info["warnings"] if text.startswith("web: ") and "python:3.99-slim" in text]
    house.devbay("rm", "one", cwd=path)

"""What devbay left on this machine: engine objects, processes, memory, worktrees, files of the tests' homes.

`python integration/leftovers.py` checks every home that tests made and did not clean up (exit 1).
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

LEDGER = Path(tempfile.gettempdir()) / f"devbay-test-homes-{os.getuid()}"
KEPT = {
    "state.db", "state.db-wal", "state.db-shm", "home-id", "logs", "daemon.lock", "config.toml", "proxy",
    "locks", "trash",
}  # fmt: skip
"""What a home may hold after `gc --all` and `daemon stop`: memory, logs, and the trash of seven days."""
_LISTS = {
    "container": ("ps", "-a", "--format", "{{.Names}}"),
    "network": ("network", "ls", "--format", "{{.Name}}"),
    "volume": ("volume", "ls", "--format", "{{.Name}}"),
    "image": ("images", "--format", "{{.ID}} {{.Repository}}:{{.Tag}}"),
}
_REMOVE = {
    "container": ("rm", "-f", "-v"),
    "network": ("network", "rm"),
    "volume": ("volume", "rm", "-f"),
    "image": ("rmi", "-f"),
}


def remember(home: str, root: Path) -> None:
    """Note a home before anything is made in it."""
    LEDGER.mkdir(mode=0o700, exist_ok=True)
    (LEDGER / home).write_text(str(root))


def forget(home: str) -> None:
    (LEDGER / home).unlink(missing_ok=True)


@functools.lru_cache(maxsize=1)
def has_engine() -> bool:
    """Whether an engine answers this user at first: where none does, nothing can be left on one."""
    found = shutil.which("docker")
    return found is not None and not subprocess.run([found, "version"], capture_output=True).returncode


def kept(home: str, bay: str = "") -> list[tuple[int, str, str]]:
    """(process id, service or run, start time) of every process that devbay keeps on this machine."""
    mark, found = f"DEVBAY_KEPT={home}/{bay}".encode(), []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, IndexError):
            for word in (entry / "environ").read_bytes().split(b"\0") if entry.name.isdigit() else ():
                if word.startswith(mark):
                    started = (entry / "stat").read_text().rpartition(")")[2].split()[19]
                    found.append((int(entry.name), os.fsdecode(word).rpartition("/")[2], started))
    return found


def host_objects(home: str, root: Path, bay: str = "") -> list[str]:
    """`<kind> <name>` of what bays have on this machine itself: processes, folders, groups."""
    found = [f"process {pid} {name}" for pid, name, _ in kept(home, bay) if alive(pid)]
    for place in (Path("/var/lib/devbay") / home[:8], root / "home/host"):
        bays = place / "bays"
        found += [f"file {each}" for each in (bays.iterdir() if bays.is_dir() else ()) if bay in each.name]
    return found


def in_the_kernel() -> set[str]:
    """`<kind> <name>` of what outlives processes and is used by none: shared memory, semaphores, groups."""
    found = set()
    for kind, users in (("shm", 6), ("sem", None), ("msg", 5)):  # the column that counts users: proc(5)
        table = Path("/proc/sysvipc") / kind
        for line in table.read_text().splitlines()[1:] if table.exists() else ():
            words = line.split()
            if users is None or words[users] == "0":
                found.add(f"{kind} {words[1]}")
    files = {str(path) for path in Path("/dev/shm").glob("*")}
    found |= {f"file {path}" for path in (files - _mapped() if files else ())}
    for folder, _, _ in os.walk("/sys/fs/cgroup"):  # groups of other tests come and go meanwhile
        if "/devbay-" in folder:
            with contextlib.suppress(OSError):
                if not (Path(folder) / "cgroup.procs").read_text():
                    found.add(f"group {folder}")
    return found


def settled(look: Callable[[], Iterable[str]], patience_s: float = 3.0) -> list[str]:
    """What is still found after a moment, which something that was ended needs to be gone."""
    deadline = time.monotonic() + patience_s
    while (found := sorted(look())) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def _mapped() -> set[str]:
    """Files that processes have in their memory."""
    found = set()
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit():
                found |= {line.split(maxsplit=5)[-1] for line in (entry / "maps").read_text().splitlines()}
    return found


def engine_objects(home: str, *, label: str = "") -> list[str]:
    """`<kind> <name>` of everything on the engine with this home's label (and a further one)."""
    if not has_engine():
        return []
    filters = [f"label=dev.devbay.home={home}", *([f"label={label}"] if label else [])]
    words = [word for each in filters for word in ("--filter", each)]
    found = []
    for kind, listing in _LISTS.items():
        done = subprocess.run(["docker", *listing, *words], capture_output=True, text=True, timeout=60)
        if done.returncode:
            raise SystemExit(f"docker {listing[0]} failed: {done.stderr.strip()}; start one: make engine")
        found += [f"{kind} {line}" for line in done.stdout.splitlines()]
    return found


def of_home(home: str, root: Path, repositories: Iterable[Path] = ()) -> list[str]:
    """Everything left of a home whose bays were destroyed, that was collected and whose daemon stopped."""
    left = engine_objects(home) + host_objects(home, root)
    place = Path("/var/lib/devbay") / home[:8]
    left += [f"file {path}" for path in (place.rglob("*") if place.is_dir() else ())]
    left += settled(lambda: (f"process {pid} {words}" for pid, words in processes(root) if alive(pid)))
    folder = root / "home"
    if folder.is_dir():
        left += [
            f"file {path}" for path in sorted(folder.iterdir()) if path.name not in KEPT and not _empty(path)
        ]
    runtime = root / "run"
    left += [
        f"file {path}" for path in sorted(runtime.rglob("*")) if not path.is_dir() and path.suffix != ".lock"
    ]
    for repository in repositories:
        left += _of_repository(repository)
    return left


def _empty(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())


def processes(root: Path) -> list[tuple[int, str]]:
    """Processes that name the house's folder in their command line or environment (devbayd, Caddy)."""
    needle = os.fsencode(root)
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            argv, environment = (entry / "cmdline").read_bytes(), (entry / "environ").read_bytes()
            if needle in argv or b"DEVBAY_HOME=" + needle in environment:
                found.append((int(entry.name), argv.replace(b"\0", b" ").decode("utf-8", "replace")))
    return found


def alive(pid: int) -> bool:
    """Whether the process exists and is more than a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (OSError, IndexError):
        return False


def sweep(home: str, root: Path) -> None:
    """Kill and remove what is left, so that it does not pile up."""
    for pid, _ in processes(root):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for pid, _, _ in kept(home):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    shutil.rmtree(Path("/var/lib/devbay") / home[:8], ignore_errors=True)
    for text in engine_objects(home):
        kind, name = text.split()[:2]
        subprocess.run(["docker", *_REMOVE[kind], name], capture_output=True, timeout=60)


def _of_repository(repository: Path) -> list[str]:
    if not (repository / ".git").exists():
        return []
    listed = subprocess.run(
        ["git", "-C", str(repository), "worktree", "list", "--porcelain"], capture_output=True, text=True
    ).stdout
    trees = [line.removeprefix("worktree ") for line in listed.splitlines() if line.startswith("worktree ")]
    bays = repository / ".devbay" / "bays"
    left = [f"worktree {tree}" for tree in trees if Path(tree).is_relative_to(repository / ".devbay")]
    return left + [f"file {path}" for path in (bays.iterdir() if bays.is_dir() else ())]


def main() -> int:
    if not LEDGER.is_dir():
        return 0
    code = 0
    for entry in sorted(LEDGER.iterdir()):
        root = Path(entry.read_text())
        left = of_home(entry.name, root)
        sweep(entry.name, root)
        shutil.rmtree(root, ignore_errors=True)
        entry.unlink()
        if left:
            code = 1
            print(f"left by the tests' home {entry.name}:", *left, sep="\n  ", file=sys.stderr)
    return code


if __name__ == "__main__":
    raise SystemExit(main())

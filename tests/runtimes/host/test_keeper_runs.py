"""Finite commands kept by real keepers: their output, their limits, and nothing left of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from devbay.errors import DevbayError
from devbay.jobs import Job
from devbay.runtimes.base import Exit
from devbay.runtimes.host import keeperlink, tree
from tests.runtimes.host.conftest import Kept, eventually


def run(kept: Kept, script: str, *, timeout_s: float = 60, job: Job | None = None) -> tuple[Exit, bytes]:
    output = bytearray()
    found = kept.keepers.run(kept.launch(script, name="run-1"), output.extend, timeout_s, job or Job())
    return found, bytes(output)


def marked(kept: Kept) -> list[tree.Process]:
    return kept.marked(f"{kept.home}/{kept.bay}/run-1")


def test_output_comes_merged_in_order_with_the_code(kept: Kept) -> None:
    found, output = run(kept, "echo out; echo err >&2; printf last; exit 3")
    assert (found, output) == (Exit(3), b"out\nerr\nlast")


def test_output_comes_while_the_command_runs(kept: Kept, tmp_path: Path) -> None:
    fifo = tmp_path / "go"
    os.mkfifo(fifo)
    seen: list[bytes] = []

    def sink(data: bytes) -> None:
        seen.append(data)
        if b"ready" in data:
            fifo.write_text("go\n")

    found = kept.keepers.run(
        kept.launch(f"echo ready; read x < {fifo}; echo got $x", name="run-1"), sink, 60, Job()
    )
    assert found.code == 0 and b"".join(seen) == b"ready\ngot go\n"


def test_a_signal_is_told_as_128_and_its_number(kept: Kept) -> None:
    assert run(kept, "kill -SEGV $$")[0] == Exit(128 + signal.SIGSEGV)


def test_after_its_time_everything_is_killed(kept: Kept) -> None:
    found, output = run(kept, "echo begin; setsid sleep 60 & trap '' TERM; sleep 60", timeout_s=0.3)
    assert found == Exit(137, timed_out=True) and output == b"begin\n"
    assert marked(kept) == []


def test_what_it_leaves_behind_does_not_keep_the_run_from_ending(kept: Kept) -> None:
    found, _ = run(kept, "setsid sleep 60 & sleep 61 & exit 0")
    assert found == Exit(0) and marked(kept) == []


def test_a_command_that_closes_its_output_is_waited_for(kept: Kept) -> None:
    found, output = run(kept, "echo one; exec >&- 2>&-; sleep 0.1; exit 7")
    assert (found, output) == (Exit(7), b"one\n")


def test_cancelling_kills_everything_and_says_so(kept: Kept) -> None:
    job = Job()
    output = bytearray()

    def sink(data: bytes) -> None:
        output.extend(data)
        job.cancel()

    launch = kept.launch("echo begin; trap '' TERM; sleep 60 & sleep 61; echo never", name="run-1")
    found = kept.keepers.run(launch, sink, 60, job)
    assert found == Exit(137, cancelled=True) and output == b"begin\n" and marked(kept) == []


def test_a_job_cancelled_before_starts_nothing_that_stays(kept: Kept) -> None:
    job = Job()
    job.cancel()
    found, _ = run(kept, "sleep 60", job=job)
    assert found.cancelled and marked(kept) == []


def test_an_error_of_the_sink_ends_the_run(kept: Kept) -> None:
    def sink(data: bytes) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        kept.keepers.run(kept.launch("echo x; sleep 60", name="run-1"), sink, 60, Job())
    assert marked(kept) == []


def test_the_death_of_the_daemon_ends_the_run(kept: Kept) -> None:
    child = os.fork()
    if child == 0:
        run(kept, "echo $$; sleep 60 & setsid sleep 61")
    eventually(lambda: len(marked(kept)) >= 3)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    eventually(lambda: marked(kept) == [])


def test_a_killed_keeper_ends_the_run_with_an_error_and_no_strays(kept: Kept) -> None:
    def sink(data: bytes) -> None:
        (keeper,) = tree.marked(keeperlink.KEEPER_MARK, f"{kept.home}/{kept.bay}/run-1")
        os.kill(keeper.pid, signal.SIGKILL)

    launch = kept.launch("setsid sh -c 'echo up; sleep 61' & sleep 60", name="run-1")
    with pytest.raises(DevbayError) as caught:
        kept.keepers.run(launch, sink, 60, Job())
    assert caught.value.code == "keeper_failed" and marked(kept) == []


def test_a_missing_program_is_named(kept: Kept) -> None:
    with pytest.raises(DevbayError) as caught:
        kept.keepers.run(kept.launch("", argv=("no-such-program",), name="run-1"), print, 60, Job())
    assert caught.value.code == "not_executable"


def test_much_output_is_passed_on_whole(kept: Kept) -> None:
    found, output = run(kept, "head -c 20000000 /dev/zero")
    assert found == Exit(0) and len(output) == 20_000_000


def test_a_large_environment_and_many_arguments_arrive(kept: Kept) -> None:
    launch = kept.launch("", argv=("sh", "-c", "echo ${#BIG} $#", "sh", *["word"] * 5000), name="run-1")
    launch.env["BIG"] = "x" * 120_000  # type: ignore[index]
    output = bytearray()
    assert kept.keepers.run(launch, output.extend, 60, Job()).code == 0
    assert output == b"120000 5000\n"


def test_bytes_that_are_no_text_arrive_as_they_are(kept: Kept) -> None:
    word = os.fsdecode(b"caf\xe9 \xff")
    output = bytearray()
    launch = kept.launch("", argv=("printf", "%s", word), name="run-1")
    kept.keepers.run(launch, output.extend, 60, Job())
    assert bytes(output) == b"caf\xe9 \xff"


def test_memory_beyond_the_limit_is_told_apart(kept: Kept) -> None:
    from devbay.manifest.models import Limits
    from devbay.runtimes.host import cgroups

    if cgroups.kind() == "setrlimit":
        pytest.skip("no control group can be made here")
    launch = kept.launch(
        "", argv=(sys.executable, "-c", "x = b'x' * 200_000_000"), name="run-1", limits=Limits(memory="64m")
    )
    found = kept.keepers.run(launch, print, 60, Job())
    assert found == Exit(137, oom_killed=True)


def test_no_file_handle_of_the_daemon_reaches_the_command(kept: Kept) -> None:
    _, output = run(kept, "ls /proc/self/fd")
    assert set(output.split()) <= {b"0", b"1", b"2", b"3"}  # the last is ls's own


def test_runs_at_once_do_not_disturb_each_other(kept: Kept) -> None:
    results: list[tuple[int, bytes]] = []

    def one(number: int) -> None:
        output = bytearray()
        launch = kept.launch(f"sleep 0.05; echo {number}; exit {number}", name=f"run-{number}")
        results.append((kept.keepers.run(launch, output.extend, 60, Job()).code, bytes(output)))

    threads = [threading.Thread(target=one, args=(number,)) for number in range(2, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [(number, b"%d\n" % number) for number in range(2, 6)]


def test_no_file_handle_left_is_said_as_such(kept: Kept) -> None:
    script = (
        "import resource, os, sys, pathlib\n"
        "from devbay.runtimes.host.keepers import Keepers\n"
        "from devbay.runtimes.host.place import Place\n"
        "from devbay.runtimes.host.launch import Launch\n"
        "from devbay.runtimes.host import cgroups\n"
        "from devbay.errors import DevbayError\n"
        "from devbay.jobs import Job\n"
        "keepers = Keepers(Place(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[1])), 'h')\n"
        "cgroups.parent()\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))\n"
        "held = []\n"
        "try:\n"
        "    while True: held.append(os.open('/', os.O_RDONLY))\n"
        "except OSError: os.close(held.pop())\n"
        "try: keepers.run(Launch('h/b/run-1', ('true',), {}, '/'), print, 5, Job())\n"
        "except DevbayError as error: print(error.code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(kept.place.root)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout == "machine_full\n", done.stderr

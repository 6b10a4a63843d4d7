"""Processes as they are found, proven and ended."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from devbay.runtimes.host import tree


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"], env={"PATH": os.environ["PATH"], "KIND": "a/b/c"}) as one:
        yield one
        one.kill()


def test_a_process_is_seen_with_its_parent_and_start(child: subprocess.Popen[bytes]) -> None:
    found = tree.process(child.pid)
    assert found is not None and found.parent == os.getpid()
    assert tree.processes()[child.pid].started == found.started
    assert child.pid in {one.pid for one in tree.descendants([os.getpid()], tree.processes())}


def test_a_command_with_parentheses_and_spaces_is_read_right() -> None:
    stat = b"7 (a) R 1 (x) S 5 6 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4242 0 0"
    found = tree._parse(7, stat)
    assert (found.command, found.parent, found.group, found.session) == ("a) R 1 (x", 5, 6, 7)
    assert (found.state, found.started) == ("S", 4242)


def test_only_the_exact_mark_counts(child: subprocess.Popen[bytes]) -> None:
    assert [one.pid for one in tree.marked("KIND", "a/b/c")] == [child.pid]
    for name, value in ("KIND", "a/b"), ("IND", "a/b/c"), ("KIND", "a/b/cd"):
        assert tree.marked(name, value) == []


def test_a_process_of_another_start_is_never_signalled(child: subprocess.Popen[bytes]) -> None:
    found = tree.process(child.pid)
    assert found is not None
    found.started -= 1
    assert tree.send(found, signal.SIGKILL) is False
    assert child.poll() is None
    found.started += 1
    assert tree.send(found, signal.SIGKILL) is True
    assert child.wait() == -signal.SIGKILL
    assert tree.send(found, signal.SIGKILL) is False


def test_ending_reaches_what_is_started_meanwhile() -> None:
    script = "trap '' TERM; while :; do sleep 60 & sleep 0.01; done"
    with subprocess.Popen(["sh", "-c", script], env={"PATH": os.environ["PATH"], "KIND": "x/y/z"}):
        ended, foreign = tree.end(lambda: tree.marked("KIND", "x/y/z"), patience_s=20)
    assert ended and foreign == [] and tree.marked("KIND", "x/y/z") == []


def test_what_does_not_end_is_named_after_the_patience() -> None:
    here = tree.process(os.getpid())
    assert here is not None
    ghost = tree.Process(here.pid, 0, 0, 0, here.started - 1, "S", "ghost")
    with pytest.raises(tree.Survivors) as caught:
        tree.end(lambda: [ghost], patience_s=0)
    assert caught.value.pids == [ghost.pid]


def test_listeners_are_told_with_their_addresses() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as four,
        socket.create_server(("::1", 0), family=socket.AF_INET6) as six,
    ):
        ports = four.getsockname()[1], six.getsockname()[1]
        own = tree.listening([os.getpid()])
        assert ("127.0.0.1", ports[0]) in own and ("::1", ports[1]) in own
        assert tree.listeners(ports[0]) == frozenset({os.getpid()})
        assert tree.listening([]) == []
    assert tree.listeners(ports[0]) == frozenset()


def test_memory_counts_what_a_process_uses() -> None:
    script = "x = bytearray(30_000_000); x[::4096] = b'x' * len(x[::4096]); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as one:
        assert one.stdout and one.stdout.readline()
        assert 25_000_000 < tree.memory_bytes([one.pid]) < 90_000_000
        one.kill()
    assert tree.memory_bytes([one.pid]) == 0

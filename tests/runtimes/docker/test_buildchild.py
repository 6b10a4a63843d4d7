"""The child on a stand-in client: what it calls, what comes back, and what ends it."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import pytest

from devbay.runtimes.docker.buildchild import Request, child_argv

SAYS = """#!/bin/sh
for part in "$@"; do printf '%s\\n' "$part"; done
printf 'on stderr\\303\\251\\n' >&2
exit 7
"""
TALKS = """#!/bin/sh
for n in $(seq 500); do echo "out $n"; echo "err $n" >&2; done
"""
WAITS = """#!/bin/sh
echo $$
exec sleep 60
"""


@pytest.fixture
def start(tmp_path):
    """`start(script, **request)`: a child that was told to build with that script as client."""
    started = []

    def start(script, env=(), **more):
        client = tmp_path / "my docker"
        client.write_text(script)
        client.chmod(0o700)
        build = {"context_path": "/w w", "builder": "default", "tags": ["t:1"], "labels": {"a": "b c"}}
        request = Request(str(client), {"host": "unix:///e.sock"}, {**build, **more.pop("build", {})}, **more)
        process = subprocess.Popen(
            child_argv(),
            env={"PATH": "/usr/bin:/bin", **dict(env)},
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        started.append(process)
        process.stdin.write(request.to_line().encode())
        process.stdin.flush()
        return process

    yield start
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        for pipe in (process.stdin, process.stdout):
            pipe.close()
        process.wait()


def lines(process):
    return process.stdout.read().decode().splitlines()


def is_running(pid):
    return subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True).stdout[:1] not in (
        b"",
        b"Z",
    )


def test_the_client_gets_every_option_and_its_output_and_exit_code_come_back(start):
    process = start(SAYS, build={"target": "dev", "build_args": {"A": "1 2"}, "platforms": ["linux/arm64"]})
    found = lines(process)
    assert found[:4] == ["--host", "unix:///e.sock", "buildx", "build"]
    for option in (["--progress", "plain"], ["--build-arg", "A=1 2"], ["--label", "a=b c"], ["--tag", "t:1"]):
        assert found[found.index(option[1]) - 1 :][:2] == option
    assert found[-2:] == ["/w w", "on stderré"]
    assert process.wait() == 7


def test_what_the_client_prints_comes_in_its_order_whichever_stream_it_uses(start):
    assert lines(start(TALKS)) == [f"{stream} {n}" for n in range(1, 501) for stream in ("out", "err")]


def test_build_arguments_by_name_come_without_a_value(start):
    found = lines(start(SAYS, args_by_name=("HTTP_PROXY", "NO_PROXY")))
    assert found[-5:-1] == ["--build-arg", "HTTP_PROXY", "--build-arg", "NO_PROXY"]


def test_the_callers_python_settings_do_not_reach_the_child(start, tmp_path):
    (tmp_path / "json.py").write_text("raise SystemExit('taken')")
    process = start(SAYS, env={"PYTHONPATH": str(tmp_path), "PYTHONHOME": "/nowhere"})
    assert "taken" not in "\n".join(lines(process))
    assert process.wait() == 7


def test_the_groups_signal_ends_the_client_and_then_the_child(start):
    process = start(WAITS)
    client = int(process.stdout.readline())
    os.killpg(process.pid, signal.SIGTERM)
    assert process.wait(10) == 128 + signal.SIGTERM
    assert not is_running(client)


def test_a_child_whose_parent_is_gone_ends_its_client(start):
    process = start(WAITS)
    client = int(process.stdout.readline())
    process.stdin.close()
    process.wait(10)
    deadline = time.monotonic() + 5
    while is_running(client) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_running(client)

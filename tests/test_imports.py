"""Importing: a fresh process whose threads all begin at once sees whole modules only."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys, threading
from devbay.imports import load, load_engine
errors = []
def one(number):
    try:
        load_engine() if number % 2 else load("devbay.manifest")
        from devbay.runtimes.docker.runtime import DockerRuntime
        from devbay.manifest import parse
        parse("version: 1")
        from git.cmd import Git
    except BaseException as error:
        errors.append(repr(error))
sys.setswitchinterval(1e-5)
first = [threading.Thread(target=load_engine) for _ in range(8)]
for thread in first: thread.start()
for thread in first: thread.join()
threads = [threading.Thread(target=one, args=(n,)) for n in range(16)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(errors or "ok")
"""


def test_threads_that_need_the_engine_at_once_get_whole_modules() -> None:
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120)
        assert done.stdout.strip() == "ok", done.stdout + done.stderr

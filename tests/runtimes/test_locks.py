import subprocess
import sys
import threading
import time

import pytest

from devbay.errors import Cancelled
from devbay.jobs import Job
from devbay.runtimes.locks import KeyedLocks, file_lock, remove_lock, try_file_lock

HOLDER = """
import sys, time
from pathlib import Path
from devbay.jobs import Job
from devbay.runtimes.locks import file_lock
with file_lock(Path(sys.argv[1]), "k", Job()):
    print("held", flush=True)
    time.sleep(60)
"""


def together(hold, count=4):
    """How many were inside the lock at once, at most."""
    inside, most = [], []

    def enter():
        with hold():
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.02)
            inside.pop()

    threads = [threading.Thread(target=enter) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(most) == count
    return max(most)


def test_one_thread_at_a_time_holds_a_key():
    locks = KeyedLocks()
    assert together(lambda: locks.hold("k", Job())) == 1


def test_different_keys_do_not_wait_and_nothing_is_kept():
    locks = KeyedLocks()
    with locks.hold("a", Job()), locks.hold("b", Job()):
        pass
    assert locks._locks == {}


def test_one_thread_at_a_time_holds_a_file(tmp_path):
    assert together(lambda: file_lock(tmp_path, "k", Job())) == 1


@pytest.mark.parametrize("kind", ["threads", "file"])
def test_a_cancelled_waiter_leaves(kind, tmp_path):
    locks, job = KeyedLocks(), Job()
    hold = (lambda j: locks.hold("k", j)) if kind == "threads" else (lambda j: file_lock(tmp_path, "k", j))
    threading.Timer(0.05, job.cancel).start()
    with hold(Job()):
        started = time.monotonic()
        with pytest.raises(Cancelled), hold(job):
            pass
        assert time.monotonic() - started < 10


def test_a_killed_process_gives_its_lock_up(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout.readline() == "held\n"
        with try_file_lock(tmp_path, "k") as held:
            assert not held
        holder.kill()
        holder.wait()
        with try_file_lock(tmp_path, "k") as held:
            assert held


def test_a_shared_file_is_held_by_many_and_then_by_nobody_alone(tmp_path):
    assert together(lambda: file_lock(tmp_path, "k", Job(), shared=True)) > 1
    with file_lock(tmp_path, "k", Job(), shared=True), try_file_lock(tmp_path, "k") as alone:
        assert not alone


def test_who_waited_for_a_removed_lock_takes_the_new_one(tmp_path):
    inside = []

    def enter():
        with file_lock(tmp_path, "k", Job()), try_file_lock(tmp_path, "k") as second:
            inside.append(second)

    with file_lock(tmp_path, "k", Job()):
        waiter = threading.Thread(target=enter)
        waiter.start()
        time.sleep(0.1)
        remove_lock(tmp_path, "k")
        with file_lock(tmp_path, "k", Job()):
            time.sleep(0.1)
            assert inside == []
    waiter.join()
    assert inside == [False]

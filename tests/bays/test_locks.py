"""One lock per bay: who waits for whom, and who is refused."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from devbay.bays.locks import BayLocks
from devbay.errors import Cancelled, DevbayError
from devbay.jobs import Job


def in_thread(function: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    return thread


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_two_changes_of_one_bay_exclude_each_other_and_those_of_two_bays_do_not() -> None:
    locks, order = BayLocks(), []
    release = threading.Event()

    def first() -> None:
        with locks.change("one", "up", Job()):
            order.append("first")
            release.wait(5)
            order.append("first over")

    def second() -> None:
        with locks.change("one", "cool", Job()):
            order.append("second")

    a = in_thread(first)
    eventually(lambda: order == ["first"])
    b = in_thread(second)
    with locks.change("two", "up", Job()):
        order.append("other bay")
    release.set()
    a.join(5)
    b.join(5)
    assert order == ["first", "other bay", "first over", "second"]


def test_waiting_for_a_change_ends_when_the_waiter_is_cancelled() -> None:
    locks, job, ended = BayLocks(), Job(), threading.Event()

    def wait() -> None:
        with pytest.raises(Cancelled), locks.change("bay", "up", job):
            pytest.fail("got the lock")
        ended.set()

    with locks.change("bay", "destroy", Job()):
        thread = in_thread(wait)
        time.sleep(0.05)
        job.cancel()
        thread.join(5)
    assert ended.is_set()


def test_a_disturbing_verb_is_refused_while_a_run_is_active_and_names_it() -> None:
    locks = BayLocks()
    with locks.run("bay", "r1", Job()):
        with pytest.raises(DevbayError) as caught:
            locks.refuse_during_runs("bay", "cool")
        assert caught.value.code == "busy"
        assert caught.value.data["runs"] == ["r1"]
    locks.refuse_during_runs("bay", "cool")


def test_a_run_does_not_begin_while_the_bay_is_being_destroyed_but_does_while_it_is_brought_up() -> None:
    locks, began = BayLocks(), threading.Event()

    def run() -> None:
        with locks.run("bay", "r1", Job()):
            began.set()

    with locks.change("bay", "destroy", Job()):
        thread = in_thread(run)
        assert not began.wait(0.1)
    thread.join(5)
    assert began.is_set()
    with locks.change("bay", "up", Job()), locks.run("bay", "r2", Job()):
        assert locks.active_runs("bay") == ["r2"]


def test_replacing_waits_for_runs_that_use_services_and_not_for_those_that_only_wait() -> None:
    locks = BayLocks()
    with locks.run("bay", "waiting", Job()):
        locks.wait_until_unused("bay", Job())
        with locks.run("bay", "using", Job()):
            locks.begin_use("bay", "using")
            assert locks.in_use("bay") == ["using"]
        locks.wait_until_unused("bay", Job())

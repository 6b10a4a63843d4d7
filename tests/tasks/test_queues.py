"""Queues: runs with the same report go one after another, in the order they came."""

from __future__ import annotations

import threading
import time

import pytest

from devbay.errors import Cancelled
from devbay.jobs import Job
from devbay.tasks.queues import Queues

KEY = ("bay", "reports/unit.xml")


def test_the_second_waits_for_the_first_and_hears_its_position() -> None:
    queues, order, positions = Queues(), [], []
    entered, release = threading.Event(), threading.Event()

    def first() -> None:
        with queues.turn(KEY, "r1", Job(), lambda n: None):
            entered.set()
            release.wait(5)
            order.append("r1")

    def second() -> None:
        with queues.turn(KEY, "r2", Job(), positions.append):
            order.append("r2")

    threads = [threading.Thread(target=first)]
    threads[0].start()
    entered.wait(5)
    threads.append(threading.Thread(target=second))
    threads[1].start()
    deadline = time.monotonic() + 5
    while positions != [1] and time.monotonic() < deadline:
        time.sleep(0.005)
    release.set()
    for thread in threads:
        thread.join(5)
    assert order == ["r1", "r2"]
    assert positions == [1, 0]


def test_other_reports_and_other_bays_do_not_wait() -> None:
    queues = Queues()
    with (
        queues.turn(KEY, "r1", Job(), lambda n: None),
        queues.turn(("bay", "reports/e2e.xml"), "r2", Job(), lambda n: None),
        queues.turn(("other", "reports/unit.xml"), "r3", Job(), lambda n: None),
    ):
        pass


def test_one_that_is_cancelled_leaves_the_queue() -> None:
    queues, job = Queues(), Job()
    with queues.turn(KEY, "r1", Job(), lambda n: None):
        threading.Timer(0.05, job.cancel).start()
        with pytest.raises(Cancelled), queues.turn(KEY, "r2", job, lambda n: None):
            pytest.fail("got its turn")
    with queues.turn(KEY, "r3", Job(), lambda n: None):
        pass

"""Background work: waited for, left going, cancelled by the one who alone wants it."""

from __future__ import annotations

import threading
import time

import pytest

from devbay.errors import Cancelled, DevbayError
from devbay.jobs import Job
from devbay.works import Work


def test_a_request_that_stops_waiting_leaves_the_work_going() -> None:
    release = threading.Event()
    work = Work("slow", lambda job: release.wait(5)).start()
    assert work.wait(0.02, Job()) is False
    release.set()
    assert work.wait(5, Job()) is True
    assert work.result() is True


def test_a_request_that_is_cancelled_cancels_the_work_it_alone_wants_and_waits_for_its_end() -> None:
    ended = threading.Event()

    def body(job: Job) -> None:
        try:
            job.sleep(30)
        finally:
            time.sleep(0.05)
            ended.set()

    work, request = Work("slow", body).start(), Job()
    threading.Timer(0.05, request.cancel).start()
    with pytest.raises(Cancelled):
        work.wait_or_cancel(None, request)
    assert ended.is_set()


def test_what_the_work_raised_is_raised_to_whoever_asks_for_its_result() -> None:
    def body(job: Job) -> None:
        raise DevbayError("broken", "no")

    work = Work("bad", body).start()
    assert work.wait(5, Job())
    for _ in range(2):
        with pytest.raises(DevbayError, match="no"):
            work.result()


def test_progress_reaches_everyone_who_waits() -> None:
    said: list[str] = []
    release = threading.Event()

    def body(job: Job) -> None:
        release.wait(5)
        job.progress("half", 0.5)

    work = Work("told", body).start()
    threading.Timer(0.05, release.set).start()
    work.wait(5, Job(lambda message, fraction: said.append(message)))
    assert said == ["half"]
    assert work.step == "half"

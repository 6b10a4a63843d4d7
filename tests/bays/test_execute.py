"""The executor: concurrency, failure and cancellation of a plan's steps."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from devbay.bays.execute import execute
from devbay.bays.plan import Step
from devbay.errors import Cancelled, DevbayError
from devbay.jobs import Job


def handlers(function: Any) -> Any:
    return dict.fromkeys(("image", "create", "start", "probe"), function)


def test_steps_that_do_not_wait_for_each_other_run_at_once() -> None:
    barrier = threading.Barrier(3, timeout=5)
    steps = [Step("image", name) for name in "abc"]
    assert execute(steps, handlers(lambda step: barrier.wait()), Job()).ok


def test_a_step_starts_only_when_all_it_waits_for_is_done() -> None:
    order: list[str] = []
    steps = [
        Step("start", "a", frozenset({"create:a", "image:b"})),
        Step("create", "a"),
        Step("image", "b"),
    ]
    execute(steps, handlers(lambda step: order.append(step.id)), Job())
    assert order[-1] == "start:a"
    assert len(order) == 3


def test_a_failing_step_skips_what_needs_it_and_nothing_else() -> None:
    def handle(step: Step) -> None:
        if step.id == "create:a":
            raise DevbayError("broken", "no such thing")

    steps = [
        Step("create", "a"),
        Step("start", "a", frozenset({"create:a"})),
        Step("probe", "a", frozenset({"start:a"})),
        Step("create", "b"),
        Step("start", "b", frozenset({"create:b"})),
    ]
    outcome = execute(steps, handlers(handle), Job())
    assert set(outcome.failed) == {"create:a"}
    assert set(outcome.skipped) == {"start:a", "probe:a"}
    assert set(outcome.done) == {"create:b", "start:b"}
    assert not outcome.ok
    assert "a" in outcome.skipped["probe:a"]


def test_a_cancelled_job_starts_no_further_step_and_waits_for_those_that_run() -> None:
    job, ended = Job(), threading.Event()

    def handle(step: Step) -> None:
        if step.service == "a":
            job.cancel()
            time.sleep(0.05)
            ended.set()
        else:
            pytest.fail("started after the cancellation")

    with pytest.raises(Cancelled):
        execute([Step("create", "a"), Step("start", "b", frozenset({"create:a"}))], handlers(handle), job)
    assert ended.is_set()


def test_a_defect_in_a_handler_is_not_swallowed() -> None:
    def handle(step: Step) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        execute([Step("create", "a")], handlers(handle), Job())


def test_progress_names_the_step_and_how_much_is_done() -> None:
    said: list[tuple[str, float | None]] = []
    job = Job(lambda message, fraction: said.append((message, fraction)))
    execute(
        [Step("create", "a"), Step("start", "a", frozenset({"create:a"}))], handlers(lambda step: None), job
    )
    assert said == [("creating a", 0.0), ("starting a", 0.5)]

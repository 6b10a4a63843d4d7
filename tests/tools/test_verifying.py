"""One verification at a time of the same manifest at the same commit: who begins, waits for and ends it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from devbay.bays.verbs import Caller
from devbay.detect.answers import Verification
from devbay.detect.verify import stamped
from devbay.errors import Cancelled
from devbay.jobs import Job
from devbay.tools import attempt
from devbay.tools.verifying import Verifications, Verified

TEXT = "version: 1\nproject: shop\n"


@dataclass
class Begun:
    """What stands in for bays: attempts that end when they are let go, and what became of them."""

    go: threading.Event
    texts: list[str]
    ended: list[str]


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> Iterator[Begun]:
    found = Begun(threading.Event(), [], [])

    class Attempt:
        def __init__(self, core: Any, caller: Caller, repository: Any, text: str) -> None:
            self.text = text

        def perform(self, job: Job) -> Verified:
            found.texts.append(self.text)
            try:
                while not found.go.is_set():
                    job.sleep(0.01)
            except Cancelled:
                found.ended.append("cancelled")
                raise
            found.ended.append("over")
            return Verified(self.text, Verification(outcome="verified"))

    monkeypatch.setattr(attempt, "Attempt", Attempt)
    yield found
    found.go.set()


def checkout(commit: str = "c1") -> Any:
    return SimpleNamespace(id="r1", toplevel=Path("/shop"), head_commit=lambda: commit)


def caller(job: Job | None = None) -> Caller:
    return Caller(job or Job(), Path("/shop"), {})


def waiting(verifications: Verifications, job: Job) -> tuple[threading.Thread, list[str]]:
    """A call that waits in a thread, and how it ended."""
    ended: list[str] = []

    def wait() -> None:
        try:
            ended.append(verifications.verify(caller(job), checkout(), TEXT, wait_s=30).verification.outcome)
        except Cancelled:
            ended.append("cancelled")

    thread = threading.Thread(target=wait)
    thread.start()
    return thread, ended


def until(condition: Callable[[], object]) -> None:
    for _ in range(1000):
        if condition():
            return
        threading.Event().wait(0.005)
    raise AssertionError("waited five seconds")


def test_past_its_wait_it_goes_on_and_the_same_call_gets_its_outcome_once(begun: Begun):
    verifications = Verifications(None)
    first = verifications.verify(caller(), checkout(), TEXT, wait_s=0)
    assert first.verification.outcome == "running" and not first.ok
    assert verifications.going() == ["verify-shop"]
    begun.go.set()
    mark = stamped(TEXT, date="2026-01-01", runtime="docker", what="up")
    assert verifications.verify(caller(), checkout(), mark, wait_s=30).ok
    assert begun.texts == [TEXT]
    assert verifications.going() == []
    assert verifications.verify(caller(), checkout(), TEXT, wait_s=30).ok
    assert begun.texts == [TEXT, TEXT]


def test_another_commit_is_another_verification(begun: Begun):
    verifications = Verifications(None)
    verifications.verify(caller(), checkout("c1"), TEXT, wait_s=0)
    verifications.verify(caller(), checkout("c2"), TEXT, wait_s=0)
    until(lambda: len(begun.texts) == 2)


def test_it_ends_when_the_last_call_that_waits_is_cancelled(begun: Begun):
    verifications, one, two = Verifications(None), Job(), Job()
    (first, first_end), (second, second_end) = waiting(verifications, one), waiting(verifications, two)
    until(lambda: sum(verifications._waiting.values()) == 2)
    one.cancel()
    first.join(5)
    assert first_end == ["cancelled"] and begun.ended == []
    two.cancel()
    second.join(5)
    assert second_end == ["cancelled"] and begun.ended == ["cancelled"]
    assert verifications.going() == []

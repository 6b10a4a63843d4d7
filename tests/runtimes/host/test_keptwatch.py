"""Hearing of changes of kept services."""

from __future__ import annotations

import os
import signal
import time

from devbay.runtimes.host.keepers import Keepers
from tests.runtimes.host.conftest import Kept, eventually


def test_every_change_of_a_service_is_told_whoever_started_it(kept: Kept) -> None:
    told: list[tuple[str, str]] = []
    Keepers(kept.place, kept.home).start(kept.folder, kept.socket, kept.launch("exec sleep 60"), "c1")
    kept.keepers.watch(lambda bay, service: told.append((bay, service)))
    for change in (
        lambda: kept.keepers.pause(kept.folder, kept.socket),
        lambda: kept.keepers.resume(kept.folder, kept.socket),
        kept.stop,
    ):
        before = len(told)
        change()
        eventually(lambda before=before: len(told) > before)
    assert set(told) == {(kept.bay, "web")}


def test_a_service_started_later_and_the_death_of_its_keeper_are_told(kept: Kept) -> None:
    told: list[str] = []
    kept.keepers.watch(lambda bay, service: told.append(kept.state.state))
    kept.start("exec sleep 60")
    eventually(lambda: told == ["running"])
    os.kill(kept.state.keeper, signal.SIGKILL)
    eventually(lambda: told == ["running", "exited"])


def test_nothing_is_told_after_closing(kept: Kept) -> None:
    told: list[str] = []
    kept.keepers.watch(lambda bay, service: told.append(service))
    kept.start("exec sleep 60")
    eventually(lambda: told)
    kept.keepers.close()
    before = len(told)
    kept.stop()
    assert len(told) == before


def test_a_start_returns_after_those_who_follow_heard_of_it(kept: Kept) -> None:
    """What is told of the start makes health unknown, so it must not come after the first probe."""
    told: list[str] = []

    def slowly(bay: str, service: str) -> None:
        time.sleep(0.3)
        told.append(service)

    kept.keepers.watch(slowly)
    kept.start("exec sleep 60")
    assert told == ["web"]


def test_what_runs_when_the_watching_begins_did_not_change(kept: Kept) -> None:
    """Its health may be known by then, and would be forgotten."""
    told: list[str] = []
    kept.start("exec sleep 60")
    kept.keepers.watch(lambda bay, service: told.append(kept.state.state))
    kept.keepers.pause(kept.folder, kept.socket)
    eventually(lambda: told)
    assert told == ["paused"]

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import Any

from devbay.errors import DevbayError
from devbay.runtimes.docker import events
from devbay.runtimes.docker.events import Event, Watcher, event_of
from tests.runtimes.docker.fake_engine import FakeEngine, Handler

DIE = {
    "Type": "container",
    "Action": "die",
    "timeNano": 5,
    "Actor": {
        "ID": "c1",
        "Attributes": {"dev.devbay.bay": "b1", "dev.devbay.service": "web", "exitCode": "137", "name": "n"},
    },
}


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


class Listener:
    def __init__(self, fake: FakeEngine) -> None:
        self.events: list[Event] = []
        self.relists = 0
        self.lost: list[str] = []
        self.watcher = Watcher(fake.engine, "h1", self.heard, self.relist, lambda e: self.lost.append(e.code))

    def heard(self, event: Event) -> None:
        self.events.append(event)

    def relist(self) -> None:
        self.relists += 1


def stream_of(*documents: Any) -> Callable[[Handler], None]:
    def answer(handler: Handler) -> None:
        write = handler.chunks()
        for document in documents:
            write(json.dumps(document).encode() + b"\n")
        threading.Event().wait(20)

    return answer


def test_an_event_names_bay_service_and_exit_code() -> None:
    assert event_of(DIE) == Event("die", "c1", "b1", "web", "", 137, 5)


def test_events_are_told_after_a_first_listing(fake: FakeEngine) -> None:
    fake.answers["GET /events"] = stream_of(DIE)
    listener = Listener(fake)
    listener.watcher.start()
    wait_for(lambda: bool(listener.events))
    listener.watcher.close()
    assert listener.relists == 1 and listener.events == [event_of(DIE)] and not listener.lost
    _, query, _ = next(asked for asked in fake.asked if asked[0] == "GET /events")
    assert json.loads(query["filters"])["label"] == ["dev.devbay.home=h1"]
    assert abs(float(query["since"]) - time.time()) < 10


def test_after_a_restart_of_the_engine_everything_is_listed_again(fake: FakeEngine) -> None:
    fake.answers["GET /events"] = stream_of()
    listener = Listener(fake)
    listener.watcher.start()
    wait_for(lambda: listener.relists == 1)
    fake.stop()
    wait_for(lambda: bool(listener.lost))
    time.sleep(0.4)
    fake.answers["GET /events"] = stream_of(DIE)
    fake.start()
    wait_for(lambda: bool(listener.events))
    listener.watcher.close()
    assert listener.relists == 2 and listener.lost == ["engine_unreachable"]


def test_a_stream_that_ends_in_good_order_counts_as_lost(fake: FakeEngine) -> None:
    fake.answers["GET /events"] = lambda handler: handler.chunks()(b"")
    listener = Listener(fake)
    listener.watcher.start()
    wait_for(lambda: listener.relists >= 2)
    listener.watcher.close()
    assert listener.lost[0] == "engine_unreachable"


def test_a_listener_that_fails_does_not_end_the_watching(fake: FakeEngine, caplog: Any) -> None:
    fake.answers["GET /events"] = stream_of(DIE, DIE)
    heard = []

    def fail(event: Event) -> None:
        heard.append(event)
        raise ZeroDivisionError

    def lost(error: DevbayError) -> None:
        raise AssertionError(error)

    watcher = Watcher(fake.engine, "h1", fail, lambda: None, lost)
    watcher.start()
    wait_for(lambda: len(heard) == 2)
    watcher.close()
    assert "ZeroDivisionError" in caplog.text


def test_closing_ends_the_thread_also_while_the_engine_is_down(fake: FakeEngine) -> None:
    fake.stop()
    listener = Listener(fake)
    listener.watcher.start()
    wait_for(lambda: bool(listener.lost))
    before = time.monotonic()
    listener.watcher.close()
    assert time.monotonic() - before < 10
    assert not [t for t in threading.enumerate() if t.name == "docker-events" and t.is_alive()]
    assert events.LONGEST_WAIT_S <= 5

"""What happens to the containers of one home, told as it happens by one thread that sleeps in between."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from devbay.errors import DevbayError
from devbay.jobs import Job
from devbay.runtimes.docker.engine import Engine
from devbay.runtimes.docker.failures import unreachable

log = logging.getLogger(__name__)

ACTIONS = ("create", "start", "die", "oom", "pause", "unpause", "destroy")
FIRST_WAIT_S, LONGEST_WAIT_S = 0.1, 5.0


@dataclass(frozen=True)
class Event:
    """One thing that happened to a container.

    action: one of `ACTIONS`. exit_code: of `die`. run: the id of the task run it belongs to, if any. at_ns:
    engine's clock, nanoseconds since 1970.
    """

    action: str
    container: str
    bay: str
    service: str
    run: str = ""
    exit_code: int | None = None
    at_ns: int = 0


class Watcher:
    """Follows an engine's events for the containers labelled with `home`, from `start` to `close`.

    Both callbacks run in the watcher's thread. `on_relist` is called whenever events may have been missed:
    when the stream opens, first or again after the engine restarted. `on_lost` is called once when it breaks.
    """

    def __init__(
        self,
        engine: Engine,
        home: str,
        on_event: Callable[[Event], None],
        on_relist: Callable[[], None],
        on_lost: Callable[[DevbayError], None],
    ) -> None:
        self._engine = engine
        self._home = home
        self._on_event = on_event
        self._on_relist = on_relist
        self._on_lost = on_lost
        self._job = Job()
        self._wait, self._lost = FIRST_WAIT_S, False
        self._thread = threading.Thread(target=self._watch, name="docker-events", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """End the thread; no callback runs after this returns."""
        self._job.cancel()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join()

    def _watch(self) -> None:
        while not self._job.cancelled:
            try:
                self._follow()
            except DevbayError as error:
                if not self._lost:
                    self._lost = True
                    self._tell(self._on_lost, error)
            self._pause(self._wait)
            self._wait = min(self._wait * 2, LONGEST_WAIT_S)

    def _follow(self) -> None:
        filters = {
            "type": ["container"],
            "event": list(ACTIONS),
            "label": [f"dev.devbay.home={self._home}"],
        }
        # the engine opens the stream a moment before it listens; `since` gives what fell in between
        params = {"filters": json.dumps(filters), "since": f"{time.time():.9f}"}
        with self._engine.stream("GET", "/events", params=params, job=self._job) as stream:
            self._wait, self._lost = FIRST_WAIT_S, False
            self._tell(self._on_relist)
            for document in stream.documents():
                self._tell(self._on_event, event_of(document))
        raise unreachable(self._engine.endpoint.host, "it ended the stream of events")

    def _tell(self, callback: Callable[..., None], *arguments: object) -> None:
        """A callback that fails must not end the watching."""
        if self._job.cancelled:
            return
        try:
            callback(*arguments)
        except Exception:
            log.exception("a listener to the engine's events failed")

    def _pause(self, seconds: float) -> None:
        woken = threading.Event()
        with self._job.when_cancelled(woken.set):
            woken.wait(seconds)


def event_of(document: Mapping[str, Any]) -> Event:
    """One document of `GET /events` for a container."""
    attributes = document["Actor"]["Attributes"]
    code = attributes.get("exitCode")
    return Event(
        action=document["Action"],
        container=document["Actor"]["ID"],
        bay=attributes.get("dev.devbay.bay", ""),
        service=attributes.get("dev.devbay.service", ""),
        run=attributes.get("dev.devbay.run", ""),
        exit_code=int(code) if code is not None else None,
        at_ns=int(document.get("timeNano", 0)),
    )

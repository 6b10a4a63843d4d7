"""What the engines have, kept fresh by their events: answers come from here, not from a query each."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from devbay.bays.parts import now
from devbay.errors import DevbayError
from devbay.runtimes.base import ObservedBay, Runtime

OnChange = Callable[[str, str], None]
"""Called with (bay id, service) when something happened to a service."""


@dataclass
class _View:
    """The last listing of one engine, and whether an event has made it old."""

    bays: Mapping[str, ObservedBay] = field(default_factory=dict)
    as_of: str = ""
    stale: bool = True
    followed: bool = False


class Watch:
    """One view per engine. While its events are followed a view is listed anew only after an event."""

    def __init__(self, home_id: str, on_change: OnChange) -> None:
        self._home = home_id
        self._on_change = on_change
        self._lock = threading.Lock()
        self._views: dict[str, _View] = {}

    def observed(self, runtime: Runtime, bay_id: str) -> tuple[ObservedBay | None, str]:
        """What the bay has and as of when; (None, now) if the engine does not answer."""
        view = self._fresh(runtime)
        if view is None:
            return None, now()
        return view.bays.get(bay_id, ObservedBay()), view.as_of

    def changed(self, key: str, bay_id: str, service: str) -> None:
        """An event came (or the stream of events broke: empty ids)."""
        with self._lock:
            if key in self._views:
                self._views[key].stale = True
        if bay_id:
            self._on_change(bay_id, service)

    def _fresh(self, runtime: Runtime) -> _View | None:
        with self._lock:
            view = self._views.setdefault(runtime.key, _View())
            follow = not view.followed
            view.followed = True
            if not view.stale and runtime.following:
                view.as_of = now()
                return view
            view.stale = False  # an event during the listing makes it old again
        if follow:
            runtime.follow(self._home, lambda bay, service: self.changed(runtime.key, bay, service))
        try:
            bays = runtime.observe_all(self._home)
        except DevbayError:
            with self._lock:
                view.stale = True
            return None
        with self._lock:
            view.bays, view.as_of = bays, now()
            return view

"""The scrubbers of all bays, made from their saved sets when first needed."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from devbay.security.scrub import Scrubber, ScrubStream
from devbay.security.scrub_set import ScrubSets


class Scrubbers:
    """Safe to use from any thread. Credentials of known shapes are hidden in every bay."""

    def __init__(self, sets: ScrubSets) -> None:
        self._sets = sets
        self._lock = threading.RLock()
        self._made: dict[str, Scrubber] = {}

    def of(self, bay_id: str) -> Scrubber:
        """The bay's scrubber; raises `bad_scrub_set`."""
        with self._lock:
            made = self._made.get(bay_id)
            if made is None:
                made = self._made[bay_id] = Scrubber(self._sets.load(bay_id))
            return made

    def knows(self, bay_id: str) -> bool:
        """Whether any value of the bay is known."""
        return bool(self._sets.load(bay_id))

    def add(self, bay_id: str, values: Mapping[str, str]) -> None:
        """Know these values (label to value) from now on, also after a restart."""
        with self._lock:
            self._sets.save(bay_id, values)
            self._made.pop(bay_id, None)

    def text(self, bay_id: str, text: str) -> str:
        return self.of(bay_id).text(text)

    def stream(self, bay_id: str) -> ScrubStream:
        return self.of(bay_id).stream()

    def forget(self, bay_id: str) -> None:
        with self._lock:
            self._made.pop(bay_id, None)
            self._sets.forget(bay_id)

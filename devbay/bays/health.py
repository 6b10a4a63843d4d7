"""What is known of services' health since the daemon started: kept by events, refreshed by probes."""

from __future__ import annotations

import threading
import time


class HealthMemory:
    """Health per (bay, service), valid only for the container it was seen on. A restart re-probes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._healthy: dict[tuple[str, str], tuple[str, float]] = {}

    def mark(self, bay: str, service: str, ref: str) -> None:
        """A probe of container `ref` passed just now."""
        with self._lock:
            self._healthy[bay, service] = (ref, time.monotonic())

    def forget(self, bay: str, service: str | None = None) -> None:
        """Something happened to the service (or the whole bay): its health is not known any more."""
        with self._lock:
            for key in [k for k in self._healthy if k[0] == bay and service in {None, k[1]}]:
                del self._healthy[key]

    def healthy(self, bay: str, refs: dict[str, str]) -> frozenset[str]:
        """Of the services with their present containers, those whose last probe passed."""
        with self._lock:
            return frozenset(
                name for name, ref in refs.items() if self._healthy.get((bay, name), ("", 0.0))[0] == ref
            )

    def age(self, bay: str, service: str) -> float:
        """Seconds since the last passed probe; infinite if there was none."""
        with self._lock:
            entry = self._healthy.get((bay, service))
        return time.monotonic() - entry[1] if entry else float("inf")

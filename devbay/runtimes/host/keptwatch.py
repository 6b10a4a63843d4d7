"""Hearing of every change of kept services, by one thread that sleeps in between."""

from __future__ import annotations

import json
import logging
import os
import selectors
import socket as sockets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from devbay.errors import DevbayError
from devbay.runtimes.host import keeperlink
from devbay.runtimes.host.keptstate import read_state

log = logging.getLogger(__name__)


@dataclass
class _Followed:
    folder: Path
    socket: Path
    connection: sockets.socket | None = None
    text: bytearray = field(default_factory=bytearray)
    mark: str = ""
    is_known: bool = False
    told: threading.Event = field(default_factory=threading.Event)


class KeptWatch:
    """Calls `on_change(bay id, service)` from its own thread, until `close`."""

    def __init__(self, home_id: str, on_change: Callable[[str, str], None]) -> None:
        self._home_id, self._on_change = home_id, on_change
        self._selector = selectors.DefaultSelector()
        self._heard, self._told = os.pipe()
        self._selector.register(self._heard, selectors.EVENT_READ)
        self._lock = threading.Lock()
        self._new: list[_Followed] = []
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="kept-services", daemon=True)
        self._thread.start()

    def follow(self, folder: Path, socket: Path, *, is_known: bool = False) -> threading.Event:
        """Follow the keeper of `folder` too, if one lives; set once its present state was told.

        is_known: that state is no change, and only what comes after it is told.
        """
        one = _Followed(folder, socket, is_known=is_known)
        with self._lock:
            if self._closed:
                one.told.set()
            else:
                self._new.append(one)
                os.write(self._told, b"x")
        return one.told

    def close(self) -> None:
        """End the thread; no callback runs after this returns."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            os.write(self._told, b"x")
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        try:
            while not self._closed:
                for key, _ in self._selector.select():
                    if key.fileobj == self._heard:
                        os.read(self._heard, 4096)
                    else:
                        self._hear(key.data)
                with self._lock:
                    new, self._new = self._new, []
                for one in new:
                    self._connect(one)
        finally:
            for key in list(self._selector.get_map().values()):
                if isinstance(key.data, _Followed) and key.data.connection is not None:
                    key.data.connection.close()
            self._selector.close()
            os.close(self._heard)
            with self._lock:
                self._closed = True
                os.close(self._told)

    def _connect(self, one: _Followed) -> None:
        try:
            one.connection = keeperlink.connect(one.folder, one.socket)
            if one.connection is None:
                one.told.set()
                return
            one.connection.sendall(b"watch\n")
        except (OSError, DevbayError) as error:
            log.warning("%s is not followed: %s", one.folder, error)
            one.told.set()
            return
        self._selector.register(one.connection, selectors.EVENT_READ, one)

    def _hear(self, one: _Followed) -> None:
        assert one.connection is not None
        try:
            data = one.connection.recv(65536)
        except ConnectionError:
            data = b""
        one.text += data
        if b"\n" in one.text:
            *lines, rest = bytes(one.text).split(b"\n")
            one.text[:] = rest
            one.mark = json.loads(lines[-1])["mark"]
            self._tell(one)
        if not data:
            self._selector.unregister(one.connection)
            one.connection.close()
            self._tell(one)
            found = read_state(one.folder)
            if found is not None and found.alive and found.state != "exited":  # we were too slow for it
                self._connect(_Followed(one.folder, one.socket))

    def _tell(self, one: _Followed) -> None:
        home, _, rest = one.mark.partition("/")
        if home == self._home_id and not one.is_known:
            self._on_change(*rest.split("/", 1))
        one.is_known = False
        one.told.set()

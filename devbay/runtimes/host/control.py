"""A keeper's socket: requests in, one word line each; the state out, one line of JSON each."""

from __future__ import annotations

import _socket
import os

from devbay.runtimes.host.loop import Loop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Control:
    """Serves `on_request(words)`, which returns whether the answer is due now, and tells watchers changes.

    `line()` gives the state. `watch` is answered at once, at each `tell_watchers`, and at the end.
    """

    def __init__(
        self, loop: Loop, path: str, on_request: Callable[[list[str]], bool], line: Callable[[], bytes]
    ) -> None:
        self._loop, self._path, self._request, self._line = loop, path, on_request, line
        self._watchers: list[_socket.socket] = []
        self._clients: dict[int, tuple[_socket.socket, bytearray]] = {}
        self._listener = self._listen()

    def tell_watchers(self) -> None:
        for client in list(self._watchers):
            self._send(client)

    def listen_again(self) -> None:
        """The socket's file was removed, by a cleaner of temporary folders for example."""
        self._loop.forget(self._listener.fileno())
        self._listener.close()
        self._listener = self._listen()

    def unlisten(self) -> None:
        """Take no further request; those that came are answered by `finish`."""
        self._loop.forget(self._listener.fileno())
        self._listener.close()
        if os.path.lexists(self._path):
            os.unlink(self._path)  # noqa: PTH108

    def finish(self) -> None:
        """The last state to everybody, and the end of the stream."""
        for client, _ in list(self._clients.values()):
            self._send(client)
            client.close()

    def _listen(self) -> _socket.socket:
        """A socket at the agreed path; its keeper holds the lock, so what lies there is nobody's."""
        if os.path.lexists(self._path):
            os.unlink(self._path)  # noqa: PTH108
        listener = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        before = os.umask(0o177)
        try:
            listener.bind(self._path)
        finally:
            os.umask(before)
        listener.listen(16)
        listener.setblocking(False)
        self._loop.when_readable(listener.fileno(), self._accept)
        return listener

    def _accept(self) -> None:
        try:
            handle, _ = self._listener._accept()  # type: ignore[attr-defined]  # what socket.accept calls
        except BlockingIOError:
            return
        except OSError:  # no file handle left: ask again later, not again and again
            again = self._listener.fileno()
            self._loop.forget(again)
            self._loop.after("accept", 1.0, lambda: self._loop.when_readable(again, self._accept))
            return
        client = _socket.socket(fileno=handle)
        client.setblocking(False)
        self._clients[handle] = (client, bytearray())
        self._loop.when_readable(handle, lambda: self._on_data(handle))

    def _on_data(self, handle: int) -> None:
        client, text = self._clients[handle]
        try:
            data = client.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        text += data
        if not data or len(text) > 4096:
            self._drop(client)
            return
        while handle in self._clients and b"\n" in text:
            line, _, rest = bytes(text).partition(b"\n")
            text[:] = rest
            words = line.decode("ascii", "replace").split()
            if words == ["watch"]:
                self._watchers.append(client)
            if self._request(words):
                self._send(client)

    def _send(self, client: _socket.socket) -> None:
        """Send the state; one who does not read it is cut off rather than waited for."""
        line = self._line()
        try:
            if client.send(line) == len(line):
                return
        except OSError:
            pass
        self._drop(client)

    def _drop(self, client: _socket.socket) -> None:
        handle = client.fileno()
        if self._clients.pop(handle, None) is not None:
            self._loop.forget(handle)
            self._watchers = [one for one in self._watchers if one is not client]
            client.close()

"""The API: products and orders as JSON. `python -m shop.api` serves it on PORT (8000)."""

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from shop import store

_lock = threading.Lock()
_connection = None


def with_database(work):
    """Run `work(connection)`, one at a time; a connection that broke (the database restarted) is replaced."""
    global _connection
    with _lock:
        _connection = _connection or store.connect()
        try:
            return work(_connection)
        except Exception:
            _connection = None
            raise


class Api(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path == "/healthz":
            with_database(lambda db: db.run("select 1"))
            self.answer({"ok": True})
        elif self.path == "/products":
            self.answer(with_database(store.products))
        elif self.path == "/orders":
            self.answer(with_database(store.orders))
        else:
            self.answer({"error": f"there is no {self.path}"}, 404)

    def do_POST(self):
        given = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        if self.path != "/orders":
            self.answer({"error": f"there is no {self.path}"}, 404)
            return
        try:
            total = with_database(lambda db: store.order(db, int(given["product"]), int(given["quantity"])))
        except KeyError as error:
            self.answer({"error": f"unknown: {error}"}, 400)
        else:
            self.answer({"total": total}, 201)

    def answer(self, data, status=200):
        body = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *args):
        if "/healthz" not in self.path:
            print(self.command, self.path, *args[1:2], flush=True)


if __name__ == "__main__":
    place = os.environ.get("HOST", "0.0.0.0"), int(os.environ.get("PORT", "8000"))
    print(f"api on port {place[1]}", flush=True)
    ThreadingHTTPServer(place, Api).serve_forever()

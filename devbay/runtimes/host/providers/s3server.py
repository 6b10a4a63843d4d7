"""moto's S3 as a process that answers as MinIO does where it is asked for its health. Imports no devbay."""

from __future__ import annotations

import argparse
import html
import signal
import sys
import threading
from collections.abc import Iterable
from typing import Any

LOOPBACK = "127.0.0.1"
HEALTH = frozenset({"/minio/health/live", "/minio/health/ready", "/minio/health/cluster"})
PAGE = "This is moto, which stands in for MinIO without a console. S3 answers on port {port}.\n"


class Application:
    """A WSGI application: MinIO's health routes, and moto's S3 for the rest."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if environ.get("PATH_INFO") in HEALTH:
            start_response("200 OK", [("Content-Length", "0")])
            return []
        answer: Iterable[bytes] = self.inner(environ, start_response)
        return answer


def console(port: int) -> Any:
    text = html.escape(PAGE.format(port=port)).encode()

    def page(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(text)))])
        return [text]

    return page


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--console", type=int)
    wanted = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    from moto.moto_server.werkzeug_app import (
        DomainDispatcherApplication,
        MotoRequestHandler,
        create_backend_app,
    )
    from werkzeug.serving import make_server, run_simple

    if wanted.console:
        side = make_server(LOOPBACK, wanted.console, console(wanted.port), threaded=True)
        threading.Thread(target=side.serve_forever, daemon=True).start()
    application = Application(DomainDispatcherApplication(create_backend_app))
    run_simple(LOOPBACK, wanted.port, application, threaded=True, request_handler=MotoRequestHandler)


if __name__ == "__main__":
    main()

"""`python -m devbay.daemon [--ready-fd N]`: the daemon process with the real services."""

from __future__ import annotations

import argparse
import logging
import os
from typing import Any

from devbay.daemon.lifecycle import run
from devbay.home import Home
from devbay.tools.registry import Services, Tool


def make(home: Home) -> tuple[Services, list[Tool[Any, Any]]]:
    """The services and the tools on them."""
    from devbay.core import Core  # after the log is open, so that a failing import is in it
    from devbay.tools import build_tools

    core = Core(home)
    return core, build_tools(core)


def main() -> None:
    """Run until told to end. Leaves without waiting for threads that hang in an engine's client."""
    parser = argparse.ArgumentParser(prog="devbayd", description="The devbay daemon; started on first use.")
    parser.add_argument("--ready-fd", type=int, help="descriptor that is told when the socket answers")
    options = parser.parse_args()
    code = run(make, home=Home.from_environment(os.environ), ready_fd=options.ready_fd)
    logging.shutdown()
    os._exit(code)


if __name__ == "__main__":
    main()

"""The `devbay` command: the pipe before anything else is imported, then one command's module alone."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line of this process; never returns."""
    if sys.argv[1:] == ["mcp"]:
        from devbay.shim import main as pipe

        raise SystemExit(pipe())
    from devbay.cli.app import run

    raise SystemExit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()

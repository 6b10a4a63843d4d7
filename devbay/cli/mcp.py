"""`devbay mcp`: help for the pipe, which itself starts before Typer is imported."""

from __future__ import annotations

from devbay.cli.app import wrong


def command() -> int:
    """Serve an agent over stdin and stdout (a pipe to the daemon)."""
    raise wrong("`devbay mcp` takes no options; it is the command of an agent's configuration")

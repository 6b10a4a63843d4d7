"""The typed tools: what agents call over MCP and people through the command line."""

from __future__ import annotations

from typing import Any

from devbay.tools.registry import Tool


def build_tools(core: Any) -> list[Tool[Any, Any]]:
    """Every tool that works now, in the order an agent meets them. `core`: `devbay.core.Core`."""
    from devbay.tools import bays, init, repository, runs

    return [*repository.tools(core), *init.tools(core), *bays.tools(core), *runs.tools(core)]

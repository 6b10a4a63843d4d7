"""`devbay schema`: the JSON Schema of `devbay.yaml`."""

from __future__ import annotations

from devbay.cli import out
from devbay.cli.session import Json, Repo


def command(repo: Repo = None, json: Json = False) -> int:
    """Print the JSON Schema of the manifest."""
    from devbay.manifest.schema import json_schema

    out.emit_json(json_schema())
    return 0

"""What a small repository is that `devbay init` must propose a bay for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """files: path to text, with no word about devbay. tasks: name to how many tests pass.

    services: those that must run.
    """

    name: str
    files: dict[str, str]
    services: set[str]
    tasks: dict[str, int]

"""A worktree in memory, as the tests of what commands name look at one."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from posixpath import dirname

from devbay.security.named_scripts import File


class Tree:
    """texts by path; those of `runnable` may be executed. links: path to where it leads, None for outside."""

    def __init__(
        self, texts: dict[str, str], runnable: Sequence[str] = (), links: dict[str, str | None] | None = None
    ) -> None:
        self.texts, self.runnable, self.links = texts, set(runnable), links or {}
        self.looked = 0

    def look(self, path: str) -> File:
        self.looked += 1
        if path in self.links:
            leads = self.links[path]
            return File("outside", path) if leads is None else self.look(leads)
        if path in self.texts:
            text = self.texts[path]
            digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
            return File("text", path, text, digest, path in self.runnable)
        return File("folder" if self.names(path) else "missing", path)

    def names(self, path: str) -> list[str]:
        lead = "" if path in ("", ".") else f"{path}/"
        below = [each.removeprefix(lead) for each in self.texts if each.startswith(lead)]
        return sorted({each.split("/")[0] for each in below if dirname(lead + each) or not lead})

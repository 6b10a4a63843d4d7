"""What a verification decides without a bay: which task is run, and how a file says that it was verified."""

from __future__ import annotations

import re

from devbay.manifest import Manifest

STAMP = "# Verified by `devbay init --verify`"
_TEST = re.compile(r"(^|[-_:.])(tests?|specs?|unit|pytest|e2e)($|[-_:.])")


def task_to_run(manifest: Manifest) -> str | None:
    """Of the test tasks that run in the bay, the one that needs the fewest services; None if there is none.

    A test task has a report or a name that says so. Among equals the first in the file is taken.
    """
    tests = [
        name for name, task in manifest.tasks.items()
        if task.in_ != "host" and (task.report is not None or _TEST.search(name))
    ]  # fmt: skip

    def size(name: str) -> tuple[int, bool]:
        needed = manifest.subgraph(list(manifest.tasks[name].needs))
        return len(needed), not _TEST.search(name)

    return min(tests, key=size, default=None)


def stamped(text: str, *, date: str, runtime: str, what: str) -> str:
    """The file with one line at its top that says when and how it was verified, in place of an older one."""
    lines = text.splitlines(keepends=True)
    rest = "".join(line for line in lines if not line.startswith(STAMP))
    return f"{STAMP} on {date} ({runtime}): {' '.join(what.split())}\n{rest}"


def unstamped(text: str) -> str:
    """The file without such a line: what is verified anew does not say that it was."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(STAMP))

"""Heavy modules, imported at first use by one thread at a time.

Threads that import packages with circular imports at the same moment can see half-made modules (Python
breaks the deadlock by handing them out), so that the first calls of a fresh daemon failed together.
"""

from __future__ import annotations

import importlib
import threading
from types import ModuleType

ENGINE = (
    "git.cmd", "docker", "docker.errors", "docker.types", "docker.utils", "requests", "requests.adapters",
    "urllib3", "ruamel.yaml", "devbay.manifest", "devbay.runtimes.docker.contexts",
    "devbay.runtimes.docker.runtime", "devbay.runtimes.docker.template_store",
    "devbay.runtimes.docker.registry", "devbay.runtimes.docker.builds",
)  # fmt: skip
"""What a bay needs of its engine and repository."""

_lock = threading.RLock()
_loaded: set[str] = set()


def load(name: str) -> ModuleType:
    """The module; waits for another thread that is importing."""
    with _lock:
        return importlib.import_module(name)


def load_engine() -> None:
    """Have everything of `ENGINE` imported. Where git is missing its wrapper fails; who needs it says so."""
    if len(_loaded) == len(ENGINE):
        return
    with _lock:
        for name in ENGINE:
            if name not in _loaded:
                try:
                    importlib.import_module(name)
                except ImportError:
                    if name != "git.cmd":
                        raise
                _loaded.add(name)

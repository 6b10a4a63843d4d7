"""The manifest in the making: plain data, the source of each line, and what nobody says."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from devbay.detect.facts import Evidence, Origin, Question

Path = tuple[str, ...]
Data = dict[str, Any]

KEYS = (
    "kind", "image", "build", "platform", "workdir", "user", "entrypoint", "install", "install_inputs",
    "start", "run", "in", "port", "ports", "primary", "needs", "setup", "health", "env", "mounts",
    "volumes", "tmpfs", "shm_size", "restart", "report", "timeout",
)  # fmt: skip
"""The order of keys in a proposal."""


@dataclass
class Draft:
    """Services and tasks in the manifest's own shape. sources: path to what it was taken from."""

    project: str = "app"
    services: dict[str, Data] = field(default_factory=dict)
    tasks: dict[str, Data] = field(default_factory=dict)
    sources: dict[Path, str] = field(default_factory=dict)
    questions: list[Question] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    evidence: list[Evidence] = field(default_factory=list)

    def put(self, path: Path, value: Any, source: Origin | str | None) -> None:
        """Set a key of a service or task: `("services", "web", "port")`, and say where it comes from."""
        here = self.services if path[0] == "services" else self.tasks
        for key in path[1:-1]:
            here = here.setdefault(key, {})
        here[path[-1]] = value
        self.say(path, source)

    def say(self, path: Path, source: Origin | str | None) -> None:
        if source is not None:
            self.sources[path] = str(source)

    def drop(self, path: Path) -> bool:
        """Take a key away; whether it was there. A mapping that becomes empty goes too."""
        parents: list[tuple[Data, str]] = []
        here: Any = {"services": self.services, "tasks": self.tasks}
        for key in path:
            if not isinstance(here, dict) or key not in here:
                return False
            parents.append((here, key))
            here = here[key]
        for holder, key in reversed(parents[1:]):
            del holder[key]
            if holder:
                break
        return True

    def ask(self, about: str, text: str, *candidates: str, origin: Origin | None = None) -> None:
        question = Question(about, text, candidates, origin)
        if question not in self.questions:
            self.questions.append(question)

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def kept(self) -> Draft:
        """A copy as it stands, to go back to with `restore`."""
        return Draft(
            self.project, deepcopy(self.services), deepcopy(self.tasks), dict(self.sources),
            list(self.questions), list(self.notes), list(self.evidence),
        )  # fmt: skip

    def restore(self, kept: Draft) -> None:
        """Take back all that was done since `kept` was made."""
        vars(self).update(vars(kept))

    def data(self) -> Data:
        """The manifest, keys in their order, nothing empty in it."""
        found: Data = {"version": 1, "project": self.project}
        for group, parts in (("services", self.services), ("tasks", self.tasks)):
            if parts:
                found[group] = {name: _ordered(part) for name, part in parts.items()}
        return found


def _ordered(part: Data) -> Data:
    rank = {key: place for place, key in enumerate(KEYS)}
    kept = {
        key: value
        for key, value in part.items()
        if value not in (None, {}, ()) and (value != [] or key == "needs")
    }
    return {key: kept[key] for key in sorted(kept, key=lambda key: rank.get(key, len(rank)))}

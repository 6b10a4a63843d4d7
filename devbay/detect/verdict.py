"""A draft made valid: what the manifest refuses is taken out or replaced, and asked about instead."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from devbay.detect import render
from devbay.detect.draft import Draft
from devbay.manifest import Loaded, parse
from devbay.manifest.diagnostics import Diagnostic

MAX_ROUNDS = 40


@dataclass(frozen=True)
class Proposal:
    """The text, what loading it says, and the draft it was made from."""

    yaml: str
    loaded: Loaded
    draft: Draft


def settle(draft: Draft, root: Path | None) -> Proposal:
    """Render and validate until nothing is refused; each round takes at least one refused thing away."""
    for name in draft.services:
        _followers(draft, name)
    text = render.yaml(draft)
    loaded = parse(text, root=root)
    for _ in range(MAX_ROUNDS):
        if not loaded.errors or not _without(draft, loaded.errors[0]):
            break
        text = render.yaml(draft)
        loaded = parse(text, root=root)
    return Proposal(text, loaded, draft)


def _without(draft: Draft, wrong: Diagnostic) -> bool:
    """Take away, or replace, what one finding refuses; False where nothing of the draft is meant."""
    path = tuple(str(part) for part in wrong.path.split("/") if part)
    if len(path) < 2 or path[0] not in ("services", "tasks"):
        return False
    about = "/".join(path)
    if wrong.rule == "R3" and len(path) == 4 and path[2] == "env":
        name = path[3].lower().replace("_", "-").replace(".", "-")
        draft.put(path, f"${{secret:{name}}}", draft.sources.get(path))
        draft.ask(
            about, f"{path[3]} holds what looks like a credential; it is not copied: store it as a secret"
        )
        return True
    reason = re.sub(r"'[^']{40,}'", "...", wrong.message)[:200]
    for size in range(len(path), 2, -1):
        here = path[:size]
        if here[-1].isdigit():
            continue
        if here[2] in ("run", "needs", "image", "build") and (here[0] == "tasks" or here[2] != "needs"):
            break
        if draft.drop(here):
            draft.ask(
                about, f"left out, as devbay refuses it: {'a credential' if wrong.rule == 'R3' else reason}"
            )
            _followers(draft, path[1])
            return True
    if draft.drop(path[:2]):
        draft.ask("/".join(path[:2]), f"left out, as devbay refuses it: {reason}")
        _forget(draft, path[1] if path[0] == "services" else "")
        return True
    return False


def _followers(draft: Draft, name: str) -> None:
    """A long-running service keeps a probe, whatever was taken from it."""
    data = draft.services.get(name)
    if data is None or data.get("kind") == "oneshot":
        return
    health = data.get("health") or {}
    ported = data.get("port")
    if ("http" in health and not ported) or ("tcp" in health and health["tcp"] != ported) or not health:
        data["health"] = {"tcp": ported} if ported else {"process": True}
    if not ported:
        data.pop("primary", None)


def _forget(draft: Draft, name: str) -> None:
    """Nothing needs or refers to a service that is gone."""
    for data in (*draft.services.values(), *draft.tasks.values()):
        if name in data.get("needs", []):
            data["needs"] = [need for need in data["needs"] if need != name]
        if data.get("in") == name:
            del data["in"]

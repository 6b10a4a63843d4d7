"""Which service waits for which: needs, set-up one-shots, order and cycles, on names alone.

A set-up one-shot that (transitively) needs its service prepares it: it runs after the service, and whatever
else needs the service waits for it. One that does not need its service runs before it. Several run in the
order they are listed in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

Edges = Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]
"""Service to (needs, setup)."""


def closure(edges: Edges, start: str) -> set[str]:
    """All that `start` needs, itself excluded unless it is part of a cycle. Unknown names are left out."""
    found: set[str] = set()
    waiting = list(edges[start][0])
    while waiting:
        name = waiting.pop()
        if name in edges and name not in found:
            found.add(name)
            waiting.extend(edges[name][0])
    return found


def dependencies(edges: Edges) -> dict[str, tuple[str, ...]]:
    """Service to what it directly waits for, in the order given; unknown names are left out."""
    direct = {
        name: dict.fromkeys(need for need in needs if need in edges) for name, (needs, _) in edges.items()
    }
    for service, (_, setup) in edges.items():
        if not setup:
            continue
        steps = [name for name in setup if name in edges]
        below = {step: closure(edges, step) for step in steps}
        behind = set().union(*below.values())
        for place, step in enumerate(steps):
            direct[step].update(
                dict.fromkeys(earlier for earlier in steps[:place] if step not in below[earlier])
            )
            if service not in below[step]:
                direct[service][step] = None
                continue
            for name, (needs, _) in edges.items():
                if service in needs and name not in behind and name not in steps:
                    direct[name][step] = None
    return {name: tuple(waits) for name, waits in direct.items()}


def order(edges: Edges, names: Iterable[str]) -> list[str]:
    """`names` with everything they depend on or have as set-up, dependencies first, otherwise as declared.

    Raises KeyError for an unknown name and ValueError for a cycle.
    """
    direct = dependencies(edges)
    wanted: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in wanted:
            wanted.add(name)
            waiting.extend(direct[name])
            waiting.extend(step for step in edges[name][1] if step in edges)
    placed: dict[str, None] = {}  # keeps the order and finds a name at once
    rest = [name for name in edges if name in wanted]
    while rest:
        ready = next((name for name in rest if all(each in placed for each in direct[name])), None)
        if ready is None:
            raise ValueError(" -> ".join(cycle(edges) or rest))
        placed[ready] = None
        rest.remove(ready)
    return list(placed)


def cycle(edges: Edges) -> list[str] | None:
    """A cycle as the path that returns to its start, or None."""
    direct = dependencies(edges)
    done: set[str] = set()
    for start in edges:
        path: list[str] = []
        stack = [(start, iter(direct[start]))]
        path.append(start)
        while stack:
            name, waits = stack[-1]
            step = next((each for each in waits if each not in done), None)
            if step is None:
                done.add(name)
                stack.pop()
                path.pop()
            elif step in path:
                return [*path[path.index(step) :], step]
            else:
                path.append(step)
                stack.append((step, iter(direct[step])))
    return None

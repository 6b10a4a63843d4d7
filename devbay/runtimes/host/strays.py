"""Ending the processes of a mark that no keeper owns any more, because theirs was killed."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from devbay.runtimes.host import tree
from devbay.runtimes.host.cgroups import Cgroup
from devbay.runtimes.host.ipc import Leftovers, present, started_at
from devbay.runtimes.host.keeperlink import KEEPER_MARK
from devbay.runtimes.host.launch import MARK

PATIENCE_S = 15.0


def end(mark: str, groups: Sequence[Cgroup]) -> list[int]:
    """Kill them, remove their shared memory and the control groups; returns the ids that were killed.

    Proof is the mark, descent from a marked process, or being in a group of the mark. Raises
    `tree.Survivors` if killed ones stay.
    """
    keepers = tree.marked(KEEPER_MARK, mark)
    if keepers:
        groups = ()  # the live keeper's
    found = _find(mark, keepers, groups)
    if not found:
        _remove(groups)
        return []
    oldest = min(started_at(one) for one in found)
    leftovers = Leftovers(present(born_before=oldest))
    leftovers.note(found)
    for group in groups:
        group.kill()
    killed, foreign = tree.end(lambda: _find(mark, keepers, groups), patience_s=PATIENCE_S)
    if foreign:
        raise tree.Survivors(foreign)
    leftovers.remove()
    _remove(groups)
    return sorted({*killed, *(one.pid for one in found)})


def _find(mark: str, keepers: list[tree.Process], groups: Sequence[Cgroup]) -> list[tree.Process]:
    """What carries the mark, was not started or joined under a live keeper, and what that started."""
    table = tree.processes()
    carriers = tree.marked(MARK, mark)
    if keepers:
        # What joined the service by `devbay exec` is no child of its keeper, but younger than it.
        kept = {one.pid for one in tree.descendants([one.pid for one in keepers], table)}
        since = min(one.started for one in keepers)
        carriers = [one for one in carriers if one.pid not in kept and one.started < since]
    roots = {one.pid for one in carriers}
    for group in groups:
        roots |= group.pids() & table.keys()
    spared = {one.pid for one in keepers} | _ourselves(table)
    below = tree.descendants(roots, table)
    found = {pid: table[pid] for pid in roots if pid in table} | {one.pid: one for one in below}
    return [one for pid, one in found.items() if pid not in spared and one.state not in tree.DEAD]


def _ourselves(table: dict[int, tree.Process]) -> set[int]:
    """This process and those it descends from: one may ask from inside a bay."""
    found = set()
    pid = os.getpid()
    while pid in table and pid not in found:
        found.add(pid)
        pid = table[pid].parent
    return found


def _remove(groups: Sequence[Cgroup]) -> None:
    for group in groups:
        for _ in range(50):  # a killed process leaves its group a moment later
            if not group.remove():
                break
            time.sleep(0.01)

"""Control groups, where this machine lets some be made; else what is said instead."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from devbay.errors import DevbayError
from devbay.jobs import Job
from devbay.manifest.models import Limits
from devbay.runtimes.base import Exit
from devbay.runtimes.host import cgroups, keeperlink
from devbay.runtimes.host.cgroups import Cgroup
from devbay.runtimes.host.keepers import group_name
from tests.runtimes.host.conftest import Kept, eventually

LIMITS = Limits(memory="64m", cpus=1.5, pids=20)


def group_of(kept: Kept) -> Cgroup:
    found = cgroups.parent().group(group_name(kept.mark))
    if found is None:
        pytest.skip("no control group can be made here")
    return found


def is_there(group: Cgroup) -> bool:
    return any(Path(folder).exists() for folder in group.folders.values())


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (2, [("", "memory.max", "67108864"), ("", "pids.max", "20"), ("", "cpu.max", "150000 100000")]),
        (
            1,
            [
                ("memory", "memory.limit_in_bytes", "67108864"),
                ("pids", "pids.max", "20"),
                ("cpu", "cpu.cfs_period_us", "100000"),
                ("cpu", "cpu.cfs_quota_us", "150000"),
            ],
        ),
    ],
)
def test_limits_become_the_files_of_each_version(version: int, expected: list[tuple[str, str, str]]) -> None:
    assert cgroups._settings(version, LIMITS) == expected
    assert cgroups._settings(version, Limits()) == cgroups._settings(version, None) == []


def test_a_group_is_the_same_after_being_written_down() -> None:
    found = Cgroup.of_text(Cgroup(1, {"memory": "/a/b=c", "pids": "/d"}).text())
    assert (found.version, found.folders) == (1, {"memory": "/a/b=c", "pids": "/d"})
    assert Cgroup.of_text(Cgroup(2, {"": "/x"}).text()).folders == {"": "/x"}


def test_where_no_group_can_be_made_each_process_is_limited(
    monkeypatch: pytest.MonkeyPatch, kept: Kept
) -> None:
    monkeypatch.setattr(cgroups, "_found", cgroups.NOWHERE)
    assert cgroups.kind() == "setrlimit"
    output = bytearray()
    launch = kept.launch("grep -E 'core|data size' /proc/self/limits", name="run-1", limits=LIMITS)
    assert kept.keepers.run(launch, output.extend, 60, Job()) == Exit(0)
    words = output.decode().split()
    assert words[3:5] == ["67108864", "67108864"] and words[10:12] == ["0", "0"]


def test_a_process_that_joined_is_in_and_the_group_goes_when_it_is_empty(kept: Kept) -> None:
    group = group_of(kept)
    group.make(LIMITS)
    with subprocess.Popen(["sleep", "60"]) as child:
        group.join(child.pid)
        assert group.pids() == {child.pid}
        assert group.remove() != []
        child.kill()
    eventually(lambda: group.remove() == [])
    assert not is_there(group)


def test_a_limit_on_processes_holds_for_the_whole_service(kept: Kept) -> None:
    group = group_of(kept)
    if group.version == 1 and "pids" not in group.folders:
        pytest.skip("no control group for processes here")
    kept.start("for i in 1 2 3 4 5 6 7 8; do sleep 60 & done; wait", limits=Limits(pids=4))
    eventually(lambda: "fork" in kept.log)
    assert len(kept.marked()) <= 4


def test_a_limit_that_the_kernel_refuses_is_told(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    group = group_of(kept)
    name = "" if group.version == 2 else "memory"
    monkeypatch.setattr(cgroups, "_settings", lambda version, limits: [(name, "cgroup.procs", "no number")])
    with pytest.raises(DevbayError) as caught:
        kept.start("true", limits=LIMITS)
    assert caught.value.code == "limits_refused"
    assert not is_there(group)


def test_a_keeper_that_could_not_be_started_leaves_no_group(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = group_of(kept)
    monkeypatch.setattr(keeperlink, "command", lambda: ["/no/such/python"])
    with pytest.raises(FileNotFoundError):
        kept.start("true")
    assert not is_there(group)


def test_the_group_of_a_killed_keeper_is_removed_with_the_strays(kept: Kept) -> None:
    group = group_of(kept)
    # Without the mark in its environment only the group tells whose it is.
    kept.start("env -i sleep 61 & exec sleep 60")
    eventually(lambda: len(group.pids()) == 2)
    os.kill(kept.state.keeper, signal.SIGKILL)
    eventually(lambda: not kept.state.alive)
    kept.keepers.end_strays(kept.mark)
    assert not is_there(group)

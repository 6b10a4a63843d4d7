"""Services kept by real keepers: their life, their state, and what is left of them (nothing)."""

from __future__ import annotations

import os
import signal
import stat
import threading
from pathlib import Path

import pytest

from devbay.errors import Cancelled, DevbayError
from devbay.jobs import Job
from devbay.runtimes.host import cgroups, logfile, tree
from devbay.runtimes.host.keepers import Keepers, group_name
from tests.runtimes.host.conftest import Kept, eventually


def test_a_service_runs_with_its_environment_folder_and_mark(kept: Kept, tmp_path: Path) -> None:
    ref = kept.start(
        "echo $DEVBAY_KEPT; pwd; echo ${HOME:-none}; read x; echo in:$?; exec sleep 60", cwd=str(tmp_path)
    )
    eventually(lambda: "in:" in kept.log)
    texts = [entry.text for entry in logfile.tail(kept.folder, "web", lines=None)]
    assert texts == [kept.mark, str(tmp_path), "none", "in:1"]
    state = kept.state
    assert (state.ref, state.state, state.alive, state.restarts, state.config) == (
        ref,
        "running",
        True,
        0,
        "c1",
    )
    assert (state.bay, state.name) == (kept.bay, "web")
    main = tree.process(state.pid or 0)
    assert main is not None and main.started == state.started and main.session == main.pid


def test_no_secret_and_nothing_for_others_lies_in_the_folder(kept: Kept) -> None:
    launch = kept.launch("echo ready; exec sleep 60")
    secret = launch.__class__(**{**launch.__dict__, "env": {**launch.env, "TOKEN": "s3cret-value"}})
    kept.keepers.start(kept.folder, kept.socket, secret, "c1")
    eventually(lambda: "ready" in kept.log)
    for path in kept.folder.iterdir():
        assert b"s3cret-value" not in path.read_bytes()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.socket.stat().st_mode) == 0o600
    assert b"s3cret-value" not in Path(f"/proc/{kept.state.keeper}/cmdline").read_bytes()


def test_stopping_gives_the_service_time_to_end_by_itself(kept: Kept) -> None:
    kept.start("trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.05; done")
    eventually(lambda: "up" in kept.log)
    kept.stop()
    assert "bye" in kept.log
    assert (kept.state.state, kept.state.exit_code, kept.state.alive) == ("exited", 3, False)
    assert not kept.socket.exists()


def test_a_service_that_ignores_the_signal_is_killed_with_its_children(kept: Kept) -> None:
    kept.start("trap '' TERM; sleep 60 & echo up; while :; do sleep 60; done")
    eventually(lambda: "up" in kept.log)
    kept.stop(0.05)
    assert kept.state.exit_code == 128 + signal.SIGKILL
    assert kept.marked() == []


def test_stopping_twice_at_once_and_once_more_is_fine(kept: Kept) -> None:
    kept.start("exec sleep 60")
    threads = [threading.Thread(target=kept.stop) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept.stop()
    assert kept.state.exit_code == 128 + signal.SIGTERM


def test_a_stopped_service_starts_again_with_another_ref(kept: Kept) -> None:
    first = kept.start("echo one; exec sleep 60")
    eventually(lambda: "one" in kept.log)
    kept.stop()
    second = kept.start("echo two; exec sleep 60", config="c2")
    assert first != second and kept.state.config == "c2" and kept.state.state == "running"
    eventually(lambda: "two" in kept.log)
    assert "one" in kept.log


def test_starting_what_runs_finds_it_and_never_another_configuration(kept: Kept) -> None:
    ref = kept.start("exec sleep 60")
    pid = kept.state.pid
    assert Keepers(kept.place, kept.home).start(kept.folder, kept.socket, kept.launch("true"), "c1") == ref
    with pytest.raises(DevbayError) as caught:
        kept.start("exec sleep 60", config="c2")
    assert caught.value.code == "service_running"
    assert kept.state.pid == pid


def test_of_many_starts_at_once_one_wins_and_all_know_it(kept: Kept) -> None:
    refs: list[str] = []
    threads = [
        threading.Thread(target=lambda: refs.append(kept.start("echo started; exec sleep 60")))
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refs) == 6 and set(refs) == {kept.state.ref}
    assert len(kept.marked()) == 1
    eventually(lambda: "started" in kept.log)
    assert kept.log.count("started") == 1


def test_what_the_main_process_leaves_ends_with_it(kept: Kept) -> None:
    kept.start("sleep 60 & setsid sleep 60 & (setsid sh -c 'sleep 60 & sleep 60' &) ; exit 4")
    state = kept.keepers.wait(kept.folder, kept.socket, Job())
    assert (state.state, state.exit_code, state.alive) == ("exited", 4, False)
    assert kept.marked() == []


def test_a_service_that_daemonises_is_over_and_its_daemon_too(kept: Kept, tmp_path: Path) -> None:
    daemon = tmp_path / "daemon"
    double_fork = (
        "import os,time\n"
        "if os.fork(): os._exit(0)\n"
        "os.setsid()\n"
        "if os.fork(): os._exit(0)\n"
        f"open({str(daemon)!r}, 'w').write(str(os.getpid()))\n"
        "time.sleep(60)\n"
    )
    # It ends once its daemon is there.
    there = f"while [ ! -s {daemon} ]; do sleep 0.01; done"
    kept.start(f"env -i python3 -c \"$(cat <<'E'\n{double_fork}\nE\n)\"; {there}")
    kept.keepers.wait(kept.folder, kept.socket, Job())
    assert tree.process(int(daemon.read_text())) is None


def test_a_service_that_keeps_forking_is_ended(kept: Kept) -> None:
    # Each process starts the next one in a session of its own and ends: no group and no parent to hold.
    hopper = "import os\nwhile 1:\n if os.fork(): os._exit(0)\n os.setsid()\n"
    bomb = "sh -c 'while :; do (sh -c \"sleep 0.2; sleep 60\" &) ; sleep 0.02; done'"
    kept.start(f"python3 -c '{hopper}' & {bomb} & echo up; exec sleep 60")
    eventually(lambda: "up" in kept.log)
    kept.stop(0)
    assert kept.marked() == []
    assert not kept.state.alive


def test_a_failing_service_is_started_again_as_its_policy_says(kept: Kept) -> None:
    kept.start("echo run; exit 1", restart="on-failure")
    eventually(lambda: kept.state.restarts >= 2)
    kept.stop()
    state = kept.state
    assert state.state == "exited"
    assert state.exit_code in (1, 143)  # it may be stopped while it runs once more
    assert kept.log.count("run") >= 3


@pytest.mark.parametrize(("restart", "script"), [("on-failure", "exit 0"), ("no", "exit 1")])
def test_a_service_that_is_not_to_be_started_again_is_not(kept: Kept, restart: str, script: str) -> None:
    kept.start(script, restart=restart)
    state = kept.keepers.wait(kept.folder, kept.socket, Job())
    assert (state.state, state.restarts, state.exit_code) == ("exited", 0, int(script[-1]))


def test_a_program_that_vanished_is_tried_again_and_its_reason_told(kept: Kept, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nrm $0\n")
    program.chmod(0o755)
    kept.start("", argv=(str(program),), restart="always")
    eventually(lambda: kept.state.restarts >= 2)
    state = kept.state
    assert state.state == "restarting" and state.exit_code == 127 and "No such file" in state.reason


def test_pausing_stops_every_process_and_resuming_lets_them_go_on(kept: Kept) -> None:
    kept.start("(while :; do echo tick; sleep 0.01; done) & exec sleep 60")
    eventually(lambda: "tick" in kept.log)
    kept.keepers.pause(kept.folder, kept.socket)
    assert kept.state.state == "paused"
    eventually(lambda: _still(kept))
    kept.keepers.resume(kept.folder, kept.socket)
    assert kept.state.state == "running"
    before = len(kept.log)
    eventually(lambda: len(kept.log) > before)


def _still(kept: Kept) -> bool:
    before = kept.log
    threading.Event().wait(0.1)
    return kept.log == before


def test_a_paused_service_can_be_stopped(kept: Kept) -> None:
    kept.start("trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.02; done")
    eventually(lambda: "up" in kept.log)
    kept.keepers.pause(kept.folder, kept.socket)
    kept.stop()
    assert "bye" in kept.log and kept.state.exit_code == 0


def test_waiting_can_be_cancelled_and_leaves_the_service_running(kept: Kept) -> None:
    kept.start("exec sleep 60")
    job = Job()
    threading.Timer(0.05, job.cancel).start()
    with pytest.raises(Cancelled):
        kept.keepers.wait(kept.folder, kept.socket, job)
    assert kept.state.state == "running"


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("no-such-program",), "no such program in PATH"),
        (("/no/such/program",), "no such program"),
        (("./closed",), "may not be executed"),
        (("./script",), "interpreter"),
        (("./plain",), "#!"),
    ],
)
def test_what_cannot_be_executed_is_named_with_the_reason(
    kept: Kept, tmp_path: Path, argv: tuple[str, ...], said: str
) -> None:
    (tmp_path / "script").write_text("#!/no/such/interpreter\n")
    (tmp_path / "plain").write_text("echo hi\n")
    (tmp_path / "closed").write_text("#!/bin/sh\n")
    for name in "script", "plain":
        (tmp_path / name).chmod(0o755)
    with pytest.raises(DevbayError) as caught:
        kept.start("", argv=argv, cwd=str(tmp_path))
    assert caught.value.code == "not_executable"
    assert argv[0] in caught.value.message and said in caught.value.message
    assert kept.state.state == "exited" and kept.state.exit_code == 127
    assert kept.start("exec sleep 60")  # the folder is free again


def test_a_missing_working_directory_is_named(kept: Kept) -> None:
    with pytest.raises(DevbayError) as caught:
        kept.start("true", cwd="/no/such/folder")
    assert caught.value.code == "no_workdir" and "/no/such/folder" in caught.value.message


def test_a_state_of_a_dead_keeper_never_leads_to_the_process_that_has_its_id_now(kept: Kept) -> None:
    kept.start("exec sleep 60")
    kept.stop()
    other = os.spawnvp(os.P_NOWAIT, "sleep", ["sleep", "60"])
    try:
        path = kept.folder / "state.json"
        text = path.read_text().replace('"exited"', '"running"').replace('"pid": null', f'"pid": {other}')
        path.write_text(text.replace(f'"keeper": {kept.state.keeper}', f'"keeper": {other}'))
        assert kept.state.state == "exited" and kept.state.pid is None
        kept.stop(0)
        assert kept.keepers.end_strays(kept.mark) == []
        kept.start("exec sleep 60")
        assert os.waitpid(other, os.WNOHANG) == (0, 0)
    finally:
        os.kill(other, signal.SIGKILL)
        os.waitpid(other, 0)


def test_a_restart_of_the_machine_is_told_from_a_killed_keeper(kept: Kept) -> None:
    kept.start("exec sleep 60")
    os.kill(kept.state.keeper, signal.SIGKILL)
    eventually(lambda: not kept.state.alive)
    assert (kept.state.state, kept.state.reason) == ("exited", "its keeper was killed")
    path = kept.folder / "state.json"
    path.write_text(path.read_text().replace(tree.boot_id(), "another"))
    assert kept.state.reason == "the machine was restarted"


def test_a_torn_state_file_is_no_state(kept: Kept) -> None:
    kept.folder.mkdir(parents=True)
    (kept.folder / "state.json").write_text('{"mark": "a')
    assert kept.keepers.state(kept.folder) is None
    assert kept.start("exec sleep 60")


def test_a_killed_keeper_leaves_strays_that_are_found_and_ended(kept: Kept) -> None:
    kept.start(
        "setsid sh -c 'echo up; trap \"\" TERM; while :; do sleep 60; done' & sleep 61 & exec sleep 62"
    )
    eventually(lambda: "up" in kept.log)
    main = kept.state.pid
    os.kill(kept.state.keeper, signal.SIGKILL)
    eventually(lambda: not kept.state.alive)
    eventually(lambda: (one := tree.process(main or 0)) is None or one.state in tree.DEAD)  # it dies along
    assert len(kept.marked()) >= 3
    ended = kept.keepers.end_strays(kept.mark)
    assert len(ended) >= 3 and kept.marked() == []


def test_starting_or_stopping_after_a_killed_keeper_doubles_nothing(kept: Kept) -> None:
    kept.start("setsid sleep 61 & echo up; exec sleep 62")
    eventually(lambda: "up" in kept.log)
    os.kill(kept.state.keeper, signal.SIGKILL)
    eventually(lambda: not kept.state.alive)
    kept.start("exec sleep 63")
    eventually(lambda: [one.pid for one in kept.marked()] == [kept.state.pid])
    os.kill(kept.state.keeper, signal.SIGKILL)
    eventually(lambda: not kept.state.alive)
    kept.stop(0)
    assert kept.marked() == []


def test_what_a_live_keeper_owns_and_what_joined_it_are_no_strays(kept: Kept) -> None:
    kept.start("sleep 61 & exec sleep 62")
    joined = os.spawnvpe(os.P_NOWAIT, "sleep", ["sleep", "60"], {**os.environ, "DEVBAY_KEPT": kept.mark})
    assert kept.keepers.end_strays(kept.mark) == []
    eventually(lambda: len(kept.marked()) == 3)
    kept.stop()  # as an exec'd command ends with its container
    assert os.waitpid(joined, 0)[1] == signal.SIGKILL


def test_the_death_of_the_starter_right_after_the_start_does_not_matter(kept: Kept) -> None:
    child = os.fork()
    if child == 0:
        kept.start("echo up; exec sleep 60")
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    eventually(lambda: "up" in kept.log)
    assert kept.state.alive and kept.state.state == "running"
    kept.stop()
    assert kept.state.exit_code == 128 + signal.SIGTERM


def test_terminating_the_keeper_ends_the_service_in_order(kept: Kept) -> None:
    kept.start("trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.02; done")
    eventually(lambda: "up" in kept.log)
    os.kill(kept.state.keeper, signal.SIGTERM)
    state = kept.keepers.wait(kept.folder, kept.socket, Job())
    assert (state.state, state.exit_code, state.reason) == ("exited", 0, "")


def test_a_keeper_whose_socket_was_removed_makes_it_again(kept: Kept) -> None:
    kept.start("exec sleep 60")
    kept.socket.unlink()
    kept.stop()
    assert kept.state.exit_code == 128 + signal.SIGTERM


def test_only_the_application_in_a_sandbox_gets_the_signal(kept: Kept, tmp_path: Path) -> None:
    # As bubblewrap: a process that dies of the signal, and takes what is in it along.
    sandbox = tmp_path / "sandbox"
    sandbox.write_text(
        "#!/usr/bin/env python3\nimport ctypes, subprocess, sys\n"
        "ctypes.CDLL(None).prctl(15, b'sandbox', 0, 0, 0)\n"
        "sys.exit(subprocess.run(sys.argv[2:]).returncode)\n"
    )
    sandbox.chmod(0o755)
    launch = kept.launch("trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.02; done")
    launch = launch.__class__(**{**launch.__dict__, "prefix": (str(sandbox), "--")})
    kept.keepers.start(kept.folder, kept.socket, launch, "c1")
    eventually(lambda: "up" in kept.log)
    kept.stop()
    assert "bye" in kept.log and kept.state.exit_code == 5


def test_the_control_group_goes_with_the_service(kept: Kept) -> None:
    group = cgroups.parent().group(group_name(kept.mark))
    if group is None:
        pytest.skip("no control group can be made here")
    kept.start("exec sleep 60")
    assert kept.state.pid in group.pids()
    kept.stop()
    assert not any(Path(folder).exists() for folder in group.folders.values())


def test_a_stopped_service_is_not_started_again_whatever_its_policy(kept: Kept) -> None:
    kept.start("echo up; exec sleep 60", restart="always")
    eventually(lambda: "up" in kept.log)
    kept.stop()
    assert (kept.state.state, kept.state.restarts, kept.state.alive) == ("exited", 0, False)

"""What the waiting and asking commands call, show and end with, against a daemon that answers by script."""

import json
import os
import pty
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.daemon import fake
from tests.daemon.house import House, house, until

BAY = fake.bay("login").as_json()
RUN = {"run": "r-1", "bay": "login", "task": "unit"}
FAILED = RUN | {
    "status": "failed", "reason": "tests_failed", "exit_code": 1, "duration_ms": 2140,
    "counts": {"total": 3, "passed": 2, "failed": 1, "errors": 0, "skipped": 0},
    "failures": [{"name": "test_total", "file": "tests/test_cart.py", "line": 12, "message": "assert 3 == 4",
                  "expected": "4", "actual": "3"}],
    "log": "/logs/r-1",
}  # fmt: skip


class Scripted(House):
    def script(self, **answers: Any) -> None:
        """Answers by tool or method name (`__` stands for a dot)."""
        named = {name.replace("__", "."): value for name, value in answers.items()}
        (self.home.state_dir / "script.json").write_text(json.dumps(named))

    def calls(self) -> list[tuple[str, dict[str, Any]]]:
        path = self.home.state_dir / "calls.jsonl"
        return [tuple(json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Scripted]:
    with house(tmp_path / "user") as found:
        found.__class__ = Scripted
        found.client().__exit__()
        yield found  # type: ignore[misc]


def loads(text: str) -> Any:
    return json.loads(text)


def test_new_sends_what_was_said_and_waits_until_the_bay_runs(home: Scripted) -> None:
    home.script(
        bay_create=[BAY | {"state": "creating"}],
        bay_status=[BAY | {"state": "starting"}, BAY | {"state": "running"}],
    )
    found = home.command("new", "login", "--branch", "feat/login", "--from", "main", "--alias", "l", "--json")
    assert loads(found.stdout)["state"] == "running"
    assert found.returncode == 0
    assert home.calls() == [
        ("bay_create", {"name": "login", "branch": "feat/login", "from_branch": "main", "alias": "l",
                        "wait_s": 45}),
        ("bay_status", {"bay": "0123abcd", "wait_s": 45}),
        ("bay_status", {"bay": "0123abcd", "wait_s": 45}),
    ]  # fmt: skip
    assert "working on bay_status" in found.stderr


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"state": "running"}, 0),
        ({"state": "cold"}, 0),
        ({"state": "degraded", "reason": "probe_failed"}, 1),
        ({"state": "failed"}, 1),
        ({"state": "degraded", "pending_approvals": ["services/api: docker socket"]}, 3),
    ],
)
@pytest.mark.parametrize("words", [["up", "login"], ["restart", "login", "api"]])
def test_a_boots_exit_code_says_whether_it_came_up(
    home: Scripted, words: list[str], change: dict[str, Any], code: int
) -> None:
    home.script(bay_up=[BAY | change])
    found = home.command(*words)
    assert found.returncode == code
    assert "login--shop" in found.stdout
    if words[0] == "restart":
        assert home.calls()[0][1] == {"bay": "login", "services": ["api"], "restart": True, "wait_s": 45}


def test_repo_is_sent_as_an_absolute_path(home: Scripted) -> None:
    home.script(bay_status=[BAY])
    home.command("status", "login", "--repo", "some/../dir")
    assert home.calls()[0][1]["repo"] == str(fake.ROOT / "dir")


def test_run_waits_to_the_end_and_shows_file_and_line(home: Scripted) -> None:
    home.script(
        bay_run_task=[RUN | {"status": "queued"}],
        bay_run_result=[RUN | {"status": "running"}, FAILED],
    )
    found = home.command("run", "login", "unit", "--timeout", "9", "--only-failed", "--", "-k", "--json")
    assert found.returncode == 1
    assert found.stdout.splitlines() == [
        "failed unit (tests_failed) in 2.14 s 2 passed, 1 failed exit code 1 r-1",
        "tests/test_cart.py:12: test_total: assert 3 == 4",
        "    expected 4, got 3",
        "log: /logs/r-1",
    ]
    assert home.calls()[0] == (
        "bay_run_task",
        {"bay": "login", "task": "unit", "args": ["-k", "--json"], "only_failed": True, "timeout_s": 9.0,
         "wait_s": 45},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("result", "code"),
    [
        ({"status": "passed"}, 0),
        ({"status": "error", "reason": "approval_required"}, 3),
        ({"status": "error", "reason": "no_report"}, 1),
        ({"status": "timeout"}, 1),
        ({"status": "lost"}, 1),
        ({"status": "cancelled"}, 1),
    ],
)
def test_a_runs_exit_code_is_zero_only_if_it_passed(
    home: Scripted, result: dict[str, Any], code: int
) -> None:
    home.script(bay_run_task=[RUN | result])
    found = home.command("run", "login", "unit", "--json")
    assert found.returncode == code
    assert loads(found.stdout) == RUN | result


def test_a_run_into_a_closed_pipe_still_ends_with_its_own_code(home: Scripted) -> None:
    home.script(bay_run_task=[FAILED])
    script = f"'{sys.executable}' -m devbay run login unit 2>/dev/null | head -0; echo ${{PIPESTATUS[0]}}"
    found = subprocess.run(
        ["bash", "-c", script], cwd=fake.ROOT, env=home.env, capture_output=True, check=True
    )
    assert found.stdout == b"1\n"


def test_junit_is_written_where_it_was_asked_for(home: Scripted, tmp_path: Path) -> None:
    home.script(bay_run_task=[RUN | {"status": "passed"}], run__junit=[{"xml": "<testsuites/>"}])
    path = tmp_path / "out.xml"
    assert home.command("run", "login", "unit", "--junit", str(path)).returncode == 0
    assert path.read_text() == "<testsuites/>"
    assert home.calls()[-1] == ("run.junit", {"run": "r-1"})


def test_a_junit_file_in_no_folder_is_refused_before_the_run(home: Scripted) -> None:
    found = home.command("run", "login", "unit", "--junit", "/no/such/dir/x.xml")
    assert found.returncode == 2
    assert home.calls() == []


def test_ctrl_c_during_a_run_cancels_it(home: Scripted) -> None:
    home.script(
        bay_run_task=[RUN | {"status": "running"}],
        bay_run_result=[RUN | {"status": "running"}],
        run__cancel=[{"cancelled": True}],
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "devbay", "run", "login", "unit"], cwd=fake.ROOT, env=home.env,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    until(lambda: [name for name, _ in home.calls()].count("bay_run_result") > 1, "it polls")
    process.send_signal(2)
    assert "Traceback" not in process.communicate(timeout=10)[1]
    assert process.returncode == 130
    assert ("run.cancel", {"run": "r-1"}) in home.calls()


def test_waiting_for_a_daemon_that_answers_at_once_is_no_busy_loop(home: Scripted) -> None:
    home.script(bay_up=[BAY | {"state": "starting"}], bay_status=[BAY | {"state": "starting"}])
    process = subprocess.Popen(
        [sys.executable, "-m", "devbay", "up", "login"],
        cwd=fake.ROOT,
        env=home.env,
        stderr=subprocess.DEVNULL,
    )
    until(home.calls, "it calls")
    time.sleep(1)
    process.kill()
    process.wait()
    assert len(home.calls()) < 10


def test_a_refused_destroy_names_the_files_and_ends_with_three(home: Scripted) -> None:
    error = {"code": "refused_dirty", "message": "login holds work", "next": "commit or --force",
             "exit_code": 3, "files": ["a.py"]}  # fmt: skip
    home.script(bay_destroy=[{"raise": error}])
    found = home.command("rm", "login")
    assert found.returncode == 3
    assert "a.py" in found.stderr
    as_json = home.command("rm", "login", "--json")
    assert as_json.returncode == 3
    assert loads(as_json.stdout)["error"]["files"] == ["a.py"]


def test_a_dry_run_of_destroy_lists_and_sends_its_flags(home: Scripted) -> None:
    answer = {"bay": "login", "destroyed": False, "dry_run": True, "removed": ["volume v"],
              "kept": ["branch b"], "blockers": ["a.py"]}  # fmt: skip
    home.script(bay_destroy=[answer])
    found = home.command("rm", "login", "--dry-run", "--force")
    assert found.returncode == 0
    for part in ("would remove login", "volume v", "kept: branch b", "a.py"):
        assert part in found.stdout
    assert home.calls()[0][1] == {"bay": "login", "dry_run": True, "force": True}


@pytest.mark.parametrize("state", ["cool", "freeze", "thaw"])
def test_rest_commands_name_their_state(home: Scripted, state: str) -> None:
    home.script(bay_rest=[BAY])
    assert home.command(state, "login").returncode == 0
    assert home.calls()[0] == ("bay_rest", {"bay": "login", "state": state})


def test_logs_prefix_lines_only_where_services_differ(home: Scripted) -> None:
    one = {"bay": "login", "lines": [{"service": "web", "text": "a"}, {"service": "web", "text": "b"}]}
    two = {"bay": "login", "lines": [{"service": "web", "text": "a"}, {"service": "db", "text": "b"}]}
    home.script(bay_logs=[one, two])
    assert home.command("logs", "login", "-n", "5").stdout == "a\nb\n"
    assert home.command("logs", "login").stdout == "web | a\ndb | b\n"
    assert home.calls()[0][1] == {"bay": "login", "lines": 5}


def test_followed_logs_come_line_by_line(home: Scripted) -> None:
    home.script(logs__follow=[[{"service": "web", "text": "a"}, {"service": "db", "text": "é"}]])
    assert home.command("logs", "login", "-f").stdout == "web | a\ndb | é\n"
    home.script(logs__follow=[[{"text": "a"}]])
    assert loads(home.command("logs", "login", "-f", "--json").stdout) == {"text": "a"}


def test_url_says_which_is_for_what(home: Scripted) -> None:
    both = {"bay": "login", "service": "web", "url": "http://127.0.0.1:1", "public_url": "http://x.localhost"}
    home.script(bay_url=[both, both | {"public_url": None}])
    assert home.command("url", "login").stdout.splitlines() == [
        "url         http://127.0.0.1:1  for code on this machine",
        "public_url  http://x.localhost  for a browser",
    ]
    assert home.command("url", "login").stdout == "url  http://127.0.0.1:1  for code on this machine\n"
    assert home.command("open", "login").returncode == 1


def test_open_without_a_display_prints_the_url_and_the_reason(home: Scripted) -> None:
    home.script(bay_url=[{"bay": "login", "service": "web", "public_url": "http://x.localhost"}])
    found = home.command("open", "login")
    assert (found.returncode, found.stdout) == (0, "http://x.localhost\n")
    assert "no display" in found.stderr


def test_exec_becomes_the_engines_client(home: Scripted) -> None:
    answer = {"argv": ["sh", "-c", 'echo "$WHAT $0 $1"; exit 7', "a", "b c"], "env": {"WHAT": "hi"}}
    home.script(exec=[answer])
    found = home.command("exec", "login", "web", "--", "ls", "--json", "-x")
    assert (found.returncode, found.stdout) == (7, "hi a b c\n")
    assert home.calls()[0] == (
        "exec", {"bay": "login", "service": "web", "argv": ["ls", "--json", "-x"], "tty": False},
    )  # fmt: skip


def test_exec_without_the_client_says_which(home: Scripted) -> None:
    home.script(exec=[{"argv": ["/no/such/docker"], "env": {}}])
    found = home.command("exec", "login", "--", "ls")
    assert found.returncode == 1
    assert "/no/such/docker" in found.stderr


ITEM = {"key": "k1", "bay": "login", "path": "services/api", "summary": "mounts the engine's socket",
        "detail": "docker_socket: true"}  # fmt: skip


def test_approve_with_nothing_pending_ends_with_zero(home: Scripted) -> None:
    home.script(approve__list=[{"items": []}])
    found = home.command("approve")
    assert (found.returncode, found.stdout) == (0, "nothing waits for approval\n")
    assert loads(home.command("approve", "--json").stdout) == {"items": [], "granted": []}


def test_approve_without_a_terminal_changes_nothing_and_ends_with_three(home: Scripted) -> None:
    home.script(approve__list=[{"items": [ITEM]}], approve__grant=[{}])
    found = home.command("approve", stdin=None, input="y\n")
    assert found.returncode == 3
    assert "services/api" in found.stderr
    assert loads(home.command("approve", "--json").stdout)["error"]["items"] == [ITEM]
    assert {name for name, _ in home.calls()} == {"approve.list"}


@pytest.mark.parametrize(
    ("typed", "granted", "code"),
    [("y\ny\n", ["k1", "k2"], 0), ("y\n\n", ["k1"], 3), ("n\n\x04", [], 3), ("q\n", [], 3)],
)
def test_approve_asks_item_by_item(home: Scripted, typed: str, granted: list[str], code: int) -> None:
    home.script(approve__list=[{"items": [ITEM, ITEM | {"key": "k2"}]}], approve__grant=[{}])
    parent, child = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "devbay", "approve"], cwd=fake.ROOT, env=home.env,
        stdin=child, stdout=subprocess.PIPE, stderr=child, text=True,
    )  # fmt: skip
    os.close(child)
    os.write(parent, typed.encode())
    output, _ = process.communicate(timeout=20)
    os.close(parent)
    assert process.returncode == code
    assert output == f"approved {len(granted)} of 2\n"
    assert [params["key"] for name, params in home.calls() if name == "approve.grant"] == granted


def test_doctor_ends_with_one_if_something_blocks(home: Scripted) -> None:
    checks = [{"name": "engine", "status": "error", "detail": "not running", "next": "make engine"}]
    home.script(doctor=[{"ok": False, "checks": checks}])
    found = home.command("doctor")
    assert found.returncode == 1
    assert found.stdout == "error   engine: not running\n        next: make engine\n"


def test_gc_lists_what_it_removed(home: Scripted) -> None:
    home.script(gc=[{"removed": ["volume v", "network n"]}, {"removed": []}])
    assert home.command("gc", "--all").stdout == "removed:\n  volume v\n  network n\n"
    assert home.command("gc").stdout == "nothing to remove\n"
    assert [params for _, params in home.calls()] == [{"all": True}, {"all": False}]


def test_report_reads_output_without_a_daemon(tmp_path: Path) -> None:
    with house(tmp_path / "other") as home:
        xml = tmp_path / "r.xml"
        xml.write_text(
            '<testsuite tests="1"><testcase name="a"><failure message="no"/></testcase></testsuite>'
        )
        found = home.command("report", str(xml), "--json", "--exit-code", "1")
        assert loads(found.stdout)["status"] == "failed"
        assert found.returncode == 1
        assert "a: no" in home.command("report", str(xml), "--exit-code", "1").stdout
        assert home.command("report", str(xml), "--argv", "{}").returncode == 2
        assert home.pid() is None

"""Runs: only what is needed starts, each among its own processes, timeouts keep what was printed."""

from __future__ import annotations

import signal
import sqlite3
import threading
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from devbay.errors import DevbayError
from integration.house import House, wait_for

RUNTIMES = ("docker", "host")
SERVER = """\
    image: python:3.13-slim
    start: [python, -m, http.server, "8080", -b, 0.0.0.0, -d, www]
    port: 8080
    health: {http: /}
"""
MANIFEST = f"""\
version: 1
project: tasks
services:
  db:
{SERVER}
  api:
    needs: [db]
    primary: true
{SERVER}
  extra:
{SERVER}
"""
MANIFEST += """\
tasks:
  hello: {run: [echo, hello], needs: []}
  ask-db: {run: [python, ask.py], needs: [db], env: {URL: "${bay.db.url}"}}
  ask-api: {run: [python, ask.py], needs: [api], env: {URL: "${bay.api.url}"}}
  args: {run: [echo, got], needs: []}
  fail: {run: [sh, -c, "echo it broke >&2; exit 7"], needs: []}
  slow:
    run: [sh, -c, "echo started; (trap '' TERM; sleep 300) & trap '' TERM; sleep 300"]
    needs: []
    timeout: 2s
  nap: {run: [sleep, "30"], needs: []}
  installs: {image: "python:3.13-slim", install: [sleep, "30"], run: ["true"], needs: []}
  meet: # ends when both are there
    run:
    - sh
    - -c
    - |
      echo $1 >> $DEVBAY_RUN_DIR/me; echo "$$ $(readlink /proc/self/ns/pid)"; touch met-$1
      until [ -e met-one ] && [ -e met-two ]; do sleep 0.05; done
      cat $DEVBAY_RUN_DIR/me
    - x
    needs: []
    timeout: 60s
  said: {run: [sh, -c, "sleep 1; echo said"], needs: []}
  eat: {run: [sh, -c, "echo begun; tail /dev/zero"], needs: [], limits: {memory: 32m}}
  junit:
    run: [cp, report.xml, out.xml]
    needs: []
    report: {format: junit, path: out.xml}
  slow-junit:
    run: [sh, -c, "rm -f out.xml; touch in-$1; until [ -e go ]; do sleep .1; done; cp report.xml out.xml", x]
    needs: []
    report: {format: junit, path: out.xml}
    timeout: 60s
  no-report:
    run: ["true"]
    needs: []
    report: {format: junit, path: never.xml}
  where:
    run: [sh, -c, "pwd; readlink -f /workspace/devbay.yaml; touch written"]
    needs: []
"""
ASK = "import os, urllib.request as u; u.urlopen(os.environ['URL'], timeout=5).read()\n"
REPORT = """\
<testsuite name="s" tests="2" failures="1"><testcase classname="a" name="good"/>
<testcase classname="a" name="bad" file="/workspace/src/test_a.py" line="3">
<failure message="assert 1 == 2">/workspace/src/test_a.py:3: AssertionError</failure></testcase></testsuite>
"""


@pytest.fixture(scope="module")
def repository(make: Callable[..., Path], house: House) -> Path:
    test = "def test_bad():\n\n    assert 1 == 2\n"
    files = {
        "ask.py": ASK,
        "report.xml": REPORT,
        "src/test_a.py": test,
        ".gitignore": "out.xml\nmet-*\nin-*\ngo\n",
    }
    path: Path = make("tiny", "tasks", MANIFEST, **files)
    house.devbay("new", "cold", "--no-boot", cwd=path)
    return path


@pytest.fixture
def cold(house: House, repository: Path) -> str:
    """A bay of which nothing runs."""
    house.devbay("cool", "cold", cwd=repository)
    return "cold"


def test_needs_of_nothing_starts_nothing(house: House, repository: Path, cold: str):
    result = house.json("run", cold, "hello", cwd=repository)
    assert result["status"] == "passed"
    assert not result.get("started_services")
    assert house.running() == {}


def test_only_the_subgraph_of_a_task_starts(house: House, repository: Path, cold: str):
    result = house.json("run", cold, "ask-db", cwd=repository)
    assert (result["status"], result["started_services"]) == ("passed", ["db"])
    assert house.running().keys() == {"db"}
    result = house.json("run", cold, "ask-api", cwd=repository)
    assert result["started_services"] == ["api"]
    assert house.running().keys() == {"db", "api"}
    info = house.json("status", cold, cwd=repository)
    assert (info["state"], info["partial"]) == ("running", True)


def test_a_run_is_gone_from_the_engine_when_it_is_over(house: House, repository: Path, cold: str):
    house.devbay("run", cold, "hello", cwd=repository)
    assert house.runs(everything=True) == []


def test_arguments_after_two_hyphens_are_appended(house: House, repository: Path):
    result = house.json("run", "cold", "args", cwd=repository, code=0)
    assert result["status"] == "passed"
    ran = house.devbay("run", "cold", "args", "--", "one two", "--three", cwd=repository)
    run = ran.out.split()[-1]
    lines = house.json("logs", "cold", "--run", run, cwd=repository)["lines"]
    assert [line["text"] for line in lines] == ["got one two --three"]


def test_a_failing_command_without_a_report_shows_its_exit_code_and_output(house: House, repository: Path):
    result = house.json("run", "cold", "fail", cwd=repository, code=1)
    assert (result["status"], result["exit_code"], result["parsed"]) == ("failed", 7, False)
    assert "counts" not in result or result["counts"] is None
    assert "it broke" in result["output"]


def test_a_time_limit_kills_the_whole_tree_and_keeps_what_was_printed(house: House, repository: Path):
    result = house.json("run", "cold", "slow", cwd=repository, code=1)
    assert (result["status"], result["reason"]) == ("timeout", "timeout")
    assert "started" in result["output"]
    assert house.runs(everything=True) == []
    sleepers = [
        entry for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and (entry / "cmdline").exists() and b"sleep\x00300\x00" in _cmdline(entry)
    ]  # fmt: skip
    assert sleepers == []


def _cmdline(entry: Path) -> bytes:
    try:
        return (entry / "cmdline").read_bytes()
    except OSError:
        return b""


def test_a_limit_of_one_call_replaces_the_tasks(house: House, repository: Path):
    result = house.json("run", "cold", "nap", "--timeout", "1", cwd=repository, code=1)
    assert result["status"] == "timeout"


def test_two_runs_in_one_bay_go_side_by_side_and_do_not_meet(house: House, repository: Path):
    results: list[dict[str, Any]] = []

    def run(word: str) -> None:
        with house.client(repository) as client:
            results.append(client.tool("bay_run_task", {"bay": "cold", "task": "meet", "args": [word]}))

    threads = [threading.Thread(target=run, args=(word,)) for word in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [result["status"] for result in results] == ["passed", "passed"], "they waited for each other"
    logs = [house.json("logs", "cold", "--run", result["run"], cwd=repository)["lines"] for result in results]
    texts = [[line["text"] for line in lines] for lines in logs]
    assert texts[0][0] != texts[1][0], "they saw each other's processes"
    assert sorted(text[1:] for text in texts) == [["one"], ["two"]]


def test_paths_of_a_report_are_relative_to_the_repository(house: House, repository: Path):
    result = house.json("run", "cold", "junit", cwd=repository, code=1)
    (failure,) = result["failures"]
    assert (failure["file"], failure["line"]) == ("src/test_a.py", 3)
    assert (result["reason"], result["exit_code"]) == ("unreported", 0)


def test_a_missing_report_never_reads_as_passed(house: House, repository: Path):
    result = house.json("run", "cold", "no-report", cwd=repository, code=1)
    assert (result["status"], result["reason"]) == ("error", "no_report")


def test_junit_is_written_where_it_is_asked_for(house: House, repository: Path, tmp_path: Path):
    target = tmp_path / "out file.xml"
    house.devbay("run", "cold", "junit", "--junit", str(target), cwd=repository, code=1)
    cases = ElementTree.parse(target).getroot().iter("testcase")
    assert sorted(case.get("name") or "" for case in cases) == ["bad", "good"]


def test_a_task_stands_in_the_worktree_as_the_callers_user(house: House, repository: Path):
    result = house.json("run", "cold", "where", cwd=repository)
    lines = [
        line["text"] for line in house.json("logs", "cold", "--run", result["run"], cwd=repository)["lines"]
    ]
    assert lines[0] == str(repository / ".devbay/bays/cold")
    assert lines[1] == str(repository / ".devbay/bays/cold/devbay.yaml")
    written = repository / ".devbay/bays/cold/written"
    assert written.stat().st_uid == repository.stat().st_uid
    written.unlink()


def test_past_its_wait_a_run_goes_on_and_its_result_can_be_fetched(house: House, repository: Path):
    with house.client(repository) as client:
        result = client.tool("bay_run_task", {"bay": "cold", "task": "said", "wait_s": 0})
        assert result["status"] == "running"
        result = client.tool("bay_run_result", {"run": result["run"], "wait_s": 30})
        assert result["status"] == "passed"


def test_a_bay_with_a_run_refuses_to_be_cooled_or_destroyed(house: House, repository: Path):
    with house.client(repository) as client:
        run = client.tool("bay_run_task", {"bay": "cold", "task": "nap", "wait_s": 0})["run"]
        for tool, more in (("bay_rest", {"state": "cool"}), ("bay_destroy", {})):
            with pytest.raises(DevbayError, match=run) as raised:
                client.tool(tool, {"bay": "cold", **more})
            assert raised.value.code == "busy"
        client.tool("bay_rest", {"bay": "cold", "state": "cool", "force": True})
        result = client.tool("bay_run_result", {"run": run, "wait_s": 10})
        assert result["status"] == "cancelled", "it waited for the run instead of ending it"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_ends_with_the_command_that_started_it(house: House, repository: Path, number: signal.Signals):
    started = house.start("run", "cold", "nap", cwd=repository)
    wait_for(lambda: house.runs(), "the run to start")
    started.send_signal(number)
    started.communicate(timeout=20)
    assert started.returncode not in (0, None)
    wait_for(lambda: not house.runs(everything=True), "the run to go")


def test_runs_with_the_same_report_go_one_after_another(house: House, repository: Path):
    tree = repository / ".devbay/bays/cold"
    with house.client(repository) as client:

        def start(word: str) -> dict[str, Any]:
            return client.tool(
                "bay_run_task", {"bay": "cold", "task": "slow-junit", "args": [word], "wait_s": 0}
            )

        first = start("first")
        wait_for((tree / "in-first").exists, "the first run to start")
        second = start("second")
        state = {"run": second["run"], "wait_s": 0}
        waiting = wait_for(
            lambda: (found := client.tool("bay_run_result", state))["status"] == "queued" and found,
            "the second run to be queued",
        )
        assert waiting["position"] == 1
        assert not (tree / "in-second").exists()
        (tree / "go").touch()
        for run in (first, second):
            result = client.tool("bay_run_result", {"run": run["run"], "wait_s": 45})
            assert result["counts"]["failed"] == 1
    assert (tree / "in-second").exists()


def test_a_queued_run_can_be_cancelled(house: House, repository: Path):
    tree = repository / ".devbay/bays/cold"
    (tree / "go").unlink(missing_ok=True)
    first = house.start("run", "cold", "slow-junit", "--", "third", cwd=repository)
    wait_for((tree / "in-third").exists, "the first run to start")
    second = house.start("run", "cold", "slow-junit", "--", "fourth", cwd=repository)
    with sqlite3.connect(house.home.store) as store:
        queued = "SELECT id FROM runs WHERE status = 'queued'"
        wait_for(lambda: store.execute(queued).fetchall(), "the second run to wait")
    second.send_signal(signal.SIGINT)
    second.communicate(timeout=20)
    (tree / "go").touch()
    _, said = first.communicate(timeout=40)
    assert first.returncode == 1, said
    assert not (tree / "in-fourth").exists()


def test_a_run_that_eats_its_memory_is_told_as_such(house: House, repository: Path):
    if "setrlimit" in house.json("status", "cold", cwd=repository).get("isolation", ""):
        pytest.skip("no control groups: who asks for too much memory is refused it, and not killed")
    result = house.json("run", "cold", "eat", cwd=repository, code=1)
    assert (result["status"], result["reason"]) == ("error", "out_of_memory")
    assert "begun" in result["output"]


def test_a_run_that_is_cancelled_while_it_installs_is_cancelled(house: House, repository: Path):
    with house.client(repository) as client:
        run = client.tool("bay_run_task", {"bay": "cold", "task": "installs", "wait_s": 2})["run"]
        client.private("devbay/run.cancel", {"run": run})
        result = client.tool("bay_run_result", {"run": run, "wait_s": 10})
    assert (result["status"], result["reason"]) == ("cancelled", "cancelled")


def test_an_unknown_task_names_those_there_are(house: House, repository: Path):
    error = house.devbay("run", "cold", "helo", "--json", cwd=repository, code=2).error
    assert error["code"] == "unknown_task"
    assert "hello" in error["message"] + error["next"]

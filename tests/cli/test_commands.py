import json
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from devbay.cli.app import COMMANDS
from tests.daemon import fake
from tests.daemon.house import House, house


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with house(tmp_path_factory.mktemp("user")) as found:
        found.client().__exit__()
        yield found


@pytest.fixture
def home(tmp_path: Path) -> Iterator[House]:
    with house(tmp_path / "user") as found:
        yield found


def loads(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    return found


def test_every_command_explains_itself(shared: House) -> None:
    listing = shared.command("--help").stdout
    for name in COMMANDS:
        assert f"\n  {name} " in listing
    code = (
        "from devbay.cli.app import COMMANDS, run\n"
        "for name in COMMANDS: assert run([name, '--help']) == 0, name"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=fake.ROOT, capture_output=True, text=True, check=True
    )
    assert found.stdout.count("Usage: devbay") == len(COMMANDS)
    assert found.stdout.count("--json") >= len(COMMANDS) - 1


def test_a_command_imports_no_other_commands_module_and_no_engine_code(shared: House) -> None:
    code = (
        "import sys; from devbay.cli.app import run; assert run(['ls', '--json']) == 0\n"
        "print(*sorted(name for name in sys.modules if name.startswith('devbay')), file=sys.stderr)\n"
        "assert 'rich' not in sys.modules and 'mcp' not in sys.modules"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        cwd=fake.ROOT,
        env=shared.env,
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stderr.split() == [
        "devbay", "devbay.cli", "devbay.cli.app", "devbay.cli.ls", "devbay.cli.out", "devbay.cli.render",
        "devbay.cli.session", "devbay.client", "devbay.connection", "devbay.errors", "devbay.home",
    ]  # fmt: skip


def test_json_is_the_tools_structured_answer(shared: House) -> None:
    found = shared.command("ls", "--json")
    with shared.client() as client:
        assert loads(found.stdout) == client.tool("bay_list", {})
    assert found.stderr == ""


def test_a_table_has_aligned_columns_and_no_colour_in_a_pipe(shared: House) -> None:
    lines = shared.command("ls").stdout.splitlines()
    assert lines[0] == "BAY    STATE    BRANCH  URL"
    assert lines[1] == "bay-0  running  bay-0   http://bay-0--shop.localhost"
    assert "\x1b" not in "".join(lines)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["lsx"], 2), (["ls", "--bogus"], 2), (["status"], 2), (["new"], 2), (["exec", "a"], 2),
        (["daemon", "explode"], 2), (["mcp", "x"], 2), (["run", "a"], 2), (["logs", "a", "-n", "0"], 2),
    ],
)  # fmt: skip
def test_a_wrong_call_ends_with_two_and_words_on_stderr(shared: House, words: list[str], code: int) -> None:
    found = shared.command(*words)
    assert found.returncode == code
    assert found.stdout == ""
    assert found.stderr
    assert "Traceback" not in found.stderr
    as_json = shared.command(*words, "--json")
    assert as_json.returncode == code
    assert set(loads(as_json.stdout)["error"]) >= {"code", "message", "next"}


def test_an_error_of_a_tool_is_shown_with_its_next_step_and_code(shared: House) -> None:
    found = shared.command("status", "nope")
    assert found.returncode == 2
    assert found.stderr == (
        "working on bay_status\n"
        "error: no script for bay_status (unknown_bay)\ncandidates:\n  a\n  b\nnext: devbay ls\n"
    )
    error = loads(shared.command("status", "nope", "--json").stdout)["error"]
    assert error["code"] == "unknown_bay"
    assert error["candidates"] == ["a", "b"]


def test_a_reader_that_leaves_is_no_failure(shared: House) -> None:
    script = f"'{sys.executable}' -m devbay ls | head -0; echo ${{PIPESTATUS[0]}}"
    found = subprocess.run(
        ["bash", "-c", script], cwd=fake.ROOT, env=shared.env, capture_output=True, text=True, check=True
    )
    assert (found.stdout, found.stderr) == ("0\n", "")


def test_a_full_disk_under_stdout_is_said(shared: House) -> None:
    with Path("/dev/full").open("w") as full:
        found = subprocess.run(
            [sys.executable, "-m", "devbay", "ls"], cwd=fake.ROOT, env=shared.env, stdout=full,
            stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert found.returncode == 1
    assert "No space left" in found.stderr
    assert "Traceback" not in found.stderr


def test_a_folder_that_was_removed_is_said(shared: House, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    env = {**shared.env, "PYTHONPATH": str(fake.ROOT)}
    script = f"cd {gone}; rmdir {gone}; exec '{sys.executable}' -m devbay.__main__ ls"
    found = subprocess.run(["bash", "-c", script], env=env, capture_output=True, text=True, check=False)
    assert found.returncode == 2
    assert "no_directory" in found.stderr


def test_version_is_shown_without_a_daemon(home: House) -> None:
    assert home.command("version").stdout.startswith("devbay ")
    assert home.command("--version").stdout.startswith("devbay ")
    assert set(loads(home.command("version", "--json").stdout)) == {"version", "python", "platform"}
    assert home.pid() is None


def test_the_daemon_is_not_started_to_ask_for_it_or_to_stop_it(home: House) -> None:
    assert home.command("daemon").stdout == "not running\n"
    assert loads(home.command("daemon", "stop", "--json").stdout) == {"running": False}
    assert home.pid() is None


def test_stop_returns_when_the_daemon_is_gone(home: House) -> None:
    home.client().__exit__()
    assert loads(home.command("daemon", "status", "--json").stdout)["running"] is True
    assert home.command("daemon", "stop").returncode == 0
    assert home.pid() is None


def test_a_daemon_that_cannot_start_is_one_error(home: House) -> None:
    code = (
        "import sys, devbay.connection as c, tests.daemon.fake as f; c.daemon_argv = f.argv\n"
        "from devbay.cli.app import run; sys.exit(run(sys.argv[1:]))"
    )
    env = {**home.env, "LC_FAKE_FAIL": "on-fire"}
    found = subprocess.run(
        [sys.executable, "-c", code, "ls", "--json"], cwd=fake.ROOT, env=env, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert found.returncode == 1
    assert loads(found.stdout)["error"]["code"] == "daemon_failed"
    assert "on-fire" in loads(found.stdout)["error"]["message"]


VALID = (
    "version: 1\nproject: shop\nservices:\n  web:\n    image: nginx:1\n    port: 80\n    health: {http: /}\n"
)


def test_validate_needs_no_daemon_and_finds_the_repositorys_manifest(home: House, tmp_path: Path) -> None:
    inside = tmp_path / "repo" / "a" / "b"
    inside.mkdir(parents=True)
    (tmp_path / "repo" / ".git").mkdir()
    (tmp_path / "repo" / "devbay.yaml").write_text(VALID)
    found = home.command("validate", "--repo", str(inside), "--json")
    assert loads(found.stdout)["valid"] is True, found.stdout
    assert found.returncode == 0
    assert home.pid() is None


def test_validate_gives_one_for_a_bad_manifest_and_reads_stdin(home: House) -> None:
    found = home.command("validate", "-", "--json", stdin=None, input="version: 1\nbogus: 2\n")
    answer = loads(found.stdout)
    assert found.returncode == 1
    assert answer["valid"] is False
    assert any("bogus" in item["message"] or item["path"] == "bogus" for item in answer["diagnostics"])


def test_validate_of_several_files_is_one_document(home: House, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text(VALID)
    bad.write_text("- 1\n")
    found = home.command("validate", str(good), str(bad), "--json")
    assert [answer["valid"] for answer in loads(found.stdout)["results"]] == [True, False]
    assert found.returncode == 1


def test_a_file_that_does_not_exist_is_said(home: House) -> None:
    found = home.command("validate", "/no/such/file", "--json")
    assert loads(found.stdout)["error"]["code"] == "no_manifest"
    assert found.returncode == 2


def test_schema_is_json(home: House) -> None:
    assert "$schema" in loads(home.command("schema").stdout)


def test_colour_and_a_live_line_are_for_terminals_only(shared: House) -> None:
    plain = on_terminal(shared, ["ls"], NO_COLOR="1")
    assert "\x1b[" not in plain
    coloured = on_terminal(shared, ["ls"])
    assert "\x1b[32mrunning" in coloured
    assert "\x1b[" not in on_terminal(shared, ["ls"], CI="1")


def on_terminal(shared: House, words: list[str], **env: str) -> str:
    """What a command prints to a terminal of its own."""
    parent, child = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "devbay", *words], cwd=fake.ROOT, env={**shared.env, "TERM": "xterm", **env},
        stdin=child, stdout=child, stderr=child, start_new_session=True,
    )  # fmt: skip
    os.close(child)
    text = b""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if select.select([parent], [], [], 0.1)[0]:
            try:
                text += os.read(parent, 65536)
            except OSError:
                break
        elif process.poll() is not None:
            break
    process.wait()
    os.close(parent)
    return text.decode()


def test_ctrl_c_ends_with_130(home: House) -> None:
    home.client().__exit__()
    code = (
        "import sys; from devbay.cli import app, session\n"
        "wait = lambda self, name, **a: self._client.tool('wait', {'seconds': 20}, self.progress)\n"
        "session.Session.tool = wait\n"
        "sys.exit(app.run(['ls']))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=fake.ROOT, env=home.env, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr
    process.stderr.readline()
    process.send_signal(2)
    rest = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=10) == 130
    assert "Traceback" not in rest

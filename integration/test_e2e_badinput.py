"""Bad input gets a clear error that says what, where and what next, and nothing is made or lost."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from integration.house import COMMAND, House, docker
from integration.repositories import TINY, git, repository

SERVICE = "version: 1\nproject: bad\nservices:\n  web:\n    image: busybox:1.37\n"


@pytest.fixture(scope="module")
def tiny(make: Callable[..., Path]) -> Path:
    path: Path = make("tiny", "names")
    return path


@pytest.mark.parametrize(
    "name",
    ["../..", ".", "", "x" * 300, "Upper", "größe", "a--b", "-a", "a-", "a b", "a/b", "xn", "ab-bay", "a\nb"],
)
def test_a_bad_bay_name_is_refused_and_makes_nothing(house: House, tiny: Path, name: str):
    ran = house.devbay("new", "--json", "--", name, cwd=tiny, code=2)
    assert ran.error["code"] in ("bad_name", "bad_arguments")
    assert ran.error["next"]
    assert len(ran.error["message"]) < 300
    assert house.json("ls", cwd=tiny)["bays"] == []
    assert git(tiny, "branch", "--format=%(refname:short)") == "main"


@pytest.mark.parametrize("branch", ["../..", "a..b", "-x", "a b", "x.lock", "@{", "a" * 300])
def test_a_bad_branch_name_is_refused_and_makes_nothing(house: House, tiny: Path, branch: str):
    ran = house.devbay("new", "okay", f"--branch={branch}", "--no-boot", "--json", cwd=tiny, code=None)
    assert ran.code in (1, 2), str(ran)
    assert ran.error["code"] != "internal_error"
    assert house.json("ls", cwd=tiny)["bays"] == []
    assert git(tiny, "worktree", "list").count("\n") == 0


def test_an_unknown_bay_names_near_ones(house: House, tiny: Path):
    house.devbay("new", "login-fix", "--no-boot", cwd=tiny)
    error = house.devbay("status", "login-fx", "--json", cwd=tiny, code=2).error
    assert (error["code"], "login-fix" in error["message"]) == ("unknown_bay", True)
    house.devbay("rm", "login-fix", cwd=tiny)


def test_a_taken_name_is_refused_and_the_bay_unharmed(house: House, tiny: Path):
    before = house.json("new", "once", "--no-boot", cwd=tiny)
    error = house.devbay("new", "once", "--json", cwd=tiny, code=2).error
    assert error["code"] == "bay_exists"
    assert house.json("status", "once", cwd=tiny)["id"] == before["id"]
    house.devbay("rm", "once", cwd=tiny)


def test_a_folder_that_is_no_repository_is_named(house: House, tmp_path: Path):
    error = house.devbay("new", "x", "--json", cwd=tmp_path, code=2).error
    assert (error["code"], str(tmp_path) in error["message"]) == ("not_a_repository", True)


def test_a_repository_without_a_commit_is_an_error_with_a_next_step(house: House, tmp_path: Path):
    git(tmp_path, "init", "-q")
    (tmp_path / "devbay.yaml").write_text(TINY)
    ran = house.devbay("new", "x", "--json", cwd=tmp_path, code=None)
    assert ran.code in (1, 2)
    assert ran.error["code"] != "internal_error"
    assert ran.error["next"]


def bomb() -> str:
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 10)]
    return "\n".join(lines) + "\n" + TINY


MANIFESTS = {
    "unknown key": (TINY + "colour: red\n", "colour"),
    "tabs": (TINY.replace("    image", "\timage", 1), ""),
    "duplicate key": (TINY + "project: twice\n", "project"),
    "alias bomb": (bomb(), ""),
    "too big": (TINY + "# " + "x" * 10_000_000, ""),
    "no YAML": ("{{{ this is: [no yaml", ""),
    "binary": ("\x00\x01\x02", ""),
    "a list": ("- one\n- two\n", ""),
    "empty": ("", ""),
    "double hyphen in the project": (TINY.replace("project: tiny", "project: ti--ny"), "ti--ny"),
    "double hyphen in a service": (TINY.replace("  helper:", "  hel--per:"), "hel--per"),
    "command as text": (TINY.replace("run: [echo, hello]", "run: echo hello"), "run"),
    "no health": (SERVICE + "    start: [sleep, '9']\n", "health"),
    "report that escapes": (
        TINY.replace(
            "    run: [echo, hello]\n    needs: []",
            "    run: [echo, hello]\n    needs: []\n    report: {format: junit, path: ../../out.xml}",
        ),
        "out.xml",
    ),
    "mount that escapes": (
        SERVICE + "    start: [sleep, '9']\n    health: {process: true}\n"
        "    mounts: [{source: ../secrets, target: /srv/x}]\n",
        "../secrets",
    ),
    "context that escapes": (
        SERVICE.replace("image: busybox:1.37", "build: {context: ../..}") + "    health: {process: true}\n",
        "../..",
    ),
    "mount at the workspace": (
        SERVICE + "    start: [sleep, '9']\n    health: {process: true}\n"
        "    mounts: [{source: www, target: /workspace}]\n",
        "/workspace",
    ),
}


@pytest.mark.parametrize("case", MANIFESTS)
def test_a_bad_manifest_is_refused_by_validate_and_by_new(house: House, tmp_path: Path, case: str):
    text, word = MANIFESTS[case]
    repository(tmp_path / "r", {"devbay.yaml": text, "www/index.html": "x"})
    ran = house.devbay("validate", "--json", cwd=tmp_path / "r", code=1)
    assert ran.json["valid"] is False
    errors = [each for each in ran.json["diagnostics"] if each["severity"] == "error"]
    assert errors
    assert word in str(errors)
    assert len(ran.out) < 20_000
    error = house.devbay("new", "x", "--json", cwd=tmp_path / "r", code=1, timeout=30).error
    assert error["code"] in ("invalid_manifest", "bad_manifest_file")
    assert house.json("ls", cwd=tmp_path / "r")["bays"] == []
    assert git(tmp_path / "r", "worktree", "list").count("\n") == 0


def test_links_that_leave_the_repository_are_refused(house: House, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("of the machine")
    mount = (
        "    start: [sleep, '9']\n    health: {process: true}\n    mounts: [{source: link, target: /srv/x}]\n"
    )
    path = repository(tmp_path / "r", {"devbay.yaml": SERVICE + mount})
    (path / "link").symlink_to(outside)
    git(path, "add", "-A")
    git(path, "commit", "-q", "-m", "Link")
    assert house.devbay("validate", "--json", cwd=path, code=1).json["valid"] is False
    assert house.devbay("new", "x", "--json", cwd=path, code=1).error["code"] == "invalid_manifest"


def test_an_include_pattern_never_copies_from_outside(house: House, tmp_path: Path):
    (tmp_path / "secret").write_text("of the machine")
    includes = "../secret\n*.env\nlinked\n"
    files = {"www/index.html": "x", ".gitignore": "*.env\nlinked\n", ".worktreeinclude": includes}
    path = repository(tmp_path / "r", {"devbay.yaml": TINY, **files})
    (path / "x.env").symlink_to(tmp_path / "secret")
    (path / "linked").symlink_to(tmp_path)
    house.devbay("new", "x", "--no-boot", cwd=path, code=None)
    copied = [found for found in (path / ".devbay/bays").rglob("*") if found.is_file()]
    assert [found for found in copied if "of the machine" in found.read_text(errors="replace")] == []
    assert not (path / ".devbay/bays/x/linked/secret").exists()
    house.devbay("rm", "x", "--force", cwd=path, code=None)


def test_without_an_engine_devbay_answers_and_says_so_where_it_matters(own_house: House, tmp_path: Path):
    path = repository(tmp_path / "r", {"devbay.yaml": TINY, "www/index.html": "x"})
    none = {"DOCKER_HOST": f"unix://{tmp_path}/no.sock"}
    assert own_house.devbay("ls", "--json", cwd=path, env=none).json["bays"] == []
    assert own_house.devbay("validate", cwd=path, env=none)
    ran = own_house.devbay("new", "x", "--json", cwd=path, env=none, code=1)
    assert ran.error["code"] == "engine_unreachable"
    assert ran.error["next"]
    assert git(path, "worktree", "list").count("\n") == 0
    info = own_house.json("new", "y", "--no-boot", cwd=path, env=none, code=None)
    assert info["state"] in ("cold", "unknown")
    own_house.kill_daemon()
    for words in (["ls"], ["status", "y"]):
        told = own_house.devbay(*words, "--json", cwd=path, env=none).json
        (told,) = told.get("bays", [told])
        assert (told["name"], told["state"] in ("cold", "unknown")) == ("y", True)
    ran = own_house.devbay("doctor", "--json", cwd=path, env=none, code=1)
    assert any(check["status"] == "error" for check in ran.json["checks"])
    own_house.devbay("rm", "y", cwd=path, env=none)


def test_without_an_engine_the_mcp_server_starts_and_says_so_where_it_matters(house: House, tiny: Path):
    async def main() -> None:
        env = {**house.env, "DOCKER_HOST": f"unix://{house.root}/no.sock"}
        server = StdioServerParameters(command=COMMAND[0], args=["mcp"], env=env, cwd=str(tiny))
        async with Client(stdio_client(server)) as client:
            status = await client.call_tool("repo_status", {})
            assert status.structured_content["project"] == "tiny"
            result = await client.call_tool("bay_create", {"name": "x"})
            assert result.is_error
            assert "engine_unreachable" in result.content[0].text

    anyio.run(main)


def test_a_call_from_a_folder_that_is_gone_is_an_error(house: House, tmp_path: Path):
    folder = tmp_path / "gone"
    folder.mkdir()
    script = 'cd "$1" && rmdir "$1" && shift && exec "$@"'
    done = subprocess.run(
        ["sh", "-c", script, "sh", str(folder), *COMMAND, "ls", "--json"],
        env=house.env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "removed" in done.stdout


def test_nothing_of_the_bad_input_is_left_on_the_engine(house: House):
    assert house.containers() == []
    assert docker("network", "ls", "-q", "--filter", f"label=dev.devbay.home={house.home.id}") == ""

"""`devbay init --verify`: a throwaway bay proves a manifest, repairs what is known, and is gone."""

from __future__ import annotations

import signal
from collections.abc import Set
from pathlib import Path
from typing import Any

from integration.house import House, wait_for
from integration.repositories import git, repository

SERVER = """\
import http.server

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path in OPEN else 404)
        self.end_headers()

http.server.HTTPServer(("0.0.0.0", 8000), Handler).serve_forever()
"""
WEB = """\
version: 1
project: shop
services:
  web:  # the user's own words
    image: python:3.13-slim
    start: [python, server.py]
    port: PORT
    health: {http: PATH, timeout: 4s}
"""
TEST = """\
tasks:
  test:
    in: web
    run: [python, -m, unittest, test_shop]
    needs: []
"""
PASSES = "import unittest\n\n\nclass Shop(unittest.TestCase):\n    def test_open(self):\n        pass\n"
FAILS = PASSES.replace("pass\n", "print('the till is empty')\n        self.assertEqual(1, 2)\n")


def web(port: int = 8000, path: str = "/", answers: str = "/", tests: str = PASSES) -> dict[str, str]:
    """A web service whose manifest says a port and a path, and whose server answers 200 on `answers` only."""
    return {
        "devbay.yaml": WEB.replace("PORT", str(port)).replace("PATH", path) + TEST,
        "server.py": SERVER.replace("OPEN", repr([answers])),
        "test_shop.py": tests,
    }


def test_a_manifest_that_holds_is_stamped_and_otherwise_left_as_it_is(house: House):
    path = made(house, "holds", web())
    before = (path / "devbay.yaml").read_text()
    answer = verify(house, path)
    stamp, rest = (path / "devbay.yaml").read_text().split("\n", 1)
    assert answer["verified"] and answer["written"]
    assert stamp.startswith("# Verified by `devbay init --verify` on 20")
    assert stamp.endswith("(docker): web came up; task test passed (1 passed)")
    assert rest == before
    assert verify(house, path)["verified"] and (path / "devbay.yaml").read_text().count("# Verified") == 1


def test_a_wrong_port_and_a_probe_path_of_404_are_repaired_and_shown_but_not_written_over_the_users_file(
    house: House,
):
    path = made(house, "wrong", web(port=3000, path="/healthz"))
    before = (path / "devbay.yaml").read_text()
    answer = verify(house, path)
    tries = answer["verification"]["tries"]
    assert [each.get("changes") for each in tries] == [
        None,
        ["web: it listens on port 8000 and not on 3000"],
        ["web: its probe path /healthz answers 404, so / is asked"],
    ]
    assert [each["outcome"] for each in tries] == ["boot_failed", "boot_failed", "verified"]
    assert "GET /healthz" in "\n".join(tries[1]["failures"][0]["log"])
    assert answer["manifest"]["services"]["web"]["port"] == 8000
    assert "+    port: 8000" in answer["diff"] and "the user's own words" in answer["yaml"]
    assert not answer["written"] and (path / "devbay.yaml").read_text() == before


def test_where_every_path_answers_404_the_port_is_probed(house: House):
    answer = verify(house, made(house, "no-paths", web(path="/up", answers="/nowhere")))
    assert answer["verified"]
    assert answer["manifest"]["services"]["web"]["health"] == {"tcp": 8000, "timeout": "4s"}


def test_a_development_server_that_listens_for_its_own_container_is_told_to_listen_everywhere(house: House):
    manifest = WEB.replace("python:3.13-slim", "node:20-slim").replace(
        "[python, server.py]", "[npm, run, dev]"
    )
    server = """\
const at = process.argv.indexOf("--host")
const host = at < 0 ? "127.0.0.1" : process.argv[at + 1]
require("http").createServer((_, answer) => answer.end("open")).listen(5173, host)
"""
    files = {
        "devbay.yaml": manifest.replace("PORT", "5173").replace("PATH", "/"),
        "package.json": '{"name": "shop", "scripts": {"dev": "node ./vite"}}\n',
        "vite": server,
    }
    answer = verify(house, made(house, "loopback", files))
    assert answer["verified"], answer
    start = ["npm", "run", "dev", "--", "--host", "0.0.0.0"]
    assert answer["manifest"]["services"]["web"]["start"] == start


def test_a_missing_migration_becomes_the_set_up_of_the_database(house: House):
    files = {
        "devbay.yaml": """\
version: 1
project: shop
services:
  db:
    image: postgres:17
    port: 5432
    health: {cmd: [pg_isready, -U, shop, -h, 127.0.0.1], timeout: 60s}
    env: {POSTGRES_USER: shop, POSTGRES_PASSWORD: local}
  web:
    build: .
    start: [sh, -c, "psql $DATABASE_URL -c 'SELECT count(*) FROM visits' && echo open && sleep 1000"]
    needs: [db]
    env: {DATABASE_URL: "${bay.db.url}"}
    health: {log: "^open$", timeout: 10s}
""",
        "Dockerfile": "FROM postgres:17\nCOPY alembic.sh /usr/local/bin/alembic\n",
        "alembic.sh": "#!/bin/sh\npsql $DATABASE_URL -c 'CREATE TABLE visits (at date)' # $1 $2\n",
        "alembic.ini": "[alembic]\nscript_location = alembic\n",
        "requirements.txt": "alembic\n",
    }
    path = made(house, "migration", files, executable="alembic.sh")
    answer = verify(house, path)
    assert answer["verified"], answer["verification"]
    services = answer["manifest"]["services"]
    assert services["db"]["setup"] == ["migrate"]
    assert services["migrate"]["run"] == ["alembic", "upgrade", "head"]


def test_a_failing_task_is_reported_with_its_output_and_nothing_is_stamped(house: House):
    path = made(house, "fails", web(tests=FAILS))
    answer = verify(house, path, code=1)
    found = answer["verification"]
    assert (answer["verified"], found["outcome"], found["task"]) == (False, "task_failed", "test")
    assert found["result"]["status"] == "failed" and found["result"]["counts"]["failed"] == 1
    assert found["result"]["failures"][0]["file"] == "test_shop.py"
    assert "the till is empty" in "\n".join(found["log"])
    assert len(found["tries"]) == 1 and not answer["written"]


def test_what_no_repair_mends_is_reported_with_the_services_log(house: House):
    files = {**web(), "server.py": "raise SystemExit('no till')\n"}
    found = verify(house, made(house, "broken", files), code=1)["verification"]
    failure = found["tries"][0]["failures"][0]
    assert (found["outcome"], failure["service"], failure["code"]) == ("boot_failed", "web", "service_exited")
    assert failure["log"][-1] == "no till"


def test_a_proposal_is_verified_before_it_is_written(house: House):
    compose = """\
services:
  web:
    image: python:3.13-slim
    command: ["python", "/app/server.py"]
    ports: ["8000:8000"]
    volumes: [".:/app"]
"""
    files = {"compose.yaml": compose, "server.py": SERVER.replace("OPEN", "['/']")}
    path = made(house, "proposal", files)
    looked = house.json("init", str(path), "--stdout", "--verify", cwd=path, timeout=200)
    assert looked["verified"] and not (path / "devbay.yaml").exists()
    assert verify(house, path)["written"]
    assert (path / "devbay.yaml").read_text().startswith("# Verified by")


def test_past_its_wait_the_tool_answers_running_and_the_same_call_waits_for_the_end(house: House):
    path = made(house, "waits", web())
    with house.client(path) as client:
        answer = client.tool("repo_init", {"verify": True, "wait_s": 0}, None)
        assert answer["verification"]["outcome"] == "running" and not answer["verified"]
        answer = client.tool("repo_init", {"verify": True, "wait_s": 120}, None)
    assert answer["verified"] and not answer["written"]
    left_nothing(house, path)


def test_ctrl_c_ends_a_verification_and_leaves_nothing(house: House):
    path = made(house, "cancelled", web(port=3000, path="/"))
    slow = (path / "devbay.yaml").read_text().replace("4s", "100s")
    (path / "devbay.yaml").write_text(slow)
    command = house.start("init", str(path), "--verify", cwd=path)
    wait_for(lambda: house.running(), "the service to run", 60)
    command.send_signal(signal.SIGINT)
    command.communicate(timeout=30)
    wait_for(lambda: not house.json("ls", "--all", cwd=path)["bays"], "the bay to be removed", 60)
    left_nothing(house, path)


def test_what_a_killed_daemon_was_verifying_is_removed_by_the_next(own_house: House):
    path = made(own_house, "killed", web(port=3000))
    slow = (path / "devbay.yaml").read_text().replace("4s", "100s")
    (path / "devbay.yaml").write_text(slow)
    command = own_house.start("init", str(path), "--verify", cwd=path)
    wait_for(lambda: own_house.running(), "the service to run", 60)
    own_house.kill_daemon()
    command.communicate(timeout=30)
    wait_for(lambda: not own_house.json("ls", "--all", cwd=path)["bays"], "the bay to be removed", 60)
    left_nothing(own_house, path)


def test_a_detached_commit_is_verified_and_its_branch_goes_too(house: House):
    path = made(house, "detached", web(port=3000))
    git(path, "switch", "-q", "--detach")
    (path / "devbay.yaml").write_text(web()["devbay.yaml"])
    git(path, "commit", "-q", "-a", "-m", "On no branch")
    (path / "server.py").write_text("broken")
    answer = verify(house, path, changed={"server.py"})
    assert answer["verified"]
    assert "not committed" in answer["verification"]["notes"][0]


def test_a_repository_without_a_commit_says_so_and_what_waits_for_a_secret_is_not_tried(house: House):
    path = house.root / "repositories" / "empty"
    path.mkdir(parents=True)
    git(path, "init", "-q", "-b", "main")
    (path / "devbay.yaml").write_text(web()["devbay.yaml"])
    found = house.json("init", str(path), "--verify", cwd=path, code=1)["verification"]
    assert found["outcome"] == "error" and "no commit" in found["reason"]
    secret = web()["devbay.yaml"].replace("    port:", "    env: {TOKEN: '${secret:token}'}\n    port:")
    path = made(house, "secret", {**web(), "devbay.yaml": secret})
    assert verify(house, path, code=3)["verification"]["pending_approvals"]


def test_names_of_throwaway_bays_are_given_to_nobody_else(house: House):
    path = made(house, "reserved", web())
    assert house.devbay("new", "devbay-verify-mine", "--json", cwd=path, code=2).error["code"] == "bad_name"


def test_a_verification_on_this_machine_waits_for_a_person():
    with House(runtime="host") as house:
        files = web(port=3000)
        start = '[python, -m, http.server, "18431"]'
        files["devbay.yaml"] = files["devbay.yaml"].replace("[python, server.py]", start)
        path = made(house, "asks", files)
        answer = verify(house, path, code=3)
        found = answer["verification"]
        assert (found["outcome"], found.get("tries", [])) == ("approval_required", [])
        assert found["pending_approvals"]
        house.approve(path)
        answer = verify(house, path)
        assert answer["verified"] and answer["manifest"]["services"]["web"]["port"] == 18431


def made(house: House, name: str, files: dict[str, str], *, executable: str = "") -> Path:
    path = repository(house.root / "repositories" / name, files)
    if executable:
        (path / executable).chmod(0o755)
        git(path, "add", executable)
        git(path, "commit", "-q", "-m", "Let it run")
    house.repositories.append(path)
    return path


def verify(house: House, path: Path, code: int = 0, changed: Set[str] = frozenset()) -> Any:
    answer = house.json("init", str(path), "--verify", cwd=path, code=code, timeout=300)
    left_nothing(house, path, changed)
    return answer


def left_nothing(house: House, path: Path, changed: Set[str] = frozenset()) -> None:
    """No bay, nothing on the engine, no branch, no trash, and nothing in the checkout but the manifest."""
    assert house.json("ls", "--all", cwd=path)["bays"] == []
    assert house.objects() == []
    assert git(path, "for-each-ref", "--format", "%(refname:short)").split() == ["main"]
    assert len(git(path, "worktree", "list").splitlines()) == 1
    assert {line.split()[-1] for line in git(path, "status", "--short").splitlines()} <= {
        "devbay.yaml",
        *changed,
    }
    assert not house.home.trash.exists() or not list(house.home.trash.iterdir())

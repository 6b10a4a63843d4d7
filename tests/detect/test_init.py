"""What `devbay init` answers and writes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from devbay.detect.init import init
from devbay.errors import DevbayError
from devbay.manifest import load

FILES = {
    "Procfile": "web: python -m http.server 8000\n",
    "requirements.txt": "pytest\n",
    "test_a.py": "def test_a(): pass\n",
    ".env": "TOKEN=keep-me-out\n",
}


def test_a_proposal_writes_nothing_unless_asked(repo):
    root = repo(FILES).root
    answer = init(root)
    assert answer.valid and not answer.written and answer.diff is None
    assert not (root / "devbay.yaml").exists()
    assert answer.manifest["services"]["web"]["port"] == 8000
    assert answer.manifest["tasks"]["test"]["run"] == ["pytest"]
    assert "keep-me-out" not in answer.model_dump_json()


def test_a_written_proposal_loads(repo):
    root = repo(FILES).root
    assert init(root, write=True).written
    assert load(root).require().project == "shop"


def test_a_file_that_exists_is_shown_against_and_never_replaced_without_force(repo):
    root = repo({**FILES, "devbay.yaml": "# mine\nversion: 1\nproject: other\n"}).root
    answer = init(root, write=True)
    assert (
        not answer.written
        and answer.diff
        and "-project: other" in answer.diff
        and "+project: shop" in answer.diff
    )
    assert (root / "devbay.yaml").read_text().startswith("# mine")
    assert init(root, write=True, force=True).written
    assert "other" not in (root / "devbay.yaml").read_text()


def test_a_part_is_taken_over_and_the_users_comments_and_order_stay(repo):
    mine = "# mine\nversion: 1 # one\nproject: other\ntasks:\n  z: # last\n    run: [make]\n    needs: []\n"
    mine += "    image: a:1\n"
    root = repo({**FILES, "devbay.yaml": mine}).root
    answer = init(root, wanted=("services/web", "tasks/test/run"))
    assert answer.written
    text = (root / "devbay.yaml").read_text()
    assert text.startswith(mine.replace("    image: a:1\n", "")) and "image: a:1" in text
    manifest = load(root).manifest
    assert text.index("z: # last") < text.index("test:") < text.index("services:") or manifest
    assert "python:3.12-slim" in text
    assert "run: [pytest]" in text


def test_a_part_that_is_not_there_is_refused_with_what_there_is(repo):
    root = repo({**FILES, "devbay.yaml": "version: 1\nproject: other\n"}).root
    with pytest.raises(DevbayError) as refused:
        init(root, wanted=("services/nope",))
    assert refused.value.code == "unknown_part" and "web" in refused.value.next
    assert (root / "devbay.yaml").read_text() == "version: 1\nproject: other\n"


def test_a_bare_repository_and_a_missing_folder_are_refused(tmp_path: Path):
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "x.git")], check=True)
    for place, code in ((tmp_path / "x.git", "bare_repository"), (tmp_path / "nope", "no_directory")):
        with pytest.raises(DevbayError) as refused:
            init(place)
        assert refused.value.code == code


def test_an_empty_repository_gets_an_empty_proposal_that_asks(repo):
    answer = init(repo({}).root)
    assert answer.valid and answer.undecided


def test_the_same_input_gives_the_same_bytes(repo):
    root = repo(FILES).root
    assert init(root).model_dump_json() == init(root).model_dump_json()


def test_broken_files_are_named_and_the_rest_goes_on(repo):
    root = repo({
        **FILES, ".github/workflows/a.yml": "a: [", "package.json": "{", "pyproject.toml": "x = [",
        ".devcontainer/devcontainer.json": "{nope",
    }).root  # fmt: skip
    answer = init(root)
    assert answer.valid and "web" in answer.manifest["services"]
    said = " ".join(answer.warnings)
    for file in ("a.yml", "package.json", "pyproject.toml", "devcontainer.json"):
        assert file in said


def test_the_command_prints_the_answer_and_starts_no_daemon(repo, tmp_path: Path):
    root = repo(FILES).root
    env = {"HOME": str(tmp_path), "DEVBAY_HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-m", "devbay", "init", str(root), "--stdout", "--json"]
    done = subprocess.run(
        command, env=env, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2]
    )
    assert json.loads(done.stdout)["valid"]
    assert not (tmp_path / "home").exists()

"""The load path: which file is read, what is refused as one, and what an invalid manifest raises."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from devbay.errors import DevbayError
from devbay.manifest import load, parse

GOOD = "version: 1\nproject: shop\n"


def refusal(directory: Path) -> DevbayError:
    with pytest.raises(DevbayError) as caught:
        load(directory)
    return caught.value


def test_devbay_yaml_is_read_before_devbay_yml(tmp_path: Path) -> None:
    (tmp_path / "devbay.yml").write_text(GOOD.replace("shop", "other"))
    assert load(tmp_path).require().project == "other"
    (tmp_path / "devbay.yaml").write_text(GOOD)
    loaded = load(tmp_path)
    assert loaded.require().project == "shop"
    assert loaded.path == tmp_path / "devbay.yaml"
    assert loaded.source == "devbay.yaml"
    assert loaded.digest == hashlib.sha256(GOOD.encode()).hexdigest()


def test_no_manifest_names_the_command_that_makes_one(tmp_path: Path) -> None:
    error = refusal(tmp_path)
    assert (error.code, error.next) == ("no_manifest", "devbay init")


def test_a_symlink_out_of_the_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "outside.yaml").write_text(GOOD)
    repository = tmp_path / "repository"
    repository.mkdir()
    (repository / "devbay.yaml").symlink_to("../outside.yaml")
    assert refusal(repository).code == "bad_manifest_file"


def test_a_symlink_inside_the_directory_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real.yaml").write_text(GOOD)
    (tmp_path / "devbay.yaml").symlink_to("real.yaml")
    assert load(tmp_path).valid


@pytest.mark.parametrize("kind", ["directory", "fifo", "loop", "dangling"])
def test_what_is_no_regular_file_is_refused_and_does_not_hang(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "devbay.yaml"
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to("devbay.yaml" if kind == "loop" else "missing.yaml")
    assert refusal(tmp_path).code == "bad_manifest_file"


def test_a_huge_file_is_not_read_whole(tmp_path: Path) -> None:
    with (tmp_path / "devbay.yaml").open("wb") as file:
        file.truncate(10 * 1024**3)
    (found,) = load(tmp_path).errors
    assert found.rule == "limit"


def test_require_lists_every_error_with_file_line_rule_and_fix() -> None:
    loaded = parse("version: 2\nproject: Shop\nbogus: 1\n", source="devbay.yaml")
    with pytest.raises(DevbayError) as caught:
        loaded.require()
    error = caught.value
    assert (error.code, error.exit_code, error.next) == ("invalid_manifest", 1, "devbay validate")
    lines = error.message.split("\n")
    assert [line.split(" ")[0] for line in lines] == ["devbay.yaml:1:", "devbay.yaml:2:", "devbay.yaml:3:"]
    assert "(unknown-key)" in lines[2]
    assert [each["line"] for each in error.data["diagnostics"]] == [1, 2, 3]


def test_warnings_and_approvals_do_not_make_a_manifest_invalid() -> None:
    text = f"{GOOD}git: rw\nservices: {{a: {{image: a, health: {{process: true}}}}}}\n"
    loaded = parse(text)
    assert loaded.valid
    assert {each.severity for each in loaded.diagnostics} == {"warning", "approval"}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("helth", "health"),
        ("comand", "start"),
        ("depends_on", "needs"),
        ("environment", "env"),
        ("prot", "port"),
    ],
)
def test_an_unknown_key_is_answered_with_the_one_that_was_meant(written: str, meant: str) -> None:
    if written == "comand":
        written = "command"
    text = f"{GOOD}services: {{a: {{build: a, health: {{process: true}}, {written}: 1}}}}\n"
    (found,) = parse(text).errors
    assert found.fix == f"write `{meant}`"


def test_a_shell_command_is_answered_with_the_list_that_does_the_same() -> None:
    text = f"{GOOD}tasks:\n  a: {{image: 'a:1', needs: [], run: npm run 'my test'}}\n"
    text += "  b: {image: 'a:1', needs: [], run: a && b}\n"
    assert [each.fix for each in parse(text).errors] == [
        'write ["npm", "run", "my test"]',
        'write ["sh", "-c", "a && b"]',
    ]


def test_secrets_are_not_repeated_in_messages() -> None:
    secret = "aB3dE5fG7hI9jK1lM3nO5pQ7"
    text = f"{GOOD}services: {{a: {{build: a, health: {{process: true}}, env: {{K: {secret}}}}}}}\n"
    loaded = parse(text)
    assert not loaded.valid
    assert secret not in "".join(str(each) for each in loaded.diagnostics)


def test_importing_the_package_does_not_import_the_yaml_reader() -> None:
    code = "import sys, devbay.manifest; sys.exit(any(name.startswith('ruamel') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2]).returncode == 0

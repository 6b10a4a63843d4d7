from __future__ import annotations

from pathlib import Path

from devbay.client import caller_env
from devbay.runtimes.host.machine import OUTBOUND, TOOLCHAINS, Machine


def test_what_a_machine_is_told_by_reaches_the_daemon() -> None:
    names = {*TOOLCHAINS, *OUTBOUND, "LC_ALL", "LANG", "TZ", "HTTPS_PROXY", "no_proxy", "PATH", "HOME"}
    assert set(caller_env(dict.fromkeys(names, "x"))) == names


def test_a_machine_survives_its_json_form_and_holds_nothing_else_of_the_environment() -> None:
    env = {"PATH": "/a:/b", "HOME": "/home/u", "NVM_DIR": "/n", "LC_ALL": "C", "AWS_SECRET_ACCESS_KEY": "s"}
    machine = Machine.of(env)
    assert machine.to_json() == {"path": "/a:/b", "home": "/home/u", "env": {"NVM_DIR": "/n", "LC_ALL": "C"}}
    assert Machine.from_json(machine.to_json()) == machine


def test_a_proxy_with_a_password_is_not_kept_since_records_are_stored() -> None:
    env = {
        "HTTP_PROXY": "http://u:p@proxy:1", "https_proxy": "http://proxy:1", "NO_PROXY": "localhost,.lan",
        "ALL_PROXY": "u:p@proxy:1", "http_proxy": "http://[",
    }  # fmt: skip
    assert set(Machine.of(env).env) == {"https_proxy", "NO_PROXY"}


def test_folders_of_another_project_and_relative_ones_are_no_folders_of_the_machine(tmp_path: Path) -> None:
    venv, modules, plain = tmp_path / "v" / "bin", tmp_path / "node_modules" / ".bin", tmp_path / "bin"
    for folder in (venv, modules, plain):
        folder.mkdir(parents=True)
    (tmp_path / "v" / "pyvenv.cfg").touch()
    machine = Machine(f"{venv}:{modules}:.::bin:{plain}:{plain}", tmp_path)
    assert machine.folders == (plain,)


def test_a_folder_named_by_a_variable_goes_before_the_usual_one(tmp_path: Path) -> None:
    machine = Machine("/bin", tmp_path, {"NVM_DIR": "/opt/nvm", "PYENV_ROOT": "relative"})
    assert machine.folder("NVM_DIR", ".nvm") == Path("/opt/nvm")
    assert machine.folder("PYENV_ROOT", ".pyenv") == tmp_path / ".pyenv"
    assert machine.folder("VOLTA_HOME", ".volta") == tmp_path / ".volta"

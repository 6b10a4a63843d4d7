"""Dependencies are installed once for all bays; each bay has a copy that works when the template is gone."""

import dataclasses
import os
import subprocess
import zipfile
from pathlib import Path

import pytest

from devbay.errors import DevbayError
from devbay.jobs import Job
from devbay.runtimes.base import BayRef, ServiceSpec
from devbay.runtimes.host.installs import Installs
from devbay.runtimes.host.keepers import Keepers
from devbay.runtimes.host.machine import Machine
from devbay.runtimes.host.place import Place
from devbay.runtimes.host.templates import Templates
from devbay.runtimes.host.toolchains import find
from devbay.runtimes.outbound import Outbound

BAY = BayRef("0" * 8, "f" * 16, "shop", "r1", "left")
MACHINE = Machine.of(dict(os.environ))
PYTHON = find("python:3", MACHINE)
PIP = ("pip", "install", "-q", "--no-index", "--find-links", "wheels", "-r", "requirements.txt")


def wheel(folder: Path, version: str) -> None:
    """A package `greet` with a program of the same name that says its version."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"greet-{version}.dist-info"
    files = {
        "greet.py": f"def main():\n    print('greet {version}')\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: greet\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[console_scripts]\ngreet = greet:main\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD"))
    with zipfile.ZipFile(folder / f"greet-{version}-py3-none-any.whl", "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)


@pytest.fixture
def place(tmp_path) -> Place:
    return Place(tmp_path / "root", tmp_path / "s")


@pytest.fixture
def installs(place: Place) -> Installs:
    templates = Templates(place.templates)
    return Installs(place, templates, Keepers(place, BAY.home).run, MACHINE, Outbound(), "salt")


def spec(worktree: Path, version: str = "1.0", *, bay: BayRef = BAY) -> ServiceSpec:
    wheel(worktree / "wheels", version)
    (worktree / "requirements.txt").write_text(f"greet=={version}\n")
    return ServiceSpec(
        bay=bay, name="api", kind="service", image="python:3", install=PIP, worktree=worktree,
        workdir=str(worktree), install_inputs=("requirements.txt", "wheels/**"),
    )  # fmt: skip


def greeting(place: Place, bay: str = BAY.id) -> str:
    done = subprocess.run([place.venv(bay, "api") / "bin/greet"], capture_output=True, text=True)
    return done.stdout.strip() or done.stderr


def test_each_bay_has_a_copy_that_runs_without_the_template_and_installs_but_once(
    installs: Installs, place: Place, tmp_path
):
    left, right = spec(tmp_path / "left"), spec(tmp_path / "right", bay=dataclasses.replace(BAY, id="1" * 8))
    installs.give(left, PYTHON, {}, running=False, job=Job())
    made = sorted(place.templates.glob("install/*"))
    installs.give(right, PYTHON, {}, running=False, job=Job())
    assert sorted(place.templates.glob("install/*")) == made, "one template for both"
    installs.templates.clear()
    assert not list(place.templates.glob("install/*"))
    assert greeting(place) == greeting(place, "1" * 8) == "greet 1.0"
    (place.venv(BAY.id, "api") / "bin/greet").write_text("#!/bin/sh\necho changed\n")
    assert greeting(place, "1" * 8) == "greet 1.0", "bays share no file"


def test_other_inputs_are_installed_anew_but_never_under_a_running_service(
    installs: Installs, place: Place, tmp_path
):
    installs.give(spec(tmp_path / "w"), PYTHON, {}, running=False, job=Job())
    newer = spec(tmp_path / "w", "2.0")
    with pytest.raises(DevbayError) as raised:
        installs.give(newer, PYTHON, {}, running=True, job=Job())
    assert raised.value.code == "volume_in_use"
    assert greeting(place) == "greet 1.0"
    installs.give(newer, PYTHON, {}, running=False, job=Job())
    assert greeting(place) == "greet 2.0"
    assert len(list(place.venvs(BAY.id).iterdir())) == 1, "the old environment is gone"


def test_a_failed_install_says_what_it_printed_and_leaves_no_template(
    installs: Installs, place: Place, tmp_path
):
    broken = dataclasses.replace(
        spec(tmp_path / "w"), install=("sh", "-c", "echo no such thing; exit 7"), install_inputs=()
    )
    with pytest.raises(DevbayError, match="no such thing") as raised:
        installs.give(broken, PYTHON, {}, running=False, job=Job())
    assert (raised.value.code, raised.value.data["status"]) == ("install_failed", 7)
    assert not list(place.templates.glob("install/*"))
    assert place.installed(BAY.id, "api") == "none"


def test_a_volume_below_the_worktree_is_filled_with_what_the_install_made(installs: Installs, tmp_path):
    worktree = tmp_path / "w"
    worktree.mkdir()
    (worktree / "lock").write_text("1\n")
    made = ServiceSpec(
        bay=BAY, name="web", kind="service", image="debian:12", worktree=worktree, workdir=str(worktree),
        install=("sh", "-c", "mkdir modules && pwd > modules/where && ls > modules/saw"),
        install_inputs=("lock",), volumes=(f"{worktree}/modules",),
    )  # fmt: skip
    (worktree / "secret.py").write_text("not an input\n")
    target = tmp_path / "volume"
    installs.give(made, find("debian:12", MACHINE), {f"{worktree}/modules": target}, running=False, job=Job())
    assert (target / "where").read_text().strip() == str(worktree), "as if it was made in the bay"
    assert (target / "saw").read_text().split() == ["lock", "modules"]

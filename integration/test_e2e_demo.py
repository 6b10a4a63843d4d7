"""`devbay demo` shows what it promises, ends with 0, and leaves nothing, whatever happens on the way."""

from __future__ import annotations

import signal
import subprocess
import tempfile
import zipfile
from pathlib import Path

import pytest

from integration.house import COMMAND, House, docker, wait_for

ROOT = Path(__file__).parent.parent


def folders() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob("devbay-demo-*"))


@pytest.fixture
def clean(own_house: House):
    """Nothing of a demo may be there afterwards."""
    before = folders()
    yield
    assert folders() == before
    assert own_house.json("ls", "--all", cwd=own_house.root)["bays"] == []
    assert own_house.objects() == []


def test_the_demo_shows_a_typed_failure_and_two_bays_apart(own_house: House, clean: None):
    ran = own_house.devbay("demo", timeout=300)
    assert ran.out.count("http://") == 2
    assert "tests/unit/test_prices.py:9: assert 1500 == 1350" in ran.out
    assert "integration" in ran.out
    assert "removed both bays" in ran.out
    assert docker("images", "-q", "--filter", f"label=dev.devbay.home={own_house.home.id}") == ""


@pytest.mark.full
def test_the_demo_gives_its_summary_as_one_document(own_house: House, clean: None):
    summary = own_house.devbay("demo", "--json", timeout=300).json
    assert summary["ok"] is True
    assert set(summary["checks"].values()) == {True}
    assert summary["unit"]["failures"][0]["line"] == 9
    assert len({bay["public_url"] for bay in summary["bays"]}) == 2


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.full)])
def test_an_interrupted_demo_cleans_up(own_house: House, clean: None, number: signal.Signals):
    going = own_house.start("demo", cwd=own_house.root)
    wait_for(lambda: own_house.containers(everything=False), "a container of the demo", 60)
    going.send_signal(number)
    going.communicate(timeout=60)
    assert going.returncode not in (0, None)


def test_an_engine_that_was_asked_for_and_is_not_there_is_an_error(own_house: House, clean: None):
    env = {"DOCKER_HOST": f"unix://{own_house.root}/no.sock", "DEVBAY_RUNTIME": "docker"}
    ran = own_house.devbay("demo", env=env, code=1)
    assert "make engine" in ran.err
    assert "DEVBAY_RUNTIME=host" in ran.err


def test_the_demo_does_without_an_engine_that_does_not_answer(own_house: House, clean: None):
    env = {"DOCKER_HOST": f"unix://{own_house.root}/no.sock"}
    ran = own_house.devbay("demo", env=env, timeout=300)
    assert "cannot be used" in ran.out
    assert "runtime: host" in ran.out
    assert "tests/unit/test_prices.py:9: assert 1500 == 1350" in ran.out
    assert "removed both bays" in ran.out


@pytest.mark.full
def test_a_kept_demo_can_be_removed_as_it_says(own_house: House):
    before = folders()
    ran = own_house.devbay("demo", "--keep", timeout=300)
    assert len(own_house.json("ls", "--all", cwd=own_house.root)["bays"]) == 2
    words = ran.out.strip().splitlines()[-1].replace("devbay ", f"'{COMMAND[0]}' ")
    subprocess.run(["sh", "-c", words], env=own_house.env, check=True, capture_output=True)
    assert own_house.json("ls", "--all", cwd=own_house.root)["bays"] == []
    assert folders() == before


@pytest.mark.full
def test_an_installed_wheel_has_the_demo_and_runs_it(own_house: House, clean: None, tmp_path: Path):
    python = str(Path(COMMAND[0]).with_name("python"))
    build = [python, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(tmp_path), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "devbay/_templates/demo/devbay.yaml" in names
    assert "devbay/_templates/demo/.gitignore" in names
    subprocess.run([python, "-m", "venv", "--system-site-packages", tmp_path / "v"], check=True)
    new = tmp_path / "v/bin/python"
    subprocess.run([new, "-m", "pip", "install", "-q", wheel], check=True, capture_output=True)
    done = subprocess.run(
        [tmp_path / "v/bin/devbay", "demo"], env=own_house.env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr

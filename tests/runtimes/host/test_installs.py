"""Dependencies are installed once for all bays; each bay has a copy that works when the template is gone."""

import dataclasses
import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from devbay.errors import DevbayError
from devbay.jobs import Job
from devbay.runtimes.base import BayRef, ServiceSpec
from devbay.runtimes.host.installs import Installs
from devbay.runtimes.host.keepers import Keepers
from devbay.runtimes.host.launch import Isolation
from devbay.runtimes.host.machine import Machine
from devbay.runtimes.host.place import Place
from devbay.runtimes.host.sandbox import Trial, trial
from devbay.runtimes.host.templates import Templates
from devbay.runtimes.host.toolchains import find
from devbay.runtimes.outbound import Outbound
from devbay.sites.ports import ephemeral_start, usable_range

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


def test_an_editable_install_leads_to_the_bays_own_sources(installs: Installs, place: Place, tmp_path):
    worktree = tmp_path / "w"
    (worktree / "src").mkdir(parents=True)
    (worktree / "pyproject.toml").write_text("[project]\nname = 'shop'\n")
    (worktree / "src/shop.py").write_text("print('of the bay')\n")
    made = dataclasses.replace(
        spec(worktree),
        install=("sh", "-c", 'echo "$PWD/src" > "$(echo "$VIRTUAL_ENV"/lib/python*/site-packages)/shop.pth"'),
        install_inputs=(),
    )
    installs.give(made, PYTHON, {}, running=False, job=Job())
    installs.templates.clear()
    python = place.venv(BAY.id, "api") / "bin/python"
    done = subprocess.run([python, "-c", "import shop"], capture_output=True, text=True)
    assert done.stdout == "of the bay\n", done.stderr


def test_a_service_without_an_install_has_pip_in_its_own_environment(installs, place: Place, tmp_path):
    plain = dataclasses.replace(spec(tmp_path / "w"), install=None)
    installs.give(plain, PYTHON, {}, running=False, job=Job())
    venv = place.venv(BAY.id, "api")
    words = [venv / "bin/pip", "install", "-q", "--no-index", "--find-links", "wheels", "greet"]
    subprocess.run(words, cwd=tmp_path / "w", env={"PIP_REQUIRE_VIRTUALENV": "1"}, check=True)
    assert greeting(place) == "greet 1.0"


def test_what_differs_from_bay_to_bay_makes_no_bay_install_anew(installs: Installs, tmp_path):
    given = usable_range(ephemeral_start())[7]
    base = spec(tmp_path / "w")

    def digest(bay: str, port: int, **more: str) -> str:
        env = {
            "NODE_ENV": "development", "WORKERS": "12", "DB_PORT": str(port), "DB": f"localhost:{port}",
            "URL": f"http://127.0.0.1:{port}/", "SITE": f"http://{bay}--shop.localhost",
            "DEVBAY_BAY": bay, **more,
        }  # fmt: skip
        other = dataclasses.replace(BAY, name=bay, id=f"{port:08}")
        return installs.digest(dataclasses.replace(base, env=env, bay=other), PYTHON)

    assert digest("left", given) == digest("dev", given + 1)
    assert digest("left", given) != digest("left", given, NODE_ENV="production"), "no name of a bay's"
    assert digest("left", given) != digest("left", given, WORKERS="13")


def test_the_key_covers_inputs_command_environment_and_toolchain(installs: Installs, tmp_path):
    base = spec(tmp_path / "w")
    digests = {installs.digest(base, PYTHON)}
    for change in ({"install": ("pip", "install", "x")}, {"env": {"A": "1"}}, {"volumes": ("modules",)},
                   {"platform": "linux/arm64"}, {"workdir": f"{tmp_path}/w/wheels"}):  # fmt: skip
        digests.add(installs.digest(dataclasses.replace(base, **change), PYTHON))
    digests.add(installs.digest(base, find("debian:12", MACHINE)))
    digests.add(dataclasses.replace(installs, salt="other").digest(base, PYTHON))
    (tmp_path / "w/requirements.txt").write_text("greet\n")
    digests.add(installs.digest(base, PYTHON))
    assert len(digests) == 9


def modules(worktree: Path, lock: str = "1") -> ServiceSpec:
    worktree.mkdir(exist_ok=True)
    (worktree / "lock").write_text(lock)
    return ServiceSpec(
        bay=BAY, name="web", kind="service", image="debian:12", worktree=worktree, workdir=str(worktree),
        install=("sh", "-c", "mkdir modules && cp lock modules/ && touch beside"),
        install_inputs=("lock",), volumes=("modules",),
    )  # fmt: skip


def test_what_was_cleaned_away_comes_back_even_for_a_running_service(installs: Installs, tmp_path):
    made = modules(tmp_path / "w")
    volumes = {f"{tmp_path}/w/modules": tmp_path / "w/modules"}
    installs.give(made, None, volumes, running=False, job=Job())
    shutil.rmtree(tmp_path / "w/modules")
    installs.give(made, None, volumes, running=True, job=Job())
    assert (tmp_path / "w/modules/lock").read_text() == "1"


def test_what_the_bay_has_already_is_neither_installed_nor_replaced(installs: Installs, tmp_path):
    made = modules(tmp_path / "w")
    volumes = {f"{tmp_path}/w/modules": tmp_path / "volume"}
    installs.give(made, None, volumes, running=False, job=Job())
    (tmp_path / "volume/mine").touch()
    installs.templates.clear()
    installs.ensure(made, None, Job())
    installs.give(made, None, volumes, running=True, job=Job())
    assert (tmp_path / "volume/mine").exists()
    assert not (tmp_path / "root/templates/install").exists(), "nothing was installed again"


def test_dependencies_of_the_users_own_checkout_stay_his(installs: Installs, tmp_path):
    made = modules(tmp_path / "w")
    own = tmp_path / "w/modules"
    own.mkdir()
    (own / "mine").touch()
    installs.give(made, None, {str(own): own}, running=False, job=Job())
    assert [path.name for path in own.iterdir()] == ["mine"]


def test_what_no_volume_keeps_is_told(installs: Installs, tmp_path):
    made = modules(tmp_path / "w")
    installs.give(made, None, {}, running=False, job=Job())
    (told,) = installs.notes(made)
    assert "wrote beside, which no volume keeps" in told


def test_a_command_that_is_not_there_is_named(installs: Installs, tmp_path):
    made = dataclasses.replace(modules(tmp_path / "w"), install=("no-such-program", "install"))
    with pytest.raises(DevbayError, match="no-such-program: ") as raised:
        installs.ensure(made, None, Job())
    assert (raised.value.code, raised.value.data["status"]) == ("install_failed", 127)


def test_each_line_is_shown_as_it_comes(installs: Installs, tmp_path):
    said: list[str] = []
    made = dataclasses.replace(modules(tmp_path / "w"), install=("sh", "-c", "printf 'one\\ntwo\\rthree'"))
    installs.ensure(made, None, Job(lambda message, fraction: said.append(message)))
    assert said[-3:] == ["one", "two", "three"]


def test_an_install_sees_and_writes_nothing_of_the_worktree_itself(installs: Installs, tmp_path):
    if trial(MACHINE.path).sandbox is None:
        pytest.skip("nothing can be hidden here")
    look = f"mkdir modules; ls {tmp_path}/w > modules/saw; touch {tmp_path}/w/x || true"
    made = dataclasses.replace(modules(tmp_path / "w"), install=("sh", "-c", look))
    installs.give(made, None, {f"{tmp_path}/w/modules": tmp_path / "volume"}, running=False, job=Job())
    assert (tmp_path / "volume/saw").read_text() == ""
    assert [path.name for path in (tmp_path / "w").iterdir()] == ["lock"]


@pytest.mark.parametrize(
    ("install", "volume"),
    [
        ("ln -s {outside} modules", "modules"),
        ("ln -s {outside}/.. pkg", "pkg/outside"),
        ("rm -rf $HOME && ln -s {outside} $HOME && mkdir modules", "modules"),
    ],
)
def test_a_link_that_an_install_left_leads_devbay_nowhere(
    installs: Installs, tmp_path, monkeypatch, install, volume
):
    monkeypatch.setattr("devbay.runtimes.host.installs.trial", lambda path: Trial(None, Isolation()))
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").touch()
    command = install.format(outside=outside)
    made = dataclasses.replace(modules(tmp_path / "w"), install=("sh", "-c", command), volumes=(volume,))
    with pytest.raises(DevbayError, match="must be a folder") as raised:
        installs.give(made, None, {f"{tmp_path}/w/{volume}": tmp_path / "volume"}, running=False, job=Job())
    assert raised.value.code == "install_failed"
    assert [path.name for path in outside.iterdir()] == ["secret"]


def test_a_link_in_the_place_of_devbays_own_record_is_replaced(installs: Installs, tmp_path):
    outside = tmp_path / "precious"
    outside.write_text("mine")
    command = f"mkdir modules && ln -s {outside} ../install.json"
    made = dataclasses.replace(modules(tmp_path / "w"), install=("sh", "-c", command))
    installs.give(made, None, {f"{tmp_path}/w/modules": tmp_path / "volume"}, running=False, job=Job())
    assert outside.read_text() == "mine"


def test_an_install_that_nests_folders_without_end_fails_by_itself(installs: Installs, tmp_path):
    worktree = tmp_path / "w"
    worktree.mkdir()
    script = "mkdir modules; cd modules; for n in $(seq 1200); do mkdir d && cd d || exit 0; done"
    deep = ServiceSpec(
        bay=BAY, name="web", kind="service", image="debian:12", worktree=worktree, workdir=str(worktree),
        install=("sh", "-c", script), volumes=(f"{worktree}/modules",),
    )  # fmt: skip
    with pytest.raises(DevbayError) as raised:
        installs.ensure(deep, find("debian:12", MACHINE), Job())
    assert raised.value.code == "install_failed"

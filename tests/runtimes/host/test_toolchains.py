from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from devbay.runtimes.host import toolchains, versions
from devbay.runtimes.host.families import wanted
from devbay.runtimes.host.machine import Machine
from devbay.runtimes.host.toolchains import distance, find, refusal

Put = Callable[..., Path]


@pytest.fixture
def put(tmp_path: Path) -> Put:
    """Puts a program below tmp_path that prints its lines, whatever it is asked."""

    def program(path: str, *lines: str, code: int = 0) -> Path:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        said = "".join(f"echo '{line}'\n" for line in lines)
        file.write_text(f"#!/bin/sh\necho x >> {tmp_path}/asked\n{said}exit {code}\n")
        file.chmod(0o755)
        return file

    return program


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(f"{tmp_path}/bin:{tmp_path}/more", tmp_path / "home")


def asked(tmp_path: Path) -> int:
    file = tmp_path / "asked"
    return len(file.read_text().splitlines()) if file.exists() else 0


@pytest.mark.parametrize(
    ("image", "family", "numbers"),
    [
        ("python:3.12-slim-bookworm", "python", (3, 12)),
        ("docker.io/library/python:3.12@sha256:0123", "python", (3, 12)),
        ("registry.example.com:5000/library/python", "python", ()),
        ("public.ecr.aws/docker/library/node:22-alpine", "node", (22,)),
        ("mcr.microsoft.com/devcontainers/python:1-3.12-bookworm", "python", (3, 12)),
        ("node:lts", "node", ()),
        ("node:jod-slim", "node", (22,)),
        ("golang:1.22.3-alpine3.19", "go", (1, 22, 3)),
        ("eclipse-temurin:17.0.9_9-jdk", "java", (17, 0, 9)),
        ("eclipse-temurin:8u392-b08-jdk", "java", (8,)),
        ("gradle:jdk17", "gradle", ()),
        ("ghcr.io/astral-sh/uv:python3.12-bookworm", "uv", ()),
        ("ubuntu:24.04", "ubuntu", (24, 4)),
    ],
)
def test_an_images_name_says_family_and_version(image: str, family: str, numbers: tuple[int, ...]) -> None:
    found = wanted(image)
    assert found is not None
    assert (found.family, found.numbers) == (family, numbers)


@pytest.mark.parametrize(
    "image", ["acme/python:3.12", "ghcr.io/acme/node", "mcr.microsoft.com/playwright:v1.50.0", "pythonista"]
)
def test_an_image_of_somebody_elses_may_hold_anything(image: str, machine: Machine) -> None:
    assert wanted(image) is None
    assert find(image, machine) is None
    error = refusal(image, machine)
    assert error.code == "image_not_met"
    assert "container engine" in error.next


def test_the_exact_version_on_path_wins_though_another_stands_before(put: Put, machine: Machine) -> None:
    put("bin/python3", "3.11.2")
    put("more/python3.12", "3.12.4")
    found = find("python:3.12-slim", machine)
    assert found is not None
    assert (found.version, found.note) == ("3.12.4", "")
    assert found.program.name == "python3.12"


def test_a_version_manager_is_taken_where_path_has_another_version(put: Put, machine: Machine) -> None:
    put("bin/node", "v18.1.0")
    put("home/.nvm/versions/node/v22.3.0/bin/node", "v22.3.0")
    put("home/.nvm/versions/node/v22.14.1/bin/node", "v22.14.1")
    found = find("node:22-alpine", machine)
    assert found is not None
    assert (found.version, found.origin, found.note) == ("22.14.1", "nvm", "")
    assert found.bin == (found.program.parent,)


def test_a_version_manager_that_cannot_be_looked_into_has_nothing(put: Put, machine: Machine) -> None:
    put("bin/python3", "Python 3.11.2")
    too_long = Machine(machine.path, machine.user_home, {"PYENV_ROOT": f"/{'x' * 300}"})  # also for root
    found = find("python:3.12", too_long)
    assert found is not None
    assert found.version == "3.11.2"


def test_a_tag_without_a_version_means_the_persons_own_default(put: Put, machine: Machine) -> None:
    put("bin/node", "v18.1.0")
    put("home/.nvm/versions/node/v22.14.1/bin/node", "v22.14.1")
    for image in ("node", "node:latest", "node:slim"):
        found = find(image, machine)
        assert found is not None and found.version == "18.1.0" and not found.note


def test_lts_is_an_even_version_of_node(put: Put, machine: Machine) -> None:
    put("bin/node", "v23.1.0")
    put("home/.nvm/versions/node/v22.14.1/bin/node", "v22.14.1")
    found = find("node:lts", machine)
    assert found is not None and found.version == "22.14.1"


def test_the_nearest_version_is_taken_and_the_difference_said(put: Put, machine: Machine) -> None:
    put("bin/python3", "3.11.7")
    put("home/.pyenv/versions/3.9.1/bin/python", "3.9.1")
    found = find("python:3.10", machine)
    assert found is not None
    assert found.note == f"python:3.10 is met by Python 3.11.7 of {machine.folders[0]}"
    assert (found.wanted, found.origin) == ("3.10", str(machine.folders[0]))


def test_nearness_prefers_newer_minor_versions_of_the_same_major_one() -> None:
    has = [(4, 0), (3, 9), (3, 11), (3, 13), (3, 14), (2, 7)]
    assert sorted(has, key=lambda one: distance((3, 12), one)) == [
        (3, 13), (3, 14), (3, 11), (3, 9), (4, 0), (2, 7),
    ]  # fmt: skip


def test_python_2_never_meets_python_3(put: Put, machine: Machine) -> None:
    put("bin/python", "2.7.18")
    assert find("python:3.12", machine) is None
    assert find("python", machine) is None


def test_a_shim_is_followed_to_the_program_it_starts(put: Put, machine: Machine, tmp_path: Path) -> None:
    real = put("home/.pyenv/versions/3.12.1/bin/python", "3.12.1")
    put("bin/shims/python3", "3.12.1", str(real))
    found = find("python:3", Machine(f"{tmp_path}/bin/shims", tmp_path / "home"))
    assert found is not None
    assert (found.program, found.origin) == (real, "pyenv")


def test_a_shim_that_cannot_be_followed_is_none(put: Put, machine: Machine, tmp_path: Path) -> None:
    put("bin/shims/bun", "1.1.0")
    assert find("oven/bun:1", Machine(f"{tmp_path}/bin/shims", tmp_path / "home")) is None


def test_a_program_that_does_not_start_is_passed_over(put: Put, machine: Machine) -> None:
    put("bin/node", "v22.0.0", code=1)
    put("home/.nvm/versions/node/v22.9.0/bin/node", code=127)
    put("home/.nvm/versions/node/v22.1.0/bin/node", "v22.1.0")
    found = find("node:22", machine)
    assert found is not None and found.version == "22.1.0"


def test_a_program_in_a_folder_that_the_user_may_not_enter_is_passed_over() -> None:
    """On a machine that root set up, names on everybody's PATH may lead into root's home."""
    root = Path(tempfile.mkdtemp())
    try:
        (root / "closed").mkdir()
        (root / "closed/python3").write_text("#!/bin/sh\necho 3.12.1\n")
        (root / "closed/python3").chmod(0o755)
        (root / "closed").chmod(0)
        root.chmod(0o755)
        (root / "python3").symlink_to(root / "closed/python3")
        child = os.fork()
        if child == 0:
            if os.geteuid() == 0:
                os.setresuid(65534, 65534, 65534)
            with contextlib.suppress(OSError):
                found = find("python:3.12", Machine(str(root), root / "home")) is not None
                os._exit(int(found))
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        (root / "closed").chmod(0o700)
        shutil.rmtree(root)


def test_a_program_is_asked_once_until_it_changes(put: Put, machine: Machine, tmp_path: Path) -> None:
    put("bin/node", "v22.0.0")
    assert find("node:22", machine)
    before = asked(tmp_path)
    assert find("node:22", machine)
    assert asked(tmp_path) == before
    put("bin/node", "v22.11.0")
    found = find("node:22", machine)
    assert found is not None and found.version == "22.11.0"


def test_a_java_is_known_by_its_release_file_and_named_to_tools(
    put: Put, machine: Machine, tmp_path: Path
) -> None:
    put("home/.sdkman/candidates/java/21.0.1-tem/bin/java", "java.version = 21.0.1")
    (tmp_path / "home/.sdkman/candidates/java/21.0.1-tem/release").write_text('JAVA_VERSION="21.0.1"\n')
    found = find("eclipse-temurin:21-jdk", machine)
    assert found is not None and found.origin == "sdkman"
    assert dict(found.env) == {"JAVA_HOME": str(tmp_path / "home/.sdkman/candidates/java/21.0.1-tem")}


def test_what_a_tag_names_beside_is_needed_too(put: Put, machine: Machine, tmp_path: Path) -> None:
    put("bin/mvn", "Apache Maven 3.9.6 (abc)")
    java = put("jdk/bin/java", "    java.version = 17.0.9", f"    java.home = {tmp_path}/jdk")
    with_java = Machine(machine.path, machine.user_home, {"JAVA_HOME": str(tmp_path / "jdk")})
    found = find("maven:3.9-eclipse-temurin-17", with_java)
    assert found is not None
    assert (found.version, found.bin) == ("3.9.6", (tmp_path / "bin", java.parent))
    put("bin/composer", "Composer version 2.7.1 2024-02-09")
    assert find("composer:2", machine) is None
    assert "PHP" in refusal("composer:2", machine).message


@pytest.mark.parametrize(
    ("output", "version"),
    [
        ("go1.22.3\n/usr/local/go\n", "1.22.3"),
        ("v22.1.0\n/usr/bin/node\n", "22.1.0"),
        ("rustc 1.75.0 (82e1608df 2023-12-21)\n", "1.75.0"),
        ("deno 1.40.2 (release, x86_64)\nv8 12.1.285.6\n", "1.40.2"),
        ("Property settings:\n    java.class.version = 61.0\n    java.version = 17.0.15\n", "17.0.15"),
        ("Composer version 2.7.1 2024-02-09 15:26:28\n", "2.7.1"),
        ("OTP 26.0\n", "26.0"),
    ],
)
def test_answers_of_real_programs_are_read(output: str, version: str) -> None:
    assert [one.version for one in versions.said_by(output, Path("/nowhere/x"))] == [version]


def test_all_sdks_of_dotnet_count_the_newest_first() -> None:
    said = versions.said_by("6.0.428 [/d/sdk]\n8.0.100 [/d/sdk]\n", Path("/nowhere/dotnet"))
    assert [one.version for one in said] == ["8.0.100", "6.0.428"]


def test_the_refusal_of_a_known_language_says_how_to_install_it(machine: Machine) -> None:
    assert find("python:3.12", machine) is None
    error = refusal("python:3.12", machine)
    assert error.code == "image_not_met"
    assert "Python 3.12" in error.message
    assert "`uv python install 3.12`" in error.next and "container engine" in error.next
    assert "{" not in refusal("node", machine).next


def test_a_plain_system_is_this_machine_and_says_if_it_is_another_one(tmp_path: Path) -> None:
    release = tmp_path / "os-release"
    release.write_text(
        'ID=debian\nVERSION_ID="12"\nVERSION_CODENAME=bookworm\n'
        'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n'
    )

    def note(image: str) -> str:
        found = wanted(image)
        assert found is not None
        return toolchains._system(image, found, release).note

    assert note("debian:12-slim") == note("debian:bookworm") == note("debian") == ""
    assert note("alpine:3.19") == "alpine:3.19 is met by this machine itself (Debian GNU/Linux 12 (bookworm))"
    assert note("debian:11") and note("debian:bullseye-slim")

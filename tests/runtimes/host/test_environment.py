"""A process of this machine gets its own folders and its toolchain, and next to nothing of its caller."""

import os
from pathlib import Path

from devbay.runtimes.host.environment import Folders, environment, pnpm_store
from devbay.runtimes.host.machine import Machine
from devbay.runtimes.host.toolchains import Toolchain
from devbay.runtimes.outbound import Outbound

NOTHING = Outbound()
FOLDERS = Folders(Path("/bay/home"), Path("/bay/tmp"), Path("/caches"), Path("/bay/venv"))
PYTHON = Toolchain("python", "3.12.1", "3.12", (Path("/py/bin"),), Path("/py/bin/python3"), "pyenv")
MACHINE = Machine(
    "/usr/local/bin:/usr/bin", Path("/home/u"),
    {"LC_ALL": "C.UTF-8", "TZ": "UTC", "PYENV_ROOT": "/home/u/.pyenv", "SSL_CERT_FILE": "/etc/ca.pem"},
)  # fmt: skip


def given(toolchain=PYTHON, folders=FOLDERS, outbound=NOTHING, **own):
    return environment(toolchain, folders, MACHINE, outbound, own)


def test_of_the_caller_come_locale_certificates_and_path_and_no_version_managers_folder():
    env = given()
    assert (env["LC_ALL"], env["TZ"], env["SSL_CERT_FILE"]) == ("C.UTF-8", "UTC", "/etc/ca.pem")
    assert "PYENV_ROOT" not in env
    assert env["PATH"].endswith("/usr/local/bin:/usr/bin")


def test_everything_that_a_tool_writes_lies_in_the_services_own_folders_or_the_projects_caches():
    env = given()
    homes = {name for name, value in env.items() if "/home/u" in value}
    assert homes == {"RUSTUP_HOME"}, "toolchains are read where the user has them"
    for name in ("HOME", "XDG_CONFIG_HOME", "PYTHONUSERBASE", "npm_config_prefix", "GEM_HOME", "GOPATH"):
        assert env[name].startswith("/bay/home")
    for name in ("PIP_CACHE_DIR", "npm_config_cache", "GOMODCACHE", "CARGO_HOME", "UV_CACHE_DIR"):
        assert env[name].startswith("/caches/")


def test_what_a_tool_would_share_by_linking_is_copied():
    assert given()["UV_LINK_MODE"] == "copy"
    assert pnpm_store(FOLDERS)["npm_config_package_import_method"] == "clone-or-copy"
    assert not pnpm_store(FOLDERS).keys() & given().keys(), "npm warns of what only pnpm knows"


def test_the_services_virtual_environment_is_first_and_pip_stays_in_it():
    env = given()
    assert env["PATH"].split(os.pathsep)[:2] == ["/bay/venv/bin", "/py/bin"]
    assert (env["VIRTUAL_ENV"], env["PIP_REQUIRE_VIRTUALENV"]) == ("/bay/venv", "1")
    assert env["UV_PROJECT_ENVIRONMENT"] == "/bay/venv"
    assert "PYTHONDONTWRITEBYTECODE" not in env


def test_a_project_with_a_venv_volume_keeps_using_that():
    own = Folders(FOLDERS.home, FOLDERS.tmp, FOLDERS.caches, FOLDERS.venv, project_venv=True)
    assert "UV_PROJECT_ENVIRONMENT" not in given(folders=own)


def test_the_service_wins_but_its_path_which_is_an_images_stands_behind_the_toolchain():
    env = given(LC_ALL="de", PATH="/opt/image/bin:/usr/bin:relative", SECRET="s")
    assert (env["LC_ALL"], env["SECRET"]) == ("de", "s")
    words = env["PATH"].split(os.pathsep)
    assert words.index("/py/bin") < words.index("/opt/image/bin") < words.index("/usr/local/bin")
    assert "relative" not in words and words.count("/usr/bin") == 1


def test_the_configured_bundle_and_proxies_go_before_the_machines(tmp_path):
    bundle = tmp_path / "ca.pem"
    bundle.touch()
    env = given(outbound=Outbound(bundle, (("https", "http://proxy:1"),)))
    assert env["SSL_CERT_FILE"] == env["NODE_EXTRA_CA_CERTS"] == str(bundle)
    assert env["https_proxy"] == "http://proxy:1" and "127.0.0.1" in env["NO_PROXY"]


def test_a_toolchain_says_by_which_variables_it_is_found():
    java = Toolchain("java", "17", "17", (Path("/jdk/bin"),), Path("/jdk/bin/java"), "", "",
                     (("JAVA_HOME", "/jdk"),))  # fmt: skip
    env = given(java, Folders(FOLDERS.home, FOLDERS.tmp, FOLDERS.caches))
    assert env["JAVA_HOME"] == "/jdk" and "VIRTUAL_ENV" not in env
    assert env["MAVEN_OPTS"] == "-Dmaven.repo.local=/bay/home/.m2/repository"

from dataclasses import replace
from pathlib import Path

import pytest

from devbay.runtimes.base import BayRef, BindMount, ServiceSpec
from devbay.runtimes.docker.images import ImageInfo
from devbay.runtimes.docker.templates import (
    lost_paths,
    placed,
    plan_install,
    portable_env,
    source_folder,
    worth_keeping,
)
from devbay.runtimes.docker.users import Identity
from devbay.runtimes.inputs import InputFile

IMAGE = ImageInfo("sha256:abc", user="node", workdir="/app", volumes=("/data",))
MAPPED = Identity("7:8", 7, 8, "/home/devbay")
FILES = (InputFile("package.json", b"{}", False), InputFile("web/package.json", b"[]", True))


def spec(bay="one", worktree="/repo/.devbay/bays/one", **changes):
    ref = BayRef(f"id-{bay}", "h" * 16, "shop", "r1", bay)
    values = {
        "install": ("npm", "ci"),
        "workdir": worktree,
        "worktree": Path(worktree),
        "volumes": (f"{worktree}/node_modules",),
        "env": {"NODE_ENV": "test"},
    }
    return ServiceSpec(bay=ref, name="web", kind="service", image="node:20", **{**values, **changes})


def plan(wanted, image=IMAGE, identity=MAPPED, files=FILES, salt="s"):
    return plan_install(wanted, image, identity, files, source_folder(wanted, image), salt=salt)


def test_two_bays_with_the_same_inputs_share_one_install():
    other = spec("two", "/elsewhere/two")
    assert plan(spec()).key == plan(other).key


@pytest.mark.parametrize(
    "changed",
    [
        plan(spec(install=("npm", "install"))),
        plan(spec(env={"NODE_ENV": "production"})),
        plan(spec(platform="linux/arm64")),
        plan(spec(volumes=())),
        plan(spec(caches=("/c",))),
        plan(spec(user="5")),
        plan(spec(install_scripts=True)),
        plan(spec(workdir="/repo/.devbay/bays/one/web")),
        plan(spec(), image=replace(IMAGE, id="sha256:def")),
        plan(spec(), identity=Identity("9:9", 9, 9, "/home/devbay")),
        plan(spec(), files=(FILES[0],)),
        plan(spec(), files=(InputFile("package.json", b"{ }", False), FILES[1])),
        plan(spec(), files=(InputFile("package.json", b"{}", True), FILES[1])),
        plan(spec(), salt="other"),
    ],
)
def test_everything_that_decides_the_result_changes_the_key(changed):
    assert changed.key != plan(spec()).key


def test_an_install_sees_the_worktree_as_workspace():
    found = plan(spec(workdir="/repo/.devbay/bays/one/web"))
    assert found.workdir == "/workspace/web"
    assert found.volumes == ("/home/devbay", "/workspace/node_modules")
    assert sorted(found.files) == ["/workspace/package.json", "/workspace/web/package.json"]


def test_paths_elsewhere_and_relative_ones_are_placed():
    wanted = spec()
    assert placed("/opt/x", wanted) == "/opt/x"
    assert placed("node_modules", wanted, "/app") == "/app/node_modules"
    assert placed("/repo/.devbay/bays/one/a", wanted) == "/workspace/a"
    assert placed("/repo/.devbay/bays/one2/a", wanted) == "/repo/.devbay/bays/one2/a"


def test_a_mapped_install_runs_as_root_and_its_result_is_given_away():
    found = plan(spec())
    assert (found.user, found.owner, found.env["HOME"]) == ("0:0", "7:8", "/home/devbay")


def test_an_install_with_a_user_runs_as_that_user_and_keeps_its_files():
    found = plan(spec(user="5:6"), identity=Identity("5:6", 5, 6))
    assert (found.user, found.owner, found.volumes) == ("5:6", None, ("/workspace/node_modules",))
    assert "HOME" not in found.env


def test_user_image_means_the_images_user():
    assert plan(spec(user="image"), identity=Identity()).user == "node"
    assert plan(spec(user="image"), image=replace(IMAGE, user=""), identity=Identity()).user == "0:0"


def test_declared_volumes_are_data_not_part_of_the_result():
    found = plan(spec())
    assert found.scratch == ("/data",)
    assert "/data" not in found.volumes
    assert plan(spec(volumes=("/data",))).scratch == ()


def test_package_scripts_run_only_where_they_are_allowed():
    assert "--ignore-scripts" in plan(spec()).argv
    allowed = plan(spec(install_scripts=True))
    assert allowed.argv == ("npm", "ci")
    assert "npm_config_ignore_scripts" not in allowed.env


def test_an_install_does_not_see_what_differs_between_bays():
    env = {
        "NODE_ENV": "test",
        "PUBLIC_URL": "http://one--shop.localhost",
        "CACHE": "/repo/.devbay/bays/one/cache",
        "DEVBAY_BAY": "one",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
    }
    kept, dropped = portable_env(spec(env=env))
    assert kept == {"NODE_ENV": "test"}
    assert dropped == ("PUBLIC_URL", "CACHE")


def test_an_install_does_not_see_the_folder_of_a_run_which_differs_each_time():
    env = {"DEVBAY_RUN_DIR": "/home/runs/r1/out", "PYTEST_ADDOPTS": "--junitxml=/home/runs/r1/out/unit.xml"}
    assert portable_env(spec(env=env)) == ({}, ("PYTEST_ADDOPTS",))


def test_inputs_come_from_behind_a_mount_where_the_command_runs_in_one():
    worktree = "/repo/.devbay/bays/one"
    wanted = spec(workdir="/app/src", mounts=(BindMount(f"{worktree}/web", "/app"), BindMount("/etc", "/")))
    assert source_folder(wanted, IMAGE) == "web/src"
    wanted = spec(workdir="/app", mounts=(BindMount(f"{worktree}/web", "/app"),))
    found = plan(wanted)
    assert found.workdir == "/app"
    assert found.files["/app/package.json"].data == b"[]"


def test_a_folder_of_the_images_own_has_no_inputs_of_its_own():
    assert source_folder(spec(workdir=None), IMAGE) is None
    assert source_folder(spec(workdir=None), replace(IMAGE, workdir="/workspace/api")) == "api"


def change(path, kind=1):
    return {"Path": path, "Kind": kind}


TRACES = [
    change("/home", 0), change("/home/devbay"), change("/workspace"), change("/workspace/package.json"),
    change("/tmp", 0), change("/tmp/x"), change("/usr", 0), change("/usr/lib", 0),
    change("/usr/lib/python3", 0), change("/usr/lib/python3/__pycache__"),
    change("/usr/lib/python3/__pycache__/a.pyc"),
    change("/opt"), change("/opt/deps"),
]  # fmt: skip


def test_traces_are_not_worth_an_image():
    assert not worth_keeping(TRACES, ["/home/devbay", "/workspace/node_modules", "/opt/deps"])


@pytest.mark.parametrize(
    "kept", [change("/usr/local/bin/tool"), change("/usr/lib/python3/a.py", 0), change("/etc/x", 2)]
)
def test_anything_else_is_worth_an_image(kept):
    assert worth_keeping([*TRACES, kept], ["/home/devbay", "/workspace/node_modules", "/opt/deps"])


def test_what_no_volume_keeps_is_named_once_at_its_top():
    changes = [
        change("/workspace"),
        change("/workspace/node_modules"),
        change("/workspace/web"),
        change("/workspace/web/package.json"),
        change("/workspace/web/.cache"),
        change("/workspace/web/.cache/a"),
        change("/workspace/out"),
        change("/usr/bin/x"),
    ]
    assert lost_paths(changes, plan(spec())) == ("out", "web/.cache")

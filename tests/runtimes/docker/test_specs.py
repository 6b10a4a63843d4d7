from __future__ import annotations

import pytest

from devbay.errors import DevbayError
from devbay.manifest.models import Limits
from devbay.runtimes.base import BindMount
from devbay.runtimes.docker.archives import Entry
from devbay.runtimes.docker.engine import classify
from devbay.runtimes.docker.specs import (
    ContainerSpec,
    create_body,
    refuse_files_in_binds,
    with_workspace_mounts,
)
from tests.runtimes.docker.fake_engine import INFO

ENGINE = classify(INFO, platform="linux")


def test_ports_are_published_on_loopback_only() -> None:
    body = create_body(ContainerSpec("n", "i", ports={80: 40000}), ENGINE)
    assert body["HostConfig"]["PortBindings"] == {"80/tcp": [{"HostIp": "127.0.0.1", "HostPort": "40000"}]}
    assert body["ExposedPorts"] == {"80/tcp": {}}


def test_a_missing_bind_source_is_an_error_and_not_a_new_folder_of_root() -> None:
    body = create_body(
        ContainerSpec("n", "i", binds=(BindMount("/a", "/b", True),), volumes={"/v": "vol"}), ENGINE
    )
    assert "Binds" not in body["HostConfig"]
    assert body["HostConfig"]["Mounts"] == [
        {"Type": "bind", "Source": "/a", "Target": "/b", "ReadOnly": True},
        {"Type": "volume", "Source": "vol", "Target": "/v"},
    ]


def test_what_is_not_given_is_left_to_the_image() -> None:
    body = create_body(ContainerSpec("n", "i"), ENGINE)
    assert not {"Cmd", "Entrypoint", "WorkingDir", "User", "NetworkingConfig"} & body.keys()


def test_the_images_own_health_check_is_switched_off() -> None:
    assert create_body(ContainerSpec("n", "i"), ENGINE)["Healthcheck"] == {"Test": ["NONE"]}


def test_limits_are_cut_to_the_engines_processors_and_swap_is_none() -> None:
    spec = ContainerSpec("n", "i", limits=Limits(memory="64m", cpus=16.0, pids=50))
    host = create_body(spec, ENGINE)["HostConfig"]
    assert host["Memory"] == host["MemorySwap"] == 64 << 20
    assert host["NanoCpus"] == 2_000_000_000 and host["PidsLimit"] == 50


def test_limits_are_left_out_where_the_engine_cannot_apply_them() -> None:
    spec = ContainerSpec("n", "i", limits=Limits(memory="64m"))
    assert (
        "Memory"
        not in create_body(spec, classify(INFO | {"MemoryLimit": False}, platform="linux"))["HostConfig"]
    )


def test_a_service_is_found_by_its_aliases() -> None:
    body = create_body(ContainerSpec("n", "i", network="net", aliases=("db",)), ENGINE)
    assert body["NetworkingConfig"] == {"EndpointsConfig": {"net": {"Aliases": ["db"]}}}
    assert body["HostConfig"]["NetworkMode"] == "net"


def test_a_tmpfs_belongs_to_a_user_that_is_a_number() -> None:
    def options(user: str | None) -> str:
        found = create_body(ContainerSpec("n", "i", user=user, tmpfs=("/t",)), ENGINE)["HostConfig"]["Tmpfs"]
        return str(found["/t"])

    assert [options(user) for user in ("5:6", "5", "node", None)] == ["uid=5,gid=6", "uid=5,gid=5", "", ""]


def test_the_environment_is_not_in_the_repr() -> None:
    assert "s3cret" not in repr(ContainerSpec("n", "i", env={"TOKEN": "s3cret"}))


def test_an_image_with_its_own_workspace_gets_the_worktree_and_what_lies_in_it_twice() -> None:
    spec = ContainerSpec(
        "n",
        "i",
        worktree="/repo/bay",
        binds=(
            BindMount("/repo/bay", "/repo/bay"),
            BindMount("/repo/bay/.git", "/repo/bay/.git", True),
            BindMount("/repo/.git", "/repo/.git", True),
            BindMount("/repo/bay2", "/repo/bay2"),
        ),
        volumes={"/repo/bay/node_modules": "v1", "/data": "v2"},
        tmpfs=("/repo/bay/tmp",),
    )
    again = with_workspace_mounts(spec)
    assert again.worktree is None
    assert again.binds[4:] == (
        BindMount("/repo/bay", "/workspace"),
        BindMount("/repo/bay/.git", "/workspace/.git", True),
    )
    assert again.volumes == {**spec.volumes, "/workspace/node_modules": "v1"}
    assert again.tmpfs == ("/repo/bay/tmp", "/workspace/tmp")


@pytest.mark.parametrize("path", ["/repo/bay", "/repo/bay/x", "/repo/bay/../bay/y"])
def test_files_for_a_container_never_land_on_this_machine(path: str) -> None:
    spec = ContainerSpec("n", "i", binds=(BindMount("/repo/bay", "/repo/bay"),), files=(Entry(path, "dir"),))
    with pytest.raises(DevbayError) as raised:
        refuse_files_in_binds(spec)
    assert raised.value.code == "unsafe_file"


def test_the_owner_of_a_volume_inside_the_worktree_can_be_set() -> None:
    refuse_files_in_binds(
        ContainerSpec(
            "n",
            "i",
            binds=(BindMount("/repo/bay", "/repo/bay"),),
            volumes={"/repo/bay/node_modules": "v"},
            files=(Entry("/repo/bay/node_modules", "dir", uid=1000), Entry("/etc/passwd", "file")),
        )
    )

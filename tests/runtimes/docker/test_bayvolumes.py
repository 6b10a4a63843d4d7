from pathlib import Path

from devbay.runtimes.base import BayRef, BindMount, ServiceSpec
from devbay.runtimes.docker.bayvolumes import bay_volume, mounts, volume_paths
from devbay.runtimes.docker.images import ImageInfo
from devbay.runtimes.docker.install import cache_labels, cache_volume
from devbay.runtimes.docker.users import Identity

IMAGE = ImageInfo("sha256:abc", workdir="/app", volumes=("/data", "/config"))
MAPPED = Identity("7:7", 7, 7, "/home/devbay")


def spec(bay="one", worktree="/repo/one", **changes):
    ref = BayRef(f"id-{bay}", "0123456789abcdef", "shop", changes.pop("repository", "r1"), bay)
    return ServiceSpec(bay=ref, name="web", kind="service", worktree=Path(worktree), **changes)


def test_a_service_has_its_own_the_declared_and_a_home_volume():
    found = volume_paths(spec(volumes=("/deps",)), IMAGE, MAPPED)
    assert found == ("/deps", "/data", "/config", "/home/devbay")


def test_relative_volumes_lie_in_the_working_directory():
    assert volume_paths(spec(volumes=("deps",)), IMAGE, Identity())[0] == "/app/deps"
    assert volume_paths(spec(volumes=("deps",), workdir="/w"), IMAGE, Identity())[0] == "/w/deps"


def test_a_declared_path_with_something_else_on_it_has_no_volume():
    wanted = spec(mounts=(BindMount("/repo/one/c", "/config"),), tmpfs=("/data",), caches=("/home/devbay",))
    assert volume_paths(wanted, IMAGE, MAPPED) == ()


def test_volumes_keep_their_name_when_the_worktree_moves():
    assert bay_volume(spec(), "/repo/one/deps") == bay_volume(spec(worktree="/new"), "/new/deps")
    assert bay_volume(spec(), "/repo/one/deps") != bay_volume(spec(), "/repo/one/deps2")


def test_volumes_are_a_bays_and_caches_a_repositorys():
    one, two = spec("one"), spec("two")
    assert bay_volume(one, "/data") != bay_volume(two, "/data")
    assert cache_volume(one, "/c") == cache_volume(two, "/c")
    assert cache_volume(one, "/c") != cache_volume(one, "/d")
    assert cache_volume(one, "/c") != cache_volume(spec("one", repository="r2"), "/c")


def test_a_cache_in_the_worktree_is_one_for_all_worktrees_and_for_installs():
    one, two = spec("one", worktree="/repo/one"), spec("two", worktree="/repo/two")
    assert cache_volume(one, "/repo/one/.cache") == cache_volume(two, "/repo/two/.cache")
    assert cache_volume(one, "/repo/one/.cache") == cache_volume(one, "/workspace/.cache")
    assert cache_labels(one, "/repo/one/.cache") == cache_labels(two, "/repo/two/.cache")


def test_everything_a_container_mounts_is_named():
    found = mounts(spec(volumes=("/deps",), caches=("/c",)), IMAGE, MAPPED)
    assert list(found) == ["/deps", "/data", "/config", "/home/devbay", "/c"]
    assert found["/deps"].startswith("devbay-id-one-web-")

from pathlib import Path

import pytest

from devbay.runtimes.base import BayRef, ServiceSpec
from devbay.runtimes.docker.users import Accounts, identity

BAY = BayRef("b" * 8, "h" * 16, "shop", "r1", "main")
DEBIAN = Accounts(
    b"root:x:0:0:root:/root:/bin/bash\nwww-data:x:33:33::/var/www:/usr/sbin/nologin\n"
    b"node:x:1000:1000::/home/node:/bin/bash\n",
    b"root:x:0:\nnode:x:1000:\n",
)


def spec(**changes):
    values = {"worktree": Path("/w"), **changes}
    return ServiceSpec(bay=BAY, name="web", kind="service", image="node:20", **values)


def test_a_worktree_is_written_by_its_owner():
    found = identity(DEBIAN, spec(), "rootful", 12345, 23456)
    assert (found.user, found.uid, found.gid) == ("12345:23456", 12345, 23456)
    assert found.env == {"HOME": "/home/devbay"}


def test_the_owner_gets_entries_beside_those_of_the_image():
    files = identity(DEBIAN, spec(), "rootful", 12345, 23456).files()
    assert files["/etc/passwd"] == DEBIAN.passwd + b"devbay:x:12345:23456:devbay:/home/devbay:/bin/sh\n"
    assert files["/etc/group"] == DEBIAN.group + b"devbay:x:23456:\n"


def test_an_owner_the_image_knows_keeps_its_entry_and_home():
    found = identity(DEBIAN, spec(), "rootful", 1000, 1000)
    assert found.files() == {}
    assert found.home == "/home/node"


def test_a_system_account_does_not_get_its_system_folder_as_home():
    assert identity(DEBIAN, spec(), "rootful", 33, 33).home == "/home/devbay"


def test_root_works_as_root_in_its_own_home():
    found = identity(DEBIAN, spec(), "rootful", 0, 0)
    assert (found.user, found.home, found.files()) == ("0:0", "/root", {})


def test_a_missing_last_newline_does_not_join_two_entries():
    accounts = Accounts(b"root:x:0:0:root:/root:/bin/sh", b"root:x:0:")
    files = identity(accounts, spec(), "rootful", 7, 7).files()
    assert files["/etc/passwd"].splitlines()[0] == accounts.passwd
    assert files["/etc/group"].splitlines() == [b"root:x:0:", b"devbay:x:7:"]


def test_an_image_without_accounts_gets_root_and_the_owner():
    files = identity(Accounts(), spec(), "rootful", 12345, 12345).files()
    assert files["/etc/passwd"].startswith(b"root:x:0:0:")


def test_a_taken_name_gives_way():
    accounts = Accounts(b"devbay:x:1:1::/home/devbay:/bin/sh\n", b"devbay:x:1:\n")
    files = identity(accounts, spec(), "rootful", 12345, 12345).files()
    assert b"\ndevbay-12345:x:12345:12345:" in files["/etc/passwd"]
    assert b"\ndevbay-12345:x:12345:\n" in files["/etc/group"]


@pytest.mark.parametrize("kind", ["rootless", "desktop"])
def test_engines_that_map_by_themselves_are_left_alone(kind):
    assert identity(DEBIAN, spec(), kind, 12345, 12345).user is None


def test_no_worktree_no_mapping():
    assert identity(DEBIAN, spec(worktree=None), "rootful", 12345, 12345).user is None


def test_user_image_switches_mapping_off():
    assert identity(DEBIAN, spec(user="image"), "rootful", 12345, 12345).user is None


@pytest.mark.parametrize(("user", "gid"), [("1000", 1000), ("1000:50", 50)])
def test_a_named_user_is_taken_as_it_is_and_gets_fresh_volumes(user, gid):
    found = identity(DEBIAN, spec(user=user), "rootful", 12345, 12345)
    assert (found.user, found.uid, found.gid, found.home) == (user, 1000, gid, None)
    assert found.owned(["/data"]) == ("/data",)


def test_volumes_and_home_are_given_to_a_mapped_user_only():
    assert identity(DEBIAN, spec(), "rootful", 5, 5).owned(["/v"]) == ("/v", "/home/devbay")
    assert identity(DEBIAN, spec(user="image"), "rootful", 5, 5).owned(["/v"]) == ()

"""The main job on the shop: two bays side by side, seen by a browser, tested, destroyed, nothing left."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from integration.house import House
from integration.repositories import git

RUNTIMES = ("docker", "host")


@dataclass
class Shop:
    """Two bays of the demo's repository, both running."""

    house: House
    repository: Path
    left: dict[str, Any]
    right: dict[str, Any]


@pytest.fixture(scope="module")
def shop(house: House, make: Callable[..., Path]) -> Iterator[Shop]:
    repository = make("shop", "shop")
    bays = [house.json("new", name, cwd=repository) for name in ("left", "right")]
    yield Shop(house, repository, *bays)


def service(info: dict[str, Any], name: str) -> dict[str, Any]:
    return next(each for each in info["services"] if each["name"] == name)


def test_new_waits_until_every_service_is_healthy_and_done(shop: Shop):
    assert shop.left["state"] == "running"
    assert service(shop.left, "migrate")["state"] == "done"
    for name in ("db", "api", "web"):
        assert service(shop.left, name)["health"] == "healthy", name
    assert shop.left["branch"] == "left"
    assert (Path(shop.left["worktree"]) / "devbay.yaml").is_file()


def test_the_page_of_each_bay_says_which_bay_it_is(shop: Shop, page: Any):
    for info in (shop.left, shop.right):
        page.goto(info["public_url"])
        assert page.inner_text("#bay") == info["name"]


def test_a_cookie_of_one_bay_is_never_sent_to_the_other(shop: Shop, page: Any):
    page.goto(shop.left["public_url"])
    visitor = page.inner_text("#visitor")
    page.goto(shop.right["public_url"])
    assert page.inner_text("#visitor") != visitor
    assert page.inner_text("#visits") == "1"
    page.goto(shop.left["public_url"])
    assert page.inner_text("#visitor") == visitor
    assert page.inner_text("#visits") == "2"


def test_a_page_cannot_set_a_cookie_for_another_bay(shop: Shop, page: Any):
    page.goto(shop.left["public_url"])
    host = page.evaluate("location.hostname")
    for domain in ("localhost", host.split("--", 1)[1], shop.right["public_url"].split("/")[2].split(":")[0]):
        page.evaluate("domain => { document.cookie = `tried=1; Domain=${domain}; Path=/` }", domain)
    page.goto(shop.right["public_url"])
    assert "tried" not in page.evaluate("document.cookie")


def test_what_is_bought_in_one_bay_is_not_in_the_database_of_the_other(shop: Shop, page: Any):
    page.goto(shop.left["public_url"])
    before = int(page.inner_text("#orders"))
    page.click("section:nth-of-type(2) button")
    page.wait_for_function("n => document.querySelector('#orders').innerText == n", arg=str(before + 1))
    page.goto(shop.right["public_url"])
    assert page.inner_text("#orders") == "0"


def test_a_service_that_is_not_the_primary_has_a_name_below_the_bays_site(shop: Shop, page: Any):
    page.goto(shop.left["public_url"])
    address = service(shop.left, "api")["public_url"]
    assert address.startswith("http://api.left--harbour-shop.localhost")
    page.goto(f"{address}/products")
    assert "Brass cleat" in page.content()


def test_an_unknown_bay_is_a_404_that_names_the_bays_there_are(shop: Shop, page: Any):
    answer = page.goto(shop.left["public_url"].replace("left--", "nosuch--"))
    assert answer.status == 404
    text = page.inner_text("body")
    assert "left--harbour-shop" in text
    assert "right--harbour-shop" in text
    assert str(shop.repository) not in text


def test_ports_are_on_loopback_only_and_never_shared(shop: Shop):
    ports = [
        port
        for info in (shop.left, shop.right)
        for each in info["services"]
        for port in each.get("ports", {}).values()
    ]
    assert len(ports) == len(set(ports)) == 6
    listening = subprocess.run(["ss", "-Hltn"], capture_output=True, text=True)
    if listening.returncode:
        pytest.skip("ss is not installed")
    for line in listening.stdout.splitlines():
        address, _, port = line.split()[3].rpartition(":")
        if port.isdigit() and int(port) in ports:
            assert address in ("127.0.0.1", "[::1]"), line


def test_the_address_for_code_answers_without_the_proxy(shop: Shop):
    answer = shop.house.json("url", "left", "db", cwd=shop.repository)
    port = service(shop.left, "db")["ports"]["port"]
    assert answer["url"] == f"postgres://postgres:shop@127.0.0.1:{port}/shop"
    socket.create_connection(("127.0.0.1", port), timeout=5).close()


def test_the_failing_test_is_read_as_file_line_and_assertion(shop: Shop):
    result = shop.house.json("run", "left", "unit", cwd=shop.repository, code=1)
    assert (result["status"], result["reason"]) == ("failed", "tests_failed")
    assert result["counts"] == {"total": 3, "passed": 2, "failed": 1, "errors": 0, "skipped": 0}
    assert not result.get("started_services")
    (failure,) = result["failures"]
    line = (shop.repository / failure["file"]).read_text().splitlines()[failure["line"] - 1]
    assert failure["file"] == "tests/unit/test_prices.py"
    assert line.strip() == "assert line_total(500, 3) == 1350"
    assert "1500" in failure["message"]
    assert "1350" in failure["message"]
    assert result["tree"]["commit"] == git(shop.repository, "rev-parse", "HEAD")


def test_a_failure_is_one_line_of_file_line_and_message_for_a_person(shop: Shop):
    ran = shop.house.devbay("run", "left", "unit", cwd=shop.repository, code=1)
    assert "tests/unit/test_prices.py:9: " in ran.out
    assert "assert 1500 == 1350" in ran.out


def test_the_mended_bug_passes_in_its_bay_and_still_fails_in_the_other(shop: Shop):
    prices = Path(shop.left["worktree"]) / "shop/prices.py"
    text = prices.read_text()
    prices.write_text(text.replace("quantity > BULK_QUANTITY", "quantity >= BULK_QUANTITY"))
    try:
        result = shop.house.json("run", "left", "unit", cwd=shop.repository)
        assert (result["status"], result["tree"]["dirty"]) == ("passed", True)
        assert shop.house.json("run", "right", "unit", cwd=shop.repository, code=1)["status"] == "failed"
    finally:
        prices.write_text(text)


def test_the_integration_task_uses_the_bays_own_database(shop: Shop):
    result = shop.house.json("run", "right", "integration", cwd=shop.repository)
    assert result["status"] == "passed"
    assert result["counts"]["passed"] == 3


def test_no_file_in_the_worktree_belongs_to_another_user(shop: Shop):
    owner = shop.repository.stat().st_uid
    worktree = Path(shop.left["worktree"])
    assert [path for path in worktree.rglob("*") if path.lstat().st_uid != owner] == []


def test_a_second_bay_installs_nothing(shop: Shop):
    ran = shop.house.devbay("new", "third", cwd=shop.repository)
    assert "installing api: pip" not in ran.err
    assert "installing migrate: pip" not in ran.err
    shop.house.devbay("rm", "third", cwd=shop.repository)


def test_a_run_installs_nothing_that_its_service_has(shop: Shop):
    ran = shop.house.devbay("run", "left", "unit", cwd=shop.repository, code=1)
    assert "pip install" not in ran.err


def test_destroying_both_leaves_nothing_on_the_engine_and_in_git(shop: Shop):
    for name in ("left", "right"):
        answer = shop.house.json("rm", name, cwd=shop.repository)
        assert answer["destroyed"]
        assert answer["runtime"] == shop.house.runtime_name
        kinds = {each.split()[0] for each in answer["removed"]}
        assert kinds >= ({"container", "volume"} if answer["runtime"] == "docker" else {"process", "data"})
    assert shop.house.objects() == []
    assert git(shop.repository, "worktree", "list").count("\n") == 0
    assert git(shop.repository, "branch", "--list") == "* main"
    assert git(shop.repository, "status", "--porcelain") == ""
    assert shop.house.json("ls", cwd=shop.repository)["bays"] == []

"""Order: needs first, set-up once after its needs and before what waits for its service."""

from __future__ import annotations

from itertools import pairwise

import pytest

from devbay.manifest import parse
from devbay.manifest.graph import Edges, closure, cycle, dependencies, order


def edges(**services: str) -> Edges:
    """`name="a b | c"`: needs a and b, set-up c."""
    parts = {name: [*text.split("|"), ""][:2] for name, text in services.items()}
    return {name: (tuple(needs.split()), tuple(setup.split())) for name, (needs, setup) in parts.items()}


def test_the_subgraph_holds_only_what_is_needed_in_order() -> None:
    graph = edges(web="api", api="db cache", db="", cache="", other="db")
    assert order(graph, ["web"]) == ["db", "cache", "api", "web"]
    assert order(graph, ["cache"]) == ["cache"]
    assert order(graph, []) == []


def test_a_set_up_that_needs_its_service_runs_after_it_and_before_its_dependents() -> None:
    graph = edges(web="db", db="| seed", seed="db")
    assert dependencies(graph) == {"web": ("db", "seed"), "db": (), "seed": ("db",)}
    assert order(graph, ["web"]) == ["db", "seed", "web"]
    assert order(graph, ["db"]) == ["db", "seed"]


def test_a_set_up_that_does_not_need_its_service_runs_before_it() -> None:
    graph = edges(web="| assets", assets="")
    assert order(graph, ["web"]) == ["assets", "web"]


def test_several_set_ups_run_in_the_order_given() -> None:
    graph = edges(web="db", db="| migrate seed", seed="db", migrate="db")
    assert order(graph, ["web"]) == ["db", "migrate", "seed", "web"]


def test_what_a_set_up_itself_needs_does_not_wait_for_it() -> None:
    graph = edges(db="| seed", tool="db", seed="tool")
    assert order(graph, ["db"]) == ["db", "tool", "seed"]
    assert cycle(graph) is None


@pytest.mark.parametrize(
    "graph",
    [edges(a="b", b="a"), edges(a="b", b="c", c="d", d="b"), edges(a="| s", s="b", b="a", t="", x="x")],
)
def test_a_cycle_ends_where_it_starts(graph: Edges) -> None:
    found = cycle(graph)
    assert found is not None
    assert found[0] == found[-1]
    assert len(found) > 1
    direct = dependencies(graph)
    assert all(after in direct[before] for before, after in pairwise(found))


def test_a_long_chain_is_no_matter() -> None:
    graph = edges(**{f"s{number}": f"s{number + 1}" for number in range(3000)}, s3000="")
    assert cycle(graph) is None
    assert len(closure(graph, "s0")) == 3000


def test_an_unknown_name_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        order(edges(a=""), ["b"])


TEXT = """
version: 1
project: shop
services:
  db: {image: 'postgres:16', port: 5432, health: {tcp: 5432}}
  web: {build: web, port: 80, ports: {metrics: 81}, primary: true, health: {http: /}, needs: [db]}
  api: {build: api, health: {process: true}}
tasks:
  own: {image: 'a:1', run: [x], needs: []}
  named: {in: db, run: [x], needs: []}
  free: {run: [x], needs: []}
"""


def test_the_manifest_answers_for_its_services() -> None:
    manifest = parse(TEXT).require()
    assert manifest.primary() == "web"
    assert manifest.subgraph(["web"]) == ["db", "web"]
    assert manifest.dependencies("web") == ("db",)
    assert manifest.services["web"].port_map() == {"port": 80, "metrics": 81}
    assert [manifest.task_service(name) for name in manifest.tasks] == [None, "db", "web"]


def test_without_a_primary_service_a_task_runs_in_the_first_application_by_name() -> None:
    text = TEXT.replace(
        ", port: 80, ports: {metrics: 81}, primary: true, health: {http: /}", ", health: {log: x}"
    )
    manifest = parse(text).require()
    assert manifest.primary() == "db"
    assert manifest.task_service("free") == "api"


def test_a_task_of_this_machine_has_no_services_image() -> None:
    task = "  bare: {in: host, run: [x], needs: [web]}\n"
    assert parse(f"{TEXT}{task}").require().task_service("bare") is None

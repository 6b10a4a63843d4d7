from __future__ import annotations

from typing import Any

import pytest

from devbay.errors import DevbayError
from devbay.runtimes.docker import networks
from tests.runtimes.docker.fake_engine import FakeEngine

LABELS = {"dev.devbay.bay": "b1"}
TAKEN = (409, {"message": "network with name n already exists"})


def network(subnet: str, labels: dict[str, str] | None = None, containers: Any = None) -> dict[str, Any]:
    return {
        "Id": "id1", "Name": "n", "Labels": LABELS if labels is None else labels,
        "IPAM": {"Config": [{"Subnet": subnet}]}, "Internal": False, "Containers": containers or {},
    }  # fmt: skip


def test_a_network_of_this_bay_is_taken_as_it_is(fake: FakeEngine) -> None:
    fake.answers |= {"POST /networks/create": TAKEN, "GET /networks/n": network("10.213.0.0/27")}
    assert networks.ensure(fake.engine, "n", "10.213.0.0/27", LABELS) == "id1"


def test_one_with_another_subnet_stays_while_something_is_on_it(fake: FakeEngine) -> None:
    fake.answers |= {
        "POST /networks/create": TAKEN,
        "GET /networks/n": network("10.213.1.0/27", containers={"c1": {}}),
    }
    assert networks.ensure(fake.engine, "n", "10.213.0.0/27", LABELS) == "id1"


def test_one_with_another_subnet_and_nothing_on_it_is_made_anew(fake: FakeEngine) -> None:
    answers = [TAKEN, (201, {"Id": "id2"})]
    fake.answers |= {
        "POST /networks/create": lambda handler: handler.reply(*reversed(answers.pop(0))),
        "GET /networks/n": network("10.213.1.0/27"),
        "DELETE /networks/id1": {},
    }
    assert networks.ensure(fake.engine, "n", "10.213.0.0/27", LABELS) == "id2"
    assert "DELETE /networks/id1" in [key for key, _, _ in fake.asked]


def test_somebody_elses_network_is_never_taken(fake: FakeEngine) -> None:
    fake.answers |= {"POST /networks/create": TAKEN, "GET /networks/n": network("10.213.0.0/27", labels={})}
    with pytest.raises(DevbayError) as raised:
        networks.ensure(fake.engine, "n", "10.213.0.0/27", LABELS)
    assert raised.value.code == "name_conflict"


def test_what_is_still_on_a_network_is_taken_off(fake: FakeEngine) -> None:
    answers: list[Any] = [(403, {"message": "network n has active endpoints"}), (200, {})]
    fake.answers |= {
        "DELETE /networks/n": lambda handler: handler.reply(*reversed(answers.pop(0))),
        "GET /networks/n": network("10.213.0.0/27", containers={"c1": {}}),
        "POST /networks/n/disconnect": {},
    }
    networks.remove(fake.engine, "n")
    assert ("POST /networks/n/disconnect", {}, {"Container": "c1", "Force": True}) in fake.asked


def test_a_network_that_is_gone_is_removed(fake: FakeEngine) -> None:
    fake.answers["DELETE /networks/n"] = (404, {"message": "network n not found"})
    networks.remove(fake.engine, "n")


def test_the_subnets_in_use_leave_out_the_bays_own(fake: FakeEngine) -> None:
    others = {
        "Id": "2",
        "Name": "other",
        "IPAM": {"Config": [{"Subnet": "172.18.0.0/16"}, {"Subnet": "fd00::/64"}]},
    }
    host = {"Id": "3", "Name": "host", "IPAM": {"Config": None}}
    fake.answers["GET /networks"] = [network("10.213.0.0/27"), others, host]
    assert networks.subnets(fake.engine, besides="n") == ["172.18.0.0/16", "fd00::/64"]

from __future__ import annotations

import pytest

from devbay.errors import DevbayError
from devbay.runtimes.docker import volumes
from tests.runtimes.docker.fake_engine import FakeEngine

LABELS = {"dev.devbay.bay": "b1"}


def test_an_overlay_reads_the_template_and_writes_elsewhere() -> None:
    assert volumes.overlay_options("/v/t/_data", "/v/s/_data", rootless=False) == {
        "type": "overlay",
        "device": "overlay",
        "o": "lowerdir=/v/t/_data,upperdir=/v/s/_data/upper,workdir=/v/s/_data/work",
    }
    assert volumes.overlay_options("/t", "/s", rootless=True)["o"].endswith(",userxattr")


def test_somebody_elses_volume_of_the_name_is_refused(fake: FakeEngine) -> None:
    fake.answers["POST /volumes/create"] = {"Name": "v", "Mountpoint": "/v", "Labels": {}, "Options": None}
    with pytest.raises(DevbayError) as raised:
        volumes.ensure(fake.engine, "v", LABELS)
    assert raised.value.code == "name_conflict"


def test_a_fork_of_a_template_that_is_gone_makes_nothing(fake: FakeEngine) -> None:
    fake.answers["GET /volumes/t"] = (404, {"message": "get t: no such volume"})
    with pytest.raises(DevbayError, match="template volume t is gone"):
        volumes.fork(fake.engine, "v", "t", LABELS, helper_image="i")
    assert not [key for key, _, _ in fake.asked if key.startswith("POST")]


def test_a_volume_that_is_gone_is_removed_and_one_in_use_is_not(fake: FakeEngine) -> None:
    fake.answers["DELETE /volumes/v"] = (404, {"message": "get v: no such volume"})
    volumes.remove(fake.engine, "v")
    fake.answers["DELETE /volumes/v"] = (409, {"message": "remove v: volume is in use - [7a]"})
    with pytest.raises(DevbayError) as raised:
        volumes.remove(fake.engine, "v")
    assert raised.value.code == "volume_in_use"

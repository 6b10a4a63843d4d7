from __future__ import annotations

import json
import os
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from devbay.errors import Cancelled, DevbayError
from devbay.jobs import Job
from devbay.runtimes.docker.contexts import Endpoint
from devbay.runtimes.docker.engine import Engine, classify
from tests.runtimes.docker.fake_engine import INFO, FakeEngine, Handler


def test_a_missing_socket_is_an_unreachable_engine_at_once(tmp_path: Path) -> None:
    before = time.monotonic()
    with pytest.raises(DevbayError, match="its socket does not exist") as raised:
        Engine(Endpoint("default", f"unix://{tmp_path}/none.sock")).check()
    assert raised.value.code == "engine_unreachable"
    assert time.monotonic() - before < 10


def test_a_silent_engine_is_given_up_after_two_seconds(fake: FakeEngine) -> None:
    fake.stop()
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(fake.path))
        silent.listen()
        before = time.monotonic()
        with pytest.raises(DevbayError, match="no answer in time"):
            fake.engine.check()
    assert time.monotonic() - before < 10


@pytest.mark.skipif(os.geteuid() == 0, reason="root may use every socket")
def test_a_forbidden_socket_names_the_group(fake: FakeEngine) -> None:
    fake.path.chmod(0)
    with pytest.raises(DevbayError, match="group `docker`"):
        fake.engine.check()


def test_the_client_reconnects_after_a_restart(fake: FakeEngine) -> None:
    engine = fake.engine
    engine.check()
    fake.stop()
    with pytest.raises(DevbayError) as raised:
        engine.check()
    assert raised.value.code == "engine_unreachable"
    fake.start()
    engine.check()


def test_a_connection_cut_in_the_middle_is_an_unreachable_engine(fake: FakeEngine) -> None:
    fake.answers["GET /containers/x/json"] = lambda handler: handler.connection.shutdown(2)
    with pytest.raises(DevbayError, match="it closed the connection") as raised:
        fake.engine.call("GET", "/containers/x/json", doing="look at x")
    assert raised.value.code == "engine_unreachable" and raised.value.message.startswith("cannot look at x")


def test_userns_remap_is_refused_by_name(fake: FakeEngine) -> None:
    fake.answers["GET /info"] = INFO | {"SecurityOptions": ["name=userns"]}
    with pytest.raises(DevbayError, match="userns-remap") as raised:
        fake.engine.check()
    assert raised.value.code == "engine_unsupported"


@pytest.mark.parametrize(
    ("info", "platform", "kind"),
    [
        ({"SecurityOptions": ["name=seccomp,profile=builtin"]}, "linux", "rootful"),
        ({"SecurityOptions": ["name=rootless", "name=cgroupns"]}, "linux", "rootless"),
        ({"SecurityOptions": ["name=userns"]}, "linux", "userns-remap"),
        ({"OperatingSystem": "Docker Desktop"}, "linux", "desktop"),
        ({"OperatingSystem": "Ubuntu 24.04"}, "darwin", "desktop"),
        ({}, "linux", "rootful"),
    ],
)
def test_the_class_of_an_engine(info: dict[str, Any], platform: str, kind: str) -> None:
    assert classify(info, platform=platform).kind == kind


def test_limits_need_memory_and_cpu_control() -> None:
    assert classify(INFO, platform="linux").limits
    assert not classify(INFO | {"CpuCfsQuota": False}, platform="linux").limits


def test_a_mistake_of_the_caller_is_not_blamed_on_the_engine(fake: FakeEngine) -> None:
    with pytest.raises(ZeroDivisionError), fake.engine.errors("count"):
        raise ZeroDivisionError


def test_an_error_of_the_reader_of_a_stream_stays_its_own(fake: FakeEngine) -> None:
    fake.answers["GET /events"] = {"a": 1}
    with pytest.raises(FileNotFoundError), fake.engine.stream("GET", "/events"):
        raise FileNotFoundError("report.xml")


def _endless(handler: Handler) -> None:
    write = handler.chunks()
    write(json.dumps({"n": 1}).encode() + b"\n" + b'{"n":')
    write(b"2}\n")
    time.sleep(30)


def test_documents_come_as_they_are_sent_and_a_cancelled_job_ends_them(fake: FakeEngine) -> None:
    fake.answers["GET /events"] = _endless
    job, seen = Job(), []
    before = time.monotonic()
    with pytest.raises(Cancelled), fake.engine.stream("GET", "/events", job=job) as stream:
        for document in stream.documents():
            seen.append(document["n"])
            if len(seen) == 2:
                threading.Timer(0.05, job.cancel).start()
    assert seen == [1, 2]
    assert time.monotonic() - before < 5


def test_a_stream_that_breaks_is_an_unreachable_engine(fake: FakeEngine) -> None:
    def broken(handler: Handler) -> None:
        handler.chunks()(b'{"n": 1}\n')
        handler.connection.shutdown(2)

    fake.answers["GET /events"] = broken
    with pytest.raises(DevbayError) as raised, fake.engine.stream("GET", "/events") as stream:
        list(stream.documents())
    assert raised.value.code == "engine_unreachable"


def test_sixteen_threads_share_one_engine(fake: FakeEngine) -> None:
    engine, failures = fake.engine, []

    def ask() -> None:
        for _ in range(5):
            try:
                engine.call("GET", "/info")
            except DevbayError as error:
                failures.append(error)

    threads = [threading.Thread(target=ask) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert [key for key, _, _ in fake.asked].count("GET /version") == 1

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from devbay.errors import DevbayError
from devbay.runtimes.docker import containers
from devbay.runtimes.docker.archives import Entry
from devbay.runtimes.docker.containers import Container, inspected, listed
from devbay.runtimes.docker.specs import ContainerSpec
from tests.runtimes.docker.fake_engine import FakeEngine


def test_no_value_of_the_environment_is_in_an_error(fake: FakeEngine) -> None:
    fake.answers["POST /containers/create"] = (400, {"message": "invalid environment: TOKEN=s3cret value"})
    with pytest.raises(DevbayError) as raised:
        containers.create(fake.engine, ContainerSpec("n", "i", env={"TOKEN": "s3cret value"}))
    assert raised.value.message == "cannot create n: invalid environment: TOKEN=[TOKEN]"
    assert raised.value.__cause__ is None


def test_a_mounted_folder_that_is_gone_is_told_from_one_that_is_not_shared(
    fake: FakeEngine, tmp_path: Path
) -> None:
    text = 'invalid mount config for type "bind": bind source path does not exist: '
    for folder, code in ((tmp_path, "path_not_shared"), (tmp_path / "gone", "folder_missing")):
        fake.answers["POST /containers/create"] = (400, {"message": f"{text}{folder}"})
        with pytest.raises(DevbayError) as raised:
            containers.create(fake.engine, ContainerSpec("n", "i"))
        assert raised.value.code == code and str(folder) in raised.value.message


def test_a_container_without_files_costs_one_call(fake: FakeEngine) -> None:
    fake.answers["POST /containers/create"] = (201, {"Id": "c1"})
    engine = fake.engine
    engine.info()
    before = len(fake.asked)
    assert containers.create(engine, ContainerSpec("n", "i", platform="linux/amd64")) == "c1"
    assert [(key, query) for key, query, _ in fake.asked[before:]] == [
        ("POST /containers/create", {"name": "n", "platform": "linux/amd64"})
    ]


def test_a_container_whose_files_cannot_be_put_in_is_removed(fake: FakeEngine) -> None:
    fake.answers |= {
        "POST /containers/create": (201, {"Id": "c1"}),
        "PUT /containers/c1/archive": (500, {"message": "no space left on device"}),
        "DELETE /containers/c1": {},
    }
    with pytest.raises(DevbayError) as raised:
        containers.create(fake.engine, ContainerSpec("n", "i", files=(Entry("/etc/x", "file"),)))
    assert raised.value.code == "engine_full"
    assert fake.asked[-1][0] == "DELETE /containers/c1"


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda e: containers.kill(e, "c"), "cannot kill container: c: container c is not running"),
        (lambda e: containers.kill(e, "c"), "No such container: c"),
        (lambda e: containers.stop(e, "c", timeout_s=0.5), "No such container: c"),
        (lambda e: containers.pause(e, "c"), "Container c is already paused"),
        (lambda e: containers.unpause(e, "c"), "Container c is not paused"),
        (lambda e: containers.remove(e, "c"), "No such container: c"),
    ],
)
def test_what_is_so_already_is_no_error(fake: FakeEngine, act: Any, message: str) -> None:
    for path in ("POST /containers/c/kill", "POST /containers/c/stop", "POST /containers/c/pause",
                 "POST /containers/c/unpause", "DELETE /containers/c"):  # fmt: skip
        fake.answers[path] = (409, {"message": message})
    act(fake.engine)


def test_other_errors_of_these_are_errors(fake: FakeEngine) -> None:
    fake.answers["POST /containers/c/kill"] = (500, {"message": "bad"})
    with pytest.raises(DevbayError, match="bad"):
        containers.kill(fake.engine, "c")


def test_a_removal_that_goes_on_already_is_waited_for(fake: FakeEngine) -> None:
    fake.answers |= {
        "DELETE /containers/c": (409, {"message": "removal of container c is already in progress"}),
        "POST /containers/c/wait": {"StatusCode": 0},
    }
    containers.remove(fake.engine, "c")
    assert fake.asked[-1][:2] == ("POST /containers/c/wait", {"condition": "removed"})


@pytest.mark.parametrize(
    ("status", "code"),
    [
        ("Exited (137) 2 hours ago", 137),
        ("Restarting (1) 3 seconds ago", 1),
        ("Up 2 minutes", None),
        ("Created", None),
    ],
)
def test_the_exit_code_is_read_from_the_list(status: str, code: int | None) -> None:
    item = {"Id": "1", "Names": ["/n"], "ImageID": "i", "State": "exited", "Labels": None, "Status": status}
    assert listed(item).exit_code == code


def test_an_inspected_container_knows_its_end() -> None:
    found = {
        "Id": "1", "Name": "/n", "Image": "sha256:1", "RestartCount": 3, "Config": {"Labels": {"a": "b"}},
        "State": {"Status": "exited", "ExitCode": 137, "OOMKilled": True, "Error": "",
                  "StartedAt": "2026-01-01T00:00:00.5Z", "FinishedAt": "2026-01-01T00:00:01Z"},
        "HostConfig": {"RestartPolicy": {"Name": ""}},
    }  # fmt: skip
    assert inspected(found) == Container(
        "1", "n", "sha256:1", "exited", {"a": "b"}, 137, 3, "2026-01-01T00:00:00.5Z",
        "2026-01-01T00:00:01Z", True, "", "no",
    )  # fmt: skip


def test_a_container_that_never_ran_has_no_exit_code_and_no_times() -> None:
    found = {
        "Id": "1", "Name": "/n", "Image": "i", "Config": {},
        "State": {"Status": "created", "ExitCode": 0, "StartedAt": "0001-01-01T00:00:00Z"},
        "HostConfig": {"RestartPolicy": {"Name": "no"}},
    }  # fmt: skip
    made = inspected(found)
    assert (made.exit_code, made.started_at, made.finished_at) == (None, "", "")


@pytest.mark.parametrize(
    ("state", "policy", "code", "comes_back"),
    [
        ("exited", "no", 1, False),
        ("exited", "on-failure", 1, True),
        ("exited", "on-failure", 0, False),
        ("exited", "always", 0, True),
        ("restarting", "no", 1, True),
    ],
)
def test_whether_the_engine_brings_it_back(state: Any, policy: str, code: int, comes_back: bool) -> None:
    assert Container("1", "n", "i", state, {}, code, restart=policy).will_restart is comes_back

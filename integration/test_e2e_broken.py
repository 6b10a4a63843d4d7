"""Services that cannot come up are explained, and the rest of the bay runs."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.house import House
from integration.repositories import TINY

RUNTIMES = ("docker", "host")
BROKEN = {
    "an image that does not exist": (
        "  bad:\n    image: no-such-image:1\n    start: [sleep, '9']\n    health: {process: true}\n",
        "no-such-image",
    ),
    "a build that fails": (
        "  bad:\n    build: .\n    health: {process: true}\n",
        {"docker": "the build's own words", "host": "takes a container engine"},
    ),
    "a probe that never passes": (
        "  bad:\n    image: python:3.13-slim\n    start: [sleep, '99']\n    port: 9\n"
        "    health: {http: /, timeout: 2s}\n",
        "2",
    ),
    "a service that exits at once": (
        "  bad:\n    image: python:3.13-slim\n    start: [sh, -c, 'echo last words; exit 42']\n"
        "    health: {process: true}\n",
        "42",
    ),
    "a command that does not exist": (
        "  bad:\n    image: python:3.13-slim\n    start: [no-such-program]\n    health: {process: true}\n",
        "(no-such-program|127)",
    ),
}


LOGGED = {
    "a service that exits at once": "last words",
    "a command that does not exist": "no-such-program",
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_service_that_cannot_come_up_is_explained_and_the_rest_runs(
    house: House, make: Callable[..., Path], case: str
):
    service, word = BROKEN[case]
    manifest = TINY.replace("services:\n", f"services:\n{service}")
    manifest = manifest.replace("    port: 8080\n", "    port: 8080\n    primary: true\n")
    dockerfile = "FROM python:3.13-slim\nRUN echo the build\\'s own words && exit 3\n"
    path = make("tiny", case.replace(" ", "-"), manifest, Dockerfile=dockerfile)
    ran = house.devbay("new", "one", "--json", cwd=path, code=1)
    info = ran.json
    assert info["state"] == "degraded"
    (bad,) = [each for each in info["services"] if each["name"] == "bad"]
    assert (bad["state"], bad["health"]) in (("failed", "unhealthy"), ("running", "unhealthy"))
    assert re.search(word if isinstance(word, str) else word[house.runtime_name], bad["reason"]), bad
    (web,) = [each for each in info["services"] if each["name"] == "web"]
    assert web["health"] == "healthy"
    if case in LOGGED:
        said = house.devbay("logs", "one", "bad", cwd=path).out
        assert LOGGED[case] in said + bad["reason"]
    house.devbay("rm", "one", cwd=path)
    assert house.json("ls", cwd=path)["bays"] == []
    assert house.objects(info["id"]) == []


def test_a_port_that_something_else_takes_is_got_around(house: House, make: Callable[..., Path]):
    path = make("tiny", "ports")
    info = house.json("new", "one", cwd=path)
    port = next(each["ports"]["port"] for each in info["services"] if each["name"] == "web")
    house.devbay("cool", "one", cwd=path)
    with socket.create_server(("127.0.0.1", port)):
        ran = house.devbay("thaw", "one", "--json", cwd=path, code=None)
        if ran.code:
            told = ran.json.get("error", {}).get("message", "") + str(ran.json.get("reason"))
            assert str(port) in told
        else:
            web = next(each for each in ran.json["services"] if each["name"] == "web")
            assert web["ports"]["port"] != port
            assert web["health"] == "healthy"
    house.devbay("rm", "one", cwd=path)

"""Which images have a stand-in, and what every stand-in has in common."""

from __future__ import annotations

from typing import Any

import pytest

from devbay.manifest.images import FAMILIES
from devbay.runtimes.base import BindMount
from devbay.runtimes.host.providers import PROVIDERS, base, provider
from devbay.runtimes.host.providers.memcached import Memcached


@pytest.mark.parametrize(
    ("image", "family"),
    [
        ("postgres:16", "postgres"),
        ("registry.example/team/postgis:16", "postgres"),
        ("redis:7-alpine", "redis"),
        ("valkey/valkey", "redis"),
        ("mysql:8", "mariadb"),
        ("memcached", "memcached"),
        ("axllent/mailpit", "mail"),
        ("minio/minio", "minio"),
        ("python:3.12", None),
        ("rabbitmq:3", None),
        (None, None),
    ],
)
def test_an_image_is_met_by_its_family(image: str | None, family: str | None) -> None:
    found = provider(image)
    assert (found.family if found else None) == family


def test_every_key_of_the_registry_is_a_family_of_the_manifest() -> None:
    assert set(PROVIDERS) <= set(FAMILIES)


def test_memcached_listens_on_the_given_port_whatever_its_flags_say(spec_of: Any, tmp_path: Any) -> None:
    server = base.Server("memcached", "1.6", tmp_path / "memcached", tmp_path, "here")
    spec = spec_of("memcached", ports={"port": 11211}, command=("memcached", "-m", "64", "-l", "0.0.0.0"))
    words = Memcached().launch(spec, server, tmp_path, None).argv
    assert words[1:3] == ("-m", "64")
    assert words[-6:] == ("-l", "127.0.0.1", "-p", str(spec.ports["port"][1]), "-U", "0")


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("x", "-a"), ("x", "-a")),
        (("sh", "-c", 'exec x "$A b" ${B:-c} -d$A'), ("x", "v b", "c", "-dv")),
        (("sh", "-c", 'x "$A" > /dev/null 2>&1 || exit 1'), ("x", "v")),
        (("sh", "-c", "x && y"), None),
        (("sh", "-c", "x $(y)"), None),
        (("sh", "-c", "x '"), None),
        (("sh", "-c", "x '$A'"), None),
    ],
)
def test_only_a_shell_text_of_one_command_is_read(
    argv: tuple[str, ...], words: tuple[str, ...] | None
) -> None:
    assert base.simple_command(argv, {"A": "v"}) == words


def test_the_port_of_a_family_is_known_by_its_number_before_its_name(spec_of: Any) -> None:
    spec = spec_of("minio/minio", ports={"port": 9001, "api": 9000})
    assert base.given(spec, declared=9000) == spec.ports["api"][1]
    other = spec_of("postgres", ports={"port": 5433})
    assert base.given(other, declared=5432) == other.ports["port"][1]


def test_words_that_name_a_mount_are_paths_of_this_machine(spec_of: Any) -> None:
    spec = spec_of("redis", mounts=(BindMount("/repo/conf", "/etc/conf", True),))
    assert base.here(spec, "/etc/conf/redis.conf") == "/repo/conf/redis.conf"
    assert base.here(spec, "file=/etc/conf") == "file=/repo/conf"
    assert base.here(spec, "/etc/confs") == "/etc/confs"


@pytest.mark.parametrize(
    ("words", "value"),
    [
        (("-a", "x"), "x"),
        (("-ax",), "x"),
        (("--pass", "x"), "x"),
        (("--pass=x",), "x"),
        (("--passing",), None),
        (("--append",), None),
    ],
)
def test_an_options_value_is_found_in_every_form(words: tuple[str, ...], value: str | None) -> None:
    assert base.option(words, "-a", "--pass") == value

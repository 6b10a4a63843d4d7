"""What waits for a person: each thing once, with a key that changes when the thing does."""

from __future__ import annotations

from devbay.manifest import Capability, capabilities, parse

TEXT = """
version: 1
project: shop
git: rw
services:
  api:
    image: 'a:1'
    health: {process: true}
    docker_socket: true
    install: [npm, ci]
    install_scripts: true
    mounts: [{source: ./a, target: /a}, {source: /srv/data, target: /data}]
    env: {A: '${secret:one}', B: 'x${secret:one}${secret:two}', C: '$${secret:three}'}
  web: {build: web, health: {process: true}, env: {A: '${secret:one}'}}
tasks:
  t: {run: [x], needs: [], env: {A: '${secret:one}'}}
"""


def found(text: str) -> tuple[Capability, ...]:
    return capabilities(parse(text).require())


def key(text: str, kind: str) -> str:
    return next(each.key for each in found(text) if each.kind == kind)


def test_every_reach_beyond_the_bay_is_one_capability() -> None:
    assert [(each.kind, each.path, each.service, each.task) for each in found(TEXT)] == [
        ("git", "git", None, None),
        ("docker_socket", "services/api/docker_socket", "api", None),
        ("mount", "services/api/mounts/1", "api", None),
        ("install_scripts", "services/api/install_scripts", "api", None),
        ("secret", "services/api/env/A", "api", None),
        ("secret", "services/api/env/B", "api", None),
        ("secret", "services/web/env/A", "web", None),
        ("secret", "tasks/t/env/A", None, "t"),
    ]


def test_keys_are_distinct_stable_and_long_enough() -> None:
    keys = [each.key for each in found(TEXT)]
    assert len(set(keys)) == len(keys)
    assert all(len(each) >= 16 and int(each, 16) >= 0 for each in keys)
    assert keys == [each.key for each in found(TEXT)]


def test_summaries_name_the_receiver_and_the_thing() -> None:
    summaries = [each.summary for each in found(TEXT)]
    assert "api: /srv/data of this machine" in summaries
    assert "task t: the secret one" in summaries
    assert all(each.detail for each in found(TEXT))


def test_another_command_with_the_engines_socket_is_another_capability() -> None:
    changed = TEXT.replace("docker_socket: true", "docker_socket: true\n    start: [x]")
    assert key(TEXT, "docker_socket") != key(changed, "docker_socket")


def test_another_target_of_a_mount_is_another_capability() -> None:
    assert key(TEXT, "mount") != key(TEXT.replace("target: /data", "target: /etc"), "mount")


def test_what_does_not_matter_to_it_leaves_the_key_alone() -> None:
    changed = TEXT.replace("B: 'x", "D: '1', B: 'y")
    assert [each.key for each in found(TEXT)] == [each.key for each in found(changed)]


def test_each_is_also_a_diagnostic_at_its_place() -> None:
    loaded = parse(TEXT)
    shown = [each for each in loaded.diagnostics if each.severity == "approval"]
    assert len(shown) == len(found(TEXT))
    assert ("mount", "services/api/mounts/1", 12) in [(each.rule, each.path, each.line) for each in shown]


def test_an_ordinary_manifest_asks_for_nothing() -> None:
    assert (
        found("version: 1\nproject: a\nservices: {b: {build: ., start: [bash], health: {process: true}}}\n")
        == ()
    )


def test_the_address_of_a_service_whose_login_is_a_secret_gives_that_secret_to_its_reader() -> None:
    manifest = parse(
        """
version: 1
project: shop
services:
  db: {image: "postgres:17", port: 5432, health: {tcp: 5432}, env: {POSTGRES_PASSWORD: "${secret:db}"}}
  api: {image: "node:20", start: [x], health: {process: true}, env: {URL: "${bay.db.url}"}}
  web: {image: "node:20", start: [x], health: {process: true}, env: {HOST: "${bay.db.host}"}}
"""
    ).require()
    found = {(each.kind, each.service) for each in capabilities(manifest)}
    assert found == {("secret", "db"), ("secret", "api")}

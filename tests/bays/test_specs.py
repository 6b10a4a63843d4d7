"""Specs: where paths lie, what a task gets, and what makes a running service outdated."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from devbay.bays.specs import Surroundings, config_hash, service_spec, task_spec, wants_worktree
from devbay.errors import DevbayError
from devbay.manifest import Manifest, Service, parse
from devbay.runtimes.base import BayRef, BindMount
from devbay.sites.hosts import SiteAddresses

WORKTREE = Path("/home/me/shop/.devbay/bays/login")

TEXT = """
version: 1
project: shop
services:
  db:
    image: postgres:17
    port: 5432
    env: {POSTGRES_PASSWORD: "${secret:db}"}
    health: {tcp: 5432}
  web:
    image: node:20
    workdir: /workspace/frontend
    install: [npm, ci]
    volumes: [node_modules, /var/cache/app]
    caches: [/root/.npm, /workspace/.cache]
    tmpfs: [/tmp, /workspace/frontend/tmp]
    mounts: [{source: ./conf, target: /workspace/etc}, {source: shared, target: /srv/shared}]
    start: [npm, run, dev]
    entrypoint: [/bin/tini, --]
    port: 5173
    primary: true
    restart: always
    needs: [db]
    health: {http: /}
    env: {DATABASE: "${bay.db.url}", SITE: "${bay.web.public_url}"}
  built:
    build: {context: ./backend, target: dev}
    volumes: [cache]
    health: {process: true}
tasks:
  unit:
    run: [npx, vitest]
    needs: []
    env: {REPORT: "${run.dir}/unit.xml", DATABASE: other}
  own:
    image: python:3.13-slim
    run: [pytest]
    needs: []
  bare:
    in: host
    workdir: /workspace/tools
    limits: {memory: 1g}
    run: [make]
    needs: []
"""


def manifest() -> Manifest:
    return parse(TEXT).require()


def around(**changes: object) -> Surroundings:
    ports = {("db", "port"): 20001, ("web", "port"): 20002}
    made = Surroundings(
        ref=BayRef("1a2b3c4d", "home", "shop", "repo", "login"),
        worktree=WORKTREE,
        addresses=SiteAddresses("login--shop", "web", ports, 7780),
        host_ports=ports,
        secret=lambda ref: f"value of {ref}",
        git_mounts=(BindMount("/home/me/shop/.git", "/home/me/shop/.git", read_only=True),),
        git_env={"GIT_CONFIG_COUNT": "0"},
    )
    return dataclasses.replace(made, **changes)  # type: ignore[arg-type]


def test_a_datastore_gets_no_worktree_no_git_and_its_secrets() -> None:
    spec = service_spec(manifest(), "db", around())
    assert spec.worktree is None
    assert spec.git_mounts == ()
    assert "GIT_CONFIG_COUNT" not in spec.env
    assert spec.env["POSTGRES_PASSWORD"] == "value of db"
    assert spec.ports == {"port": (5432, 20001)}


def a_service(**parts: object) -> Service:
    return Service.model_validate({"health": {"process": True}, **parts})


def test_everything_built_gets_the_worktree() -> None:
    assert wants_worktree(a_service(build="."))


@pytest.mark.parametrize(
    "part",
    [
        {"start": ["npm", "start"]},
        {"install": ["npm", "ci"]},
        {"workdir": "/workspace/app"},
        {"volumes": ["node_modules"]},
    ],
)
def test_a_pulled_image_gets_the_worktree_with_anything_of_the_users_in_it(part: dict[str, object]) -> None:
    assert wants_worktree(a_service(image="node:20", **part))
    assert not wants_worktree(a_service(image="postgres:17", **part))


def test_a_pulled_oneshot_gets_the_worktree_for_its_command() -> None:
    oneshot = {"kind": "oneshot", "image": "node:20", "run": ["npm", "test"]}
    assert wants_worktree(Service.model_validate(oneshot))


def test_a_pulled_image_as_it_is_gets_no_worktree() -> None:
    assert not wants_worktree(a_service(image="mailserver:1", volumes=["/var/mail"]))


def test_paths_below_workspace_and_relative_ones_lie_in_the_worktree() -> None:
    spec = service_spec(manifest(), "web", around())
    assert spec.workdir == f"{WORKTREE}/frontend"
    assert spec.volumes == (f"{WORKTREE}/frontend/node_modules", "/var/cache/app")
    assert spec.mounts == (
        BindMount(f"{WORKTREE}/conf", f"{WORKTREE}/etc"),
        BindMount(f"{WORKTREE}/shared", "/srv/shared"),
    )
    assert spec.caches == ("/root/.npm", f"{WORKTREE}/.cache")
    assert spec.tmpfs == ("/tmp", f"{WORKTREE}/frontend/tmp")
    assert not any("/workspace" in mount.target for mount in spec.mounts)


def test_references_are_filled_in_on_the_container_plane_and_public_ones_carry_the_proxys_port() -> None:
    env = service_spec(manifest(), "web", around()).env
    assert env["DATABASE"] == "postgres://postgres:value%20of%20db@db:5432/postgres"
    assert env["SITE"] == "http://login--shop.localhost:7780"
    assert env["DEVBAY_BAY"] == "login"
    assert env["DEVBAY_SERVICE"] == "web"


def test_a_built_image_keeps_its_own_working_directory_and_its_relative_volumes_are_left_to_the_runtime() -> (
    None
):
    spec = service_spec(manifest(), "built", around())
    assert spec.workdir is None
    assert spec.volumes == ("cache",)
    assert spec.build is not None
    assert spec.build.context == WORKTREE / "backend"
    assert spec.worktree == WORKTREE


def test_a_task_runs_its_argv_alone_with_the_services_surroundings() -> None:
    spec = task_spec(manifest(), "unit", ["a.test.ts"], around(), run_dir=Path("/runs/r1/out"))
    assert spec.kind == "task"
    assert spec.name == "web"
    assert spec.entrypoint == ()
    assert spec.command == ("npx", "vitest", "a.test.ts")
    assert spec.ports == {}
    assert spec.peers == ("db", "web", "built")
    assert spec.restart == "no"
    assert spec.health is None
    assert spec.volumes == service_spec(manifest(), "web", around()).volumes
    assert spec.env["REPORT"] == "/runs/r1/out/unit.xml"
    assert spec.env["DATABASE"] == "other"
    assert spec.env["DEVBAY_RUN_DIR"] == "/runs/r1/out"


def test_a_task_with_an_image_of_its_own_gets_the_worktree_as_its_directory() -> None:
    spec = task_spec(manifest(), "own", [], around(), run_dir=Path("/runs/r1/out"))
    assert spec.image == "python:3.13-slim"
    assert spec.workdir == str(WORKTREE)
    assert spec.git_mounts


def test_a_task_of_this_machine_has_no_image_and_starts_in_the_worktree() -> None:
    spec = task_spec(manifest(), "bare", [], around(), run_dir=Path("/runs/r1/out"))
    assert (spec.image, spec.build, spec.install) == (None, None, None)
    assert (spec.workdir, spec.command) == (f"{WORKTREE}/tools", ("make",))
    assert spec.limits is not None


def test_a_task_without_any_container_to_run_in_is_an_error_that_says_what_to_add() -> None:
    text = "version: 1\nproject: p\nservices: {}\ntasks: {t: {run: [true], needs: []}}\n".replace(
        "[true]", '["true"]'
    )
    loaded = parse(text)
    with pytest.raises(DevbayError):
        task_spec(loaded.require(), "t", [], around(), run_dir=Path("/r"))


@pytest.mark.parametrize(
    "change",
    [
        {"command": ("other",)},
        {"env": {"A": "2"}},
        {"image": "node:22"},
        {"ports": {"port": (5173, 20009)}},
        {"user": "1:1"},
        {"volumes": ()},
    ],
)
def test_what_changes_a_container_changes_its_hash(change: dict[str, object]) -> None:
    spec = service_spec(manifest(), "web", around())
    assert config_hash(spec, "f", "k") != config_hash(dataclasses.replace(spec, **change), "f", "k")  # type: ignore[arg-type]


def test_a_probe_does_not_make_a_container_outdated_and_content_does() -> None:
    spec = service_spec(manifest(), "web", around())
    assert config_hash(spec, "f", "k") == config_hash(dataclasses.replace(spec, health=None), "f", "k")
    assert config_hash(spec, "f", "k") != config_hash(spec, "other content", "k")


def test_the_hash_is_keyed_because_the_environment_may_hold_secrets() -> None:
    spec = service_spec(manifest(), "db", around())
    assert config_hash(spec, "f", "one home") != config_hash(spec, "f", "another home")

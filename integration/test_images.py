"""Pulling and building images on a real engine."""

from __future__ import annotations

import dataclasses
import os
import secrets
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from devbay.errors import Cancelled, DevbayError
from devbay.jobs import Job
from devbay.runtimes.base import BayRef, BuildSpec, ServiceSpec
from devbay.runtimes.docker.buildcontext import _entries, read_context
from devbay.runtimes.docker.builds import build_tag, built_images, ensure_built
from devbay.runtimes.docker.contexts import resolve_endpoint
from devbay.runtimes.docker.engine import Engine
from devbay.runtimes.docker.globs import Patterns
from devbay.runtimes.docker.images import ensure_pulled, find_image
from devbay.runtimes.outbound import Outbound
from integration.house import docker

IMAGE = "busybox:1.37"
HOME = secrets.token_hex(8)
OTHER_HOME = HOME[:8] + "0" * 8
NOTHING = Outbound()


@pytest.fixture(scope="module")
def connection() -> Iterator[Engine]:
    engine = Engine(resolve_endpoint(os.environ))
    yield engine
    for home in (HOME, OTHER_HOME):
        for image in built_images(engine, home):
            docker("rmi", "-f", image)
        assert built_images(engine, home) == {}
    engine.close()


@pytest.fixture
def worktree(tmp_path: Path) -> Path:
    folder = tmp_path / "wörk tree"
    folder.mkdir()
    return folder


def spec(worktree: Path, name: str = "web", **build: object) -> ServiceSpec:
    ref = BayRef("b1b2c3d4", HOME, "shop", "r1", worktree.parent.name)
    built = BuildSpec(context=worktree, **build)  # type: ignore[arg-type]
    return ServiceSpec(bay=ref, name=name, kind="service", build=built, worktree=worktree)


class Lines:
    """A job that keeps what it is told."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.job = Job(lambda message, _fraction: self.seen.append(message))

    @property
    def text(self) -> str:
        return "\n".join(self.seen)


def build(engine: Engine, wanted: ServiceSpec, job: Job | None = None, outbound: Outbound = NOTHING) -> str:
    return ensure_built(engine, wanted, os.environ, outbound, job or Job()).id


def test_an_image_that_is_there_needs_no_registry(connection):
    info = ensure_pulled(connection, IMAGE, None, os.environ, Job())
    assert info.id == find_image(connection, info.id).id
    assert info.cmd


def test_an_image_that_cannot_be_had_is_named_with_what_to_do(connection):
    with pytest.raises(DevbayError, match=r"localhost:1/devbay/nothing:1") as raised:
        ensure_pulled(connection, "localhost:1/devbay/nothing:1", None, os.environ, Job())
    assert raised.value.code == "registry_unreachable"
    assert raised.value.next


def test_a_reference_that_is_none_is_no_image(connection):
    with pytest.raises(DevbayError) as raised:
        ensure_pulled(connection, "Web:1", None, os.environ, Job())
    assert raised.value.code == "image_not_found"


def test_a_build_shows_its_steps_and_labels_its_image(connection, worktree):
    (worktree / "Dockerfile").write_text(f"FROM {IMAGE}\nRUN echo step-{HOME}\nCOPY . /app\n")
    (worktree / "file").write_text("1")
    lines = Lines()
    info = ensure_built(connection, spec(worktree), os.environ, Outbound(), lines.job)
    assert f"step-{HOME}" in lines.text
    assert info.labels["dev.devbay.home"] == HOME
    assert info.labels["dev.devbay.service"] == "web"
    assert "dev.devbay.bay" not in info.labels


def test_a_second_bay_with_the_same_files_builds_nothing(connection, worktree, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    for folder in (worktree, other):
        (folder / "Dockerfile").write_text(f"FROM {IMAGE}\nCOPY . /same\n")
        (folder / "file").write_text("same")
        (folder / ".git").write_text(f"gitdir: {folder}")
    first = build(connection, spec(worktree))
    lines = Lines()
    assert build(connection, spec(other), lines.job) == first
    assert lines.seen == []


def test_two_at_once_build_once(connection, worktree):
    (worktree / "Dockerfile").write_text(f"FROM {IMAGE}\nRUN sleep 0.5; echo {secrets.token_hex(4)}\n")
    jobs, ids = [Lines(), Lines()], []
    threads = [
        threading.Thread(target=lambda job=job: ids.append(build(connection, spec(worktree), job)))
        for job in (lines.job for lines in jobs)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ids[0] == ids[1]
    assert sorted(bool(lines.seen) for lines in jobs) == [False, True]


def test_what_is_ignored_is_not_sent_and_git_only_where_it_is_named(connection, worktree):
    (worktree / ".dockerignore").write_text("*.secret\n")
    for name in ("a.secret", "b.txt", ".git"):
        (worktree / name).write_text(name)
    (worktree / ".devbay").mkdir()
    (worktree / ".devbay/x").write_text("x")
    (worktree / "link").symlink_to("/etc/passwd")
    (worktree / "Dockerfile").write_text(f"FROM {IMAGE}\nCOPY . /app\n")
    image = build(connection, spec(worktree))
    listing = docker("run", "--rm", image, "ls", "-A", "/app").split()
    assert listing == [".dockerignore", "Dockerfile", "b.txt", "link"]
    assert docker("run", "--rm", image, "readlink", "/app/link") == "/etc/passwd\n"
    (worktree / "Dockerfile").write_text(f"FROM {IMAGE}\nCOPY .git /app/.git\n")
    assert docker("run", "--rm", build(connection, spec(worktree)), "cat", "/app/.git") == ".git"


def test_target_arguments_and_the_ca_bundle_reach_the_build(connection, worktree, tmp_path):
    (tmp_path / "ca.pem").write_text("the bundle")
    (worktree / "Dockerfile").write_text(
        f"FROM {IMAGE} AS first\nARG WORD\nARG HTTP_PROXY\n"
        'RUN --mount=type=secret,id=ca_bundle echo "$WORD $HTTP_PROXY $(cat /run/secrets/ca_bundle)" >/said\n'
        "FROM first AS second\nRUN false\n"
    )
    outbound = Outbound(tmp_path / "ca.pem", (("http", "http://proxy.example:1"),))
    image = build(connection, spec(worktree, target="first", args={"WORD": "hello"}), outbound=outbound)
    said = docker("run", "--rm", image, "cat", "/said")
    assert said == "hello http://proxy.example:1 the bundle\n"
    assert "proxy.example" not in docker("image", "inspect", image)


def test_a_failing_build_says_which_line_and_what_it_printed(connection, worktree):
    (worktree / "Dockerfile").write_text(f"FROM {IMAGE}\nRUN echo the-reason >&2; exit 7\n")
    wanted = spec(worktree, name="failing")
    with pytest.raises(DevbayError, match=r"Dockerfile:2 `RUN echo the-reason >&2; exit 7`") as raised:
        build(connection, wanted)
    assert raised.value.code == "build_failed"
    assert raised.value.data["log"] == ["the-reason"]
    assert docker("images", "-q", build_tag(wanted, "x").partition(":")[0]) == ""


def test_a_cancelled_build_ends_its_builder(connection, worktree):
    (worktree / "Dockerfile").write_text(f"FROM {IMAGE}\nRUN echo begun-{HOME}; sleep 60\n")
    job = Job(lambda message, _fraction: begun.set() if message == f"begun-{HOME}" else None)
    begun = threading.Event()
    threading.Thread(target=lambda: (begun.wait(30), job.cancel())).start()
    with pytest.raises(Cancelled):
        build(connection, spec(worktree), job)
    processes = subprocess.run(["ps", "axww", "-o", "args"], capture_output=True, text=True).stdout
    assert str(worktree) not in processes


def test_a_missing_client_is_named(connection, worktree):
    (worktree / "Dockerfile").write_text(f"FROM {IMAGE}\n# {secrets.token_hex(4)}\n")
    with pytest.raises(DevbayError) as raised:
        ensure_built(connection, spec(worktree), {"PATH": "/nowhere"}, Outbound(), Job())
    assert raised.value.code == "docker_client_missing"


def test_the_pinned_engine_is_used_whatever_the_environment_says(connection, worktree):
    (worktree / "Dockerfile").write_text(f"FROM {IMAGE}\nRUN echo {secrets.token_hex(4)}\n")
    env = {**os.environ, "DOCKER_HOST": "tcp://127.0.0.1:1", "BUILDX_BUILDER": "nowhere"}
    assert ensure_built(connection, spec(worktree), env, Outbound(), Job()).id


def test_a_built_image_of_another_home_is_not_taken(connection, worktree):
    (worktree / "Dockerfile").write_text(f"FROM {IMAGE}\n")
    wanted = spec(worktree)
    first = build(connection, wanted)
    other = dataclasses.replace(wanted.bay, home=OTHER_HOME)
    second = build(connection, dataclasses.replace(wanted, bay=other))
    assert first != second


@pytest.mark.parametrize(
    "ignore",
    [
        "docs\n!docs/keep\n",
        "*\n!src\n!docs/**/*.md\nsrc/private\n",
        "**/*.md\n!**/README.md\n",
        "/docs/\n./src/../notes.txt\n",
        "# comment\n\n  src/**/x?.py  \n[a-n]*.txt\n",
        "**\n!docs/deep/a.md\n",
        "docs/**\n!docs/deep\ndocs/deep/README.md\n",
        "*/*\n!*/keep\n",
        "src/p*/\n!src/private/x1.py\n",
    ],
)
def test_what_decides_is_exactly_what_is_sent(connection, worktree, ignore):
    names = [
        "notes.txt", "zoo.txt", "README.md", "docs/keep", "docs/a.md", "docs/deep/a.md",
        "docs/deep/README.md", "src/main.py", "src/private/x1.py", "src/private/y.py",
        "empty-parent/only/keep",
    ]  # fmt: skip
    for name in names:
        (worktree / name).parent.mkdir(parents=True, exist_ok=True)
        (worktree / name).write_text(name)
    (worktree / "docs/void").mkdir()
    (worktree / "src/link").symlink_to("../docs")
    (worktree / "Dockerfile").write_text(f"FROM {IMAGE}\nCOPY . /app\n")
    (worktree / "Dockerfile.dockerignore").write_text(ignore)
    wanted = spec(worktree)
    sent = docker("run", "--rm", build(connection, wanted), "find", "/app", "-mindepth", "1").split()
    context = read_context(wanted.build, worktree)
    lines = _entries(context.root, "", Patterns.from_ignore_file(context.ignore), Job())
    hashed = [line.split(b"\0")[0].decode() for line in lines]
    assert sorted(hashed) == sorted(path.removeprefix("/app/") for path in sent)

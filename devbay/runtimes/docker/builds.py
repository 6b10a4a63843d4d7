"""Images built from the worktree: once per content, with BuildKit, in a child process that can be ended."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from devbay.errors import WORK_FAILED, DevbayError
from devbay.jobs import Job
from devbay.runtimes.base import ServiceSpec
from devbay.runtimes.docker.buildchild import Request, child_argv
from devbay.runtimes.docker.buildcontext import BuildContext, context_digest, read_context
from devbay.runtimes.docker.contexts import Endpoint
from devbay.runtimes.docker.engine import Engine
from devbay.runtimes.docker.images import ImageInfo, find_image
from devbay.runtimes.locks import KeyedLocks
from devbay.runtimes.outbound import Outbound

TEMPLATE_LABEL = "dev.devbay.template"
_KEPT_LINES = 400
_SHOWN_LINES = 25
_END_TIMEOUT_S = 5.0
_builds = KeyedLocks()


def build_tag(spec: ServiceSpec, digest: str) -> str:
    """`devbay-<home8>-<repository8>-<service>:<digest>`."""
    repository = hashlib.sha256(spec.bay.repository.encode()).hexdigest()[:8]
    return f"devbay-{spec.bay.home[:8]}-{repository}-{spec.name}:{digest}"


def build_labels(spec: ServiceSpec) -> dict[str, str]:
    """The labels of what several bays of a repository share: those of a bay without the bay."""
    labels = spec.bay.labels(spec.name)
    del labels["dev.devbay.bay"]
    return labels


def ensure_built(
    engine: Engine, spec: ServiceSpec, env: Mapping[str, str], outbound: Outbound, job: Job
) -> ImageInfo:
    """The image of `spec.build` for the files as they are now; the builder runs only if there is none yet.

    `env` is the caller's environment. Raises `build_failed` (with `log`, `dockerfile`, `line`),
    `build_context`, `docker_client_missing`, `buildx_missing`.
    """
    if spec.build is None or spec.worktree is None:
        raise ValueError(f"{spec.name} has nothing to build")
    context = read_context(spec.build, spec.worktree)
    tag = build_tag(spec, context_digest(context, spec.build, spec.platform, job))
    with _builds.hold(f"{engine.endpoint.host} {tag}", job):
        if found := _own_image(engine, tag, spec.bay.home):
            return found
        _build(engine.endpoint, context, tag, spec, env, outbound, job)
        if found := _own_image(engine, tag, spec.bay.home):
            return found
    raise DevbayError(
        "build_failed",
        f"the build of {spec.name} succeeded, but the engine has no image {tag}",
        next="docker buildx ls",
        exit_code=WORK_FAILED,
    )


def built_images(engine: Engine, home: str) -> dict[str, list[str]]:
    """The images built for this home: id to tags. What installs committed is not among them."""
    wanted = json.dumps({"label": [f"dev.devbay.home={home}"]})
    found = engine.call("GET", "/images/json", params={"filters": wanted})
    built = (image for image in found if TEMPLATE_LABEL not in image["Labels"])
    return {image["Id"]: list(image["RepoTags"] or ()) for image in built}


def _own_image(engine: Engine, tag: str, home: str) -> ImageInfo | None:
    found = find_image(engine, tag)
    return found if found and found.labels.get("dev.devbay.home") == home else None


def _build(
    endpoint: Endpoint,
    context: BuildContext,
    tag: str,
    spec: ServiceSpec,
    env: Mapping[str, str],
    outbound: Outbound,
    job: Job,
) -> None:
    with tempfile.TemporaryDirectory(prefix="devbay-build-") as folder:
        # A Dockerfile beside its own ignore file is how the builder is told what not to send.
        dockerfile = Path(folder) / context.dockerfile_name
        dockerfile.write_bytes(context.dockerfile)
        dockerfile.with_name(f"{dockerfile.name}.dockerignore").write_text(context.ignore)
        client = shutil.which("docker", path=env.get("PATH"))
        if client is None:
            raise DevbayError(
                "docker_client_missing",
                f"building {spec.name} needs the `docker` command, which is not on the PATH",
                next="install the Docker client with buildx",
                exit_code=WORK_FAILED,
            )
        request = build_request(client, endpoint, context, dockerfile, tag, spec, outbound)
        job.progress(f"building {spec.name}")
        lines: deque[str] = deque(maxlen=_KEPT_LINES)
        code = _run(request, client_env(env, outbound), job, lines.append)
    job.check()
    if code != 0:
        raise build_failure(spec.name, code, list(lines))


def build_request(
    docker: str,
    endpoint: Endpoint,
    context: BuildContext,
    dockerfile: Path,
    tag: str,
    spec: ServiceSpec,
    outbound: Outbound,
) -> Request:
    """What the child is asked. The builder named `default` is the engine's own, whichever one the user chose:
    only it has the engine's images. Proxies are named without values, which come from the environment.
    """
    build: dict[str, Any] = {
        "context_path": str(context.root),
        "builder": "default",
        "file": str(dockerfile),
        "tags": [tag],
        "labels": build_labels(spec),
        "build_args": dict(spec.build.args) if spec.build else {},
        "target": spec.build.target if spec.build else None,
        "platforms": [spec.platform] if spec.platform else None,
        "secrets": [f"id=ca_bundle,src={outbound.ca_bundle}"] if outbound.ca_bundle else [],
    }
    return Request(docker, _client_options(endpoint), build, tuple(outbound.proxy_env()))


def _client_options(endpoint: Endpoint) -> dict[str, Any]:
    """The library's spelling of `contexts.client_argv`."""
    options: dict[str, Any] = {"config": endpoint.config_dir or None, "host": endpoint.host}
    if endpoint.tls:
        options["tlsverify" if endpoint.verify else "tls"] = True
        options |= {"tlscacert": endpoint.ca, "tlscert": endpoint.cert, "tlskey": endpoint.key}
    return options


def client_env(env: Mapping[str, str], outbound: Outbound) -> dict[str, str]:
    """The caller's environment without what would choose another engine or builder."""
    kept = {
        name: value
        for name, value in env.items()
        if name not in ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_TLS", "DOCKER_TLS_VERIFY", "BUILDX_BUILDER")
    }
    # attestations carry the time, and an image with one is an index that older engines cannot run
    return {**kept, **outbound.proxy_env(), "BUILDX_NO_DEFAULT_ATTESTATIONS": "1"}


def _run(request: Request, env: Mapping[str, str], job: Job, keep: Callable[[str], None]) -> int:
    """Build in a child with a process group of its own, each line to the job; cancelling ends the group."""
    job.check()
    with subprocess.Popen(
        child_argv(),
        env=dict(env),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
        encoding="utf-8",
        errors="replace",
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        insist = threading.Timer(_END_TIMEOUT_S, lambda: _signal(process, signal.SIGKILL))

        def end() -> None:
            _signal(process, signal.SIGTERM)
            insist.start()

        try:
            with job.when_cancelled(end):
                with contextlib.suppress(BrokenPipeError):  # a child that failed at once says why
                    process.stdin.write(request.to_line())
                    process.stdin.flush()
                step = BuildProgress()
                for line in process.stdout:
                    keep(line.rstrip("\n"))
                    if shown := step.feed(line):
                        job.progress(*shown)
                return process.wait()
        finally:
            insist.cancel()
            _signal(process, signal.SIGKILL)


def _signal(process: subprocess.Popen[str], number: signal.Signals) -> None:
    """Signal the child's group, whose number is the child's as long as that runs."""
    if process.poll() is None:
        os.killpg(process.pid, number)


class BuildProgress:
    """What to show of a line of BuildKit's plain output: its text, and the step's place among the steps."""

    def __init__(self) -> None:
        self._fraction: float | None = None

    def feed(self, line: str) -> tuple[str, float | None] | None:
        text = re.sub(r"^#\d+ (\d+\.\d+ )?", "", line.strip())
        if not text or text.startswith(("[internal]", "transferring ", "DONE ", "CACHED")):
            return None
        if step := re.match(r"\[(?:[^\]]* )?(\d+)/(\d+)\]", text):
            here = (int(step[1]) - 1) / int(step[2])
            self._fraction = max(here, self._fraction or 0.0)
        return text, self._fraction


def build_failure(service: str, code: int, lines: Sequence[str]) -> DevbayError:
    """The error for a client that ended with `code` after printing `lines` (plain progress)."""
    text = "\n".join(lines)
    if re.search(r"unknown command: docker buildx|'buildx' is not a docker command", text):
        return DevbayError(
            "buildx_missing",
            f"building {service} needs the client's plugin buildx, which is not installed",
            next="install docker-buildx (buildx-plugin)",
            exit_code=WORK_FAILED,
        )
    said = re.findall(r"^ERROR: (?:failed to solve: )?(.*)", text, re.MULTILINE)
    summary = said[-1] if said else (lines[-1] if lines else f"exit code {code}")
    place = re.search(r"^(\S[^\n]*):(\d+)\n-{20}\n(.*?)^-{20}$", text, re.MULTILINE | re.DOTALL)
    output = _step_output(text)
    data: dict[str, object] = {}
    where = ""
    if place:
        marked = re.findall(r"^ *\d+ \| >>> ?(.*)", place[3], re.MULTILINE)
        instruction = " ".join(line.strip().removesuffix("\\").strip() for line in marked)
        data = {"dockerfile": place[1], "line": int(place[2]), "instruction": instruction}
        where = f" at {place[1]}:{place[2]} `{instruction}`"
    return DevbayError(
        "build_failed",
        f"the build of {service} failed{where}: " + "\n".join([summary, *output[-_SHOWN_LINES:]]),
        next="correct the Dockerfile or its context, then `devbay up` again",
        exit_code=WORK_FAILED,
        log=output or list(lines[-_SHOWN_LINES:]),
        **data,
    )


def _step_output(text: str) -> list[str]:
    """What the failing step printed, which BuildKit repeats between two rules."""
    block = re.search(r"^-{6}\n > [^\n]*\n(.*?)^-{6}$", text, re.MULTILINE | re.DOTALL)
    if block is None:
        return []
    return [re.sub(r"^\d+\.\d+ ", "", line) for line in block[1].splitlines()]

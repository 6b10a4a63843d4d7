"""Images: what one declares, and pulling it once when it is missing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from devbay.errors import WORK_FAILED, DevbayError
from devbay.jobs import Job
from devbay.runtimes.docker.engine import Engine, Stream
from devbay.runtimes.docker.registry import registry_auth
from devbay.runtimes.locks import KeyedLocks


@dataclass(frozen=True)
class ImageInfo:
    """What an image declares. env: names to values. ports: TCP ports. healthcheck: whether it has one of its
    own, which never runs: containers are created with it switched off, because it would cost a process every
    few seconds and our probes do its work. config: the engine's whole `Config`, for commits on top of it.
    """

    id: str
    os: str = "linux"
    architecture: str = ""
    variant: str = ""
    volumes: tuple[str, ...] = ()
    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    workdir: str = ""
    ports: tuple[int, ...] = ()
    stop_signal: str = "SIGTERM"
    healthcheck: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict, repr=False)


def image_info(document: Mapping[str, Any]) -> ImageInfo:
    """From the engine's answer to `GET /images/{name}/json`."""
    config = document.get("Config") or {}
    env = (item.partition("=") for item in config.get("Env") or ())
    health = (config.get("Healthcheck") or {}).get("Test") or ["NONE"]
    ports = (port.partition("/") for port in config.get("ExposedPorts") or ())
    return ImageInfo(
        id=document["Id"],
        os=document.get("Os") or "linux",
        architecture=document.get("Architecture") or "",
        variant=document.get("Variant") or "",
        volumes=tuple(sorted(config.get("Volumes") or ())),
        entrypoint=tuple(config.get("Entrypoint") or ()),
        cmd=tuple(config.get("Cmd") or ()),
        env={name: value for name, _, value in env},
        user=config.get("User") or "",
        workdir=config.get("WorkingDir") or "",
        ports=tuple(sorted(int(port) for port, _, protocol in ports if protocol in ("", "tcp"))),
        stop_signal=config.get("StopSignal") or "SIGTERM",
        healthcheck=health != ["NONE"],
        labels=dict(config.get("Labels") or {}),
        config=config,
    )


def find_image(engine: Engine, reference: str) -> ImageInfo | None:
    """The image the engine has under exactly this reference (or id), or None."""
    try:
        return image_info(engine.call("GET", f"/images/{reference}/json", doing=f"inspect {reference}"))
    except DevbayError as error:
        missing = error.code in ("image_not_found", "not_found")
        if missing or re.search(r"invalid reference format|must be lowercase", error.message):
            return None  # no image can have such a name; a pull says so better
        raise


def fits(image: ImageInfo, platform: str | None) -> bool:
    """Whether an image is of a platform such as `linux/arm64` or `linux/arm/v7`; None fits any."""
    if platform is None:
        return True
    parts = platform.split("/")
    have = (image.os, image.architecture, image.variant)
    # arm64 images say `v8` or nothing, and both mean the same
    return all(want == got or (want, got) == ("v8", "") for want, got in zip(parts, have, strict=False))


_pulls = KeyedLocks()


def ensure_pulled(
    engine: Engine, reference: str, platform: str | None, env: Mapping[str, str], job: Job
) -> ImageInfo:
    """The image of exactly this reference, pulled if the engine does not have it (for this platform).

    Concurrent calls for one image pull once. `env` is the caller's environment, for its credential helpers.
    Raises `image_not_found`, `registry_denied`, `registry_limited`, `registry_unreachable`, `engine_full`,
    `wrong_architecture`, `pull_failed`, `docker_config`, `credential_helper`.
    """
    found = find_image(engine, reference)
    if found is not None and fits(found, platform):
        return found
    with _pulls.hold(f"{engine.endpoint.host} {reference} {platform}", job):
        found = find_image(engine, reference)
        if found is not None and fits(found, platform):
            return found
        _pull(engine, reference, platform, env, job)
    found = find_image(engine, reference)
    if found is None:
        raise pull_failure(reference, platform, f"manifest for {reference} not found after the pull")
    if not fits(found, platform):
        raise pull_failure(reference, platform, "image was found but does not match the specified platform")
    return found


def _pull(engine: Engine, reference: str, platform: str | None, env: Mapping[str, str], job: Job) -> None:
    from docker.utils import parse_repository_tag

    repository, tag = parse_repository_tag(reference)
    auth = registry_auth(reference, engine.endpoint.config_dir, env)
    params = {"fromImage": repository, "tag": tag or "latest"}
    if platform:
        params["platform"] = platform
    job.progress(f"pulling {reference}", 0.0)
    client = engine.client
    doing = f"pull {reference}"
    with engine.errors(doing):
        response = client.post(
            f"{client.base_url}/v{client.api_version}/images/create",
            params=params,
            headers={"X-Registry-Auth": auth} if auth else None,
            stream=True,
            timeout=None,
        )
        try:
            if response.status_code >= 400:
                raise pull_failure(reference, platform, str(response.json().get("message", "")))
            _follow(Stream(response, lambda: engine.errors(doing)), reference, platform, job)
        finally:
            response.close()
    job.check()


def _follow(stream: Stream, reference: str, platform: str | None, job: Job) -> None:
    progress = PullProgress()
    with job.when_cancelled(stream.close):
        for event in stream.documents():
            if "error" in event:
                raise pull_failure(reference, platform, str(event["error"]))
            if (fraction := progress.feed(event)) is not None:
                job.progress(f"pulling {reference}", fraction)


class PullProgress:
    """How much of a pull is done, from the engine's events. Each layer counts the same, half for its
    download and half for its extraction, because a layer's size is unknown until its download begins.
    """

    def __init__(self) -> None:
        self._layers: dict[str, float] = {}
        self._shown = 0.0

    def feed(self, event: Mapping[str, Any]) -> float | None:
        """The fraction done (0-1, never falling), or None if the event says nothing new."""
        layer, status = str(event.get("id", "")), str(event.get("status", ""))
        if not re.fullmatch(r"[0-9a-f]{12}", layer):
            return None
        detail = event.get("progressDetail") or {}
        part = min(1.0, detail["current"] / detail["total"]) if detail.get("total") else 0.0
        state = {
            "Downloading": part / 2,
            "Verifying Checksum": 0.5,
            "Download complete": 0.5,
            "Extracting": 0.5 + part / 2,
            "Pull complete": 1.0,
            "Already exists": 1.0,
        }.get(status, 0.0)
        self._layers[layer] = max(state, self._layers.get(layer, 0.0))
        done = sum(self._layers.values()) / len(self._layers)
        if done < self._shown + 0.01:
            return None
        self._shown = done
        return done


# What the texts of the engine and of registries mean (distribution and moby sources; the first fits).
_PULL_FAILURES = (
    (r"no space left on device|disk quota exceeded", "engine_full"),
    (
        r"no matching manifest|does not match the specified platform|no match for platform"
        r"|image operating system|cannot be used on this platform",
        "wrong_architecture",
    ),
    (r"toomanyrequests|pull rate limit", "registry_limited"),
    (
        r"manifest unknown|name unknown|manifest for \S+ not found|repository does not exist"
        r"|invalid reference format|must be lowercase|no such image|: not found",
        "image_not_found",
    ),
    (
        r"unauthorized|authentication required|no basic auth credentials|\bdenied\b|403 Forbidden",
        "registry_denied",
    ),
    (
        r"dial tcp|no such host|connection refused|connection reset|i/o timeout|TLS handshake|x509"
        r"|proxyconnect|Client\.Timeout|context deadline exceeded|network is unreachable|server misbehaving"
        r"|\bEOF\b|server gave HTTP response|50[0-4] ",
        "registry_unreachable",
    ),
)
_PULL_NEXT = {
    "engine_full": "free space with `devbay gc --all` or `docker system prune`, then try again",
    "wrong_architecture": "set `platform` in devbay.yaml to one the image has, or choose another image",
    "registry_limited": "docker login (the limit is higher for accounts), or wait",
    "image_not_found": "correct `image` in devbay.yaml; if the image is private: docker login {registry}",
    "registry_denied": "docker login {registry}",
    "registry_unreachable": "check the network, proxy and CA settings of the engine: docker pull {reference}",
    "pull_failed": "docker pull {reference}",
}


def pull_failure(reference: str, platform: str | None, text: str) -> DevbayError:
    """What the engine said about a failed pull, as an error with what to do next."""
    code = next(
        (code for pattern, code in _PULL_FAILURES if re.search(pattern, text, re.IGNORECASE)), "pull_failed"
    )
    first = reference.split("/", 1)[0]
    own = "/" in reference and ("." in first or ":" in first or first == "localhost")
    wanted = f" for {platform}" if platform else ""
    return DevbayError(
        code,
        f"cannot pull {reference}{wanted}: {text.strip()}",
        next=_PULL_NEXT[code].format(registry=first if own else "", reference=reference).strip(),
        exit_code=WORK_FAILED,
        image=reference,
    )

import contextlib
import dataclasses
import json
import threading
import time

import pytest

from devbay.errors import WORK_FAILED, Cancelled, DevbayError
from devbay.jobs import Job
from devbay.runtimes.docker.engine import Engine
from devbay.runtimes.docker.images import (
    ImageInfo,
    PullProgress,
    ensure_pulled,
    find_image,
    fits,
    image_info,
    pull_failure,
)

DOCUMENT = {
    "Id": "sha256:abc",
    "Os": "linux",
    "Architecture": "amd64",
    "Config": {
        "Env": ["PATH=/bin", "EMPTY=", "EQUALS=a=b"],
        "Entrypoint": ["docker-entrypoint.sh"],
        "Cmd": ["postgres"],
        "User": "postgres",
        "WorkingDir": "/srv",
        "Volumes": {"/data": {}},
        "ExposedPorts": {"5432/tcp": {}, "53/udp": {}},
        "StopSignal": "SIGINT",
        "Healthcheck": {"Test": ["CMD", "true"]},
        "Labels": {"a": "b"},
    },
}
ABSENT = (404, {"message": "No such image: web:1"})


def test_an_image_says_what_it_declares():
    info = image_info(DOCUMENT)
    assert info == ImageInfo(
        id="sha256:abc",
        architecture="amd64",
        volumes=("/data",),
        entrypoint=("docker-entrypoint.sh",),
        cmd=("postgres",),
        env={"PATH": "/bin", "EMPTY": "", "EQUALS": "a=b"},
        user="postgres",
        workdir="/srv",
        ports=(5432,),
        stop_signal="SIGINT",
        healthcheck=True,
        labels={"a": "b"},
        config=DOCUMENT["Config"],
    )


def test_an_image_that_declares_nothing_has_the_engines_defaults():
    nulls = dict.fromkeys(DOCUMENT["Config"])
    assert image_info({"Id": "x", "Config": nulls}) == ImageInfo("x", config=nulls)
    assert image_info({"Id": "x"}) == ImageInfo("x")


def test_an_inherited_switch_off_is_no_healthcheck():
    assert not image_info({"Id": "x", "Config": {"Healthcheck": {"Test": ["NONE"]}}}).healthcheck


@pytest.mark.parametrize(
    ("platform", "image", "expected"),
    [
        (None, ("linux", "amd64", ""), True),
        ("linux/amd64", ("linux", "amd64", ""), True),
        ("linux/arm64", ("linux", "amd64", ""), False),
        ("linux/arm64/v8", ("linux", "arm64", ""), True),
        ("linux/arm64", ("linux", "arm64", "v8"), True),
        ("linux/arm/v6", ("linux", "arm", "v7"), False),
    ],
)
def test_a_platform_fits_or_not(platform, image, expected):
    os, architecture, variant = image
    assert fits(ImageInfo("x", os=os, architecture=architecture, variant=variant), platform) is expected


def test_layers_add_up_to_a_fraction_that_never_falls():
    progress = PullProgress()
    layer = "0123456789ab"
    assert progress.feed({"status": "Pulling from web", "id": "latest"}) is None
    assert progress.feed({"status": "Already exists", "id": "0" * 12}) == 1.0
    assert progress.feed({"status": "Pulling fs layer", "id": layer}) is None
    half = {"current": 50, "total": 100}
    shown = PullProgress()
    assert shown.feed({"status": "Downloading", "id": layer, "progressDetail": half}) == 0.25
    assert shown.feed({"status": "Downloading", "id": layer, "progressDetail": half}) is None
    assert shown.feed({"status": "Extracting", "id": layer, "progressDetail": half}) == 0.75
    assert shown.feed({"status": "Pull complete", "id": layer}) == 1.0


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("manifest for web:9 not found: manifest unknown: manifest unknown", "image_not_found"),
        ("pull access denied for wbe, repository does not exist or may require 'docker login': denied:"
         " requested access to the resource is denied", "image_not_found"),
        ("invalid reference format", "image_not_found"),
        ("Head \"https://reg.example/v2/web/manifests/1\": unauthorized: authentication required",
         "registry_denied"),
        ("Head \"https://reg.example/v2/\": no basic auth credentials", "registry_denied"),
        ("denied: permission_denied: read_package", "registry_denied"),
        ("toomanyrequests: You have reached your pull rate limit", "registry_limited"),
        ("Get \"https://reg.example/v2/\": dial tcp: lookup reg.example: no such host",
         "registry_unreachable"),
        ("Get \"https://reg.example/v2/\": tls: failed to verify certificate: x509: certificate signed by"
         " unknown authority", "registry_unreachable"),
        ("Get \"https://reg.example/v2/\": net/http: TLS handshake timeout", "registry_unreachable"),
        ("failed to register layer: write /usr/x: no space left on device", "engine_full"),
        ("no matching manifest for linux/arm64/v8 in the manifest list entries", "wrong_architecture"),
        ("something new", "pull_failed"),
    ],
)  # fmt: skip
def test_what_the_engine_says_of_a_pull_has_a_code(text, code):
    error = pull_failure("reg.example/web:1", None, text)
    assert (error.code, error.exit_code) == (code, WORK_FAILED)
    assert "reg.example/web:1" in error.message
    assert text in error.message
    assert error.next


def test_a_denied_pull_names_the_registry_to_log_in_to():
    assert pull_failure("reg.example/web", None, "unauthorized").next == "docker login reg.example"
    assert pull_failure("team/web", None, "unauthorized").next == "docker login"


class Registry:
    """An engine that has an image only after it was pulled."""

    def __init__(self, fake, events=(), pulled=None):
        self.pulls, self.headers, self.there = [], {}, False
        self.events, self.pulled, self.released = list(events), pulled or DOCUMENT, threading.Event()
        self.released.set()
        fake.answers["GET /images/web:1/json"] = self.inspect
        fake.answers["POST /images/create"] = self.pull

    def inspect(self, handler):
        handler.reply(self.pulled) if self.there else handler.reply(ABSENT[1], 404)

    def pull(self, handler):
        self.pulls.append(handler.path)
        self.headers = dict(handler.headers)
        write = handler.chunks()
        for event in self.events:
            write(json.dumps(event).encode() + b"\r\n")
        self.released.wait(5)
        self.there = not any("error" in event for event in self.events)
        with contextlib.suppress(ConnectionError):  # a cancelled caller is gone
            write(b"")


def test_an_image_that_is_there_is_not_pulled(fake):
    registry = Registry(fake)
    registry.there = True
    assert ensure_pulled(fake.engine, "web:1", None, {}, Job()).id == "sha256:abc"
    assert registry.pulls == []


def test_a_missing_image_is_pulled_with_progress(fake):
    registry = Registry(fake, [{"status": "Pull complete", "id": "0123456789ab"}])
    seen = []
    job = Job(lambda message, fraction: seen.append((message, fraction)))
    assert ensure_pulled(fake.engine, "web:1", None, {}, job).id == "sha256:abc"
    assert "fromImage=web&tag=1" in registry.pulls[0]
    assert seen == [("pulling web:1", 0.0), ("pulling web:1", 1.0)]


def test_many_at_once_pull_once(fake):
    registry = Registry(fake)
    registry.released.clear()
    engine, ids = fake.engine, []
    threads = [
        threading.Thread(target=lambda: ids.append(ensure_pulled(engine, "web:1", None, {}, Job()).id))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    registry.released.set()
    for thread in threads:
        thread.join()
    assert ids == ["sha256:abc"] * 4
    assert len(registry.pulls) == 1


def test_the_callers_login_is_sent(fake, tmp_path):
    registry = Registry(fake)
    (tmp_path / "config.json").write_text('{"auths": {"docker.io": {"auth": "YWRhOnB3"}}}')
    endpoint = dataclasses.replace(fake.engine.endpoint, config_dir=str(tmp_path))
    ensure_pulled(Engine(endpoint), "web:1", None, {}, Job())
    assert registry.headers["X-Registry-Auth"]


def test_an_error_in_the_stream_is_the_pulls(fake):
    Registry(fake, [{"error": "manifest unknown"}])
    with pytest.raises(DevbayError) as raised:
        ensure_pulled(fake.engine, "web:1", None, {}, Job())
    assert raised.value.code == "image_not_found"


def test_an_error_before_the_stream_is_the_pulls(fake):
    Registry(fake)
    fake.answers["POST /images/create"] = (500, {"message": "Get https://x/v2/: dial tcp: no such host"})
    with pytest.raises(DevbayError) as raised:
        ensure_pulled(fake.engine, "web:1", None, {}, Job())
    assert raised.value.code == "registry_unreachable"


def test_an_image_of_another_platform_is_pulled_and_refused_if_it_stays_so(fake):
    registry = Registry(fake)
    registry.there = True
    with pytest.raises(DevbayError) as raised:
        ensure_pulled(fake.engine, "web:1", "linux/arm64", {}, Job())
    assert raised.value.code == "wrong_architecture"
    assert "platform=linux%2Farm64" in registry.pulls[0]


def test_a_cancelled_pull_ends_at_once(fake):
    registry = Registry(fake, [{"status": "Downloading", "id": "0123456789ab"}])
    registry.released.clear()
    job = Job()
    threading.Timer(0.1, job.cancel).start()
    started = time.monotonic()
    with pytest.raises(Cancelled):
        ensure_pulled(fake.engine, "web:1", None, {}, job)
    assert time.monotonic() - started < 10
    registry.released.set()


def test_another_failure_of_the_engine_is_not_taken_for_a_missing_image(fake):
    fake.answers["GET /images/web:1/json"] = (500, {"message": "boom"})
    with pytest.raises(DevbayError, match="boom"):
        find_image(fake.engine, "web:1")

import dataclasses
import time
from pathlib import Path

import pytest

from devbay.errors import WORK_FAILED
from devbay.jobs import Job
from devbay.runtimes.base import BayRef, BuildSpec, ServiceSpec
from devbay.runtimes.docker import builds
from devbay.runtimes.docker.buildcontext import BuildContext
from devbay.runtimes.docker.builds import (
    BuildProgress,
    build_failure,
    build_request,
    build_tag,
    client_env,
)
from devbay.runtimes.docker.contexts import Endpoint
from devbay.runtimes.outbound import Outbound

SPEC = ServiceSpec(
    bay=BayRef("b" * 8, "abcdef0123456789", "shop", "r1", "main"),
    name="web",
    kind="service",
    build=BuildSpec(Path("/w"), target="dev", args={"A": "1"}),
    platform="linux/arm64",
    worktree=Path("/w"),
)
CONTEXT = BuildContext(Path("/w"), "Dockerfile", b"", "")

STEP_FAILED = """\
#8 [4/4] RUN make
#8 0.144 no rule
------
 > [4/4] RUN make:
0.144 make: *** no rule
0.145 stop
------
Dockerfile:4
--------------------
   3 |     COPY . /x
   4 | >>> RUN echo one; \\
   5 | >>>   make
   6 |
--------------------
ERROR: failed to solve: process "/bin/sh -c make" did not complete successfully: exit code: 2"""

WRONG_FILE = """\
#1 DONE 0.0s
D3:2
--------------------
   1 |     FROM busybox:1.36
   2 | >>> RUNN x
--------------------
ERROR: failed to solve: dockerfile parse error on line 2: unknown instruction: RUNN (did you mean RUN?)"""


def request(outbound=Outbound(), endpoint=None):  # noqa: B008
    endpoint = endpoint or Endpoint("default", "unix:///e.sock", config_dir="/c")
    return build_request("/bin/docker", endpoint, CONTEXT, Path("/t/Dockerfile"), "tag:1", SPEC, outbound)


def test_the_tag_names_home_repository_service_and_content():
    tag = build_tag(SPEC, "0123456789ab")
    assert tag.startswith("devbay-abcdef01-")
    assert tag.endswith("-web:0123456789ab")


def test_the_client_is_pinned_to_the_engine_and_its_own_builder():
    found = request()
    assert found.client == {"config": "/c", "host": "unix:///e.sock"}
    assert found.build["builder"] == "default"
    assert found.build["context_path"] == "/w"


@pytest.mark.parametrize(("verify", "flag"), [(True, "tlsverify"), (False, "tls")])
def test_an_engine_behind_tls_is_met_with_its_material(verify, flag):
    endpoint = Endpoint("c", "tcp://e:2376", tls=True, verify=verify, ca="/ca", cert="/cert", key="/key")
    material = {"tlscacert": "/ca", "tlscert": "/cert", "tlskey": "/key"}
    assert request(endpoint=endpoint).client == {
        "config": None,
        "host": "tcp://e:2376",
        flag: True,
        **material,
    }


def test_what_the_manifest_says_about_a_build_reaches_the_builder():
    wanted = {"target": "dev", "build_args": {"A": "1"}, "platforms": ["linux/arm64"], "tags": ["tag:1"]}
    assert request().build.items() >= wanted.items()


def test_images_carry_every_label_but_the_bays():
    assert request().build["labels"] == {
        "dev.devbay.managed": "1",
        "dev.devbay.home": "abcdef0123456789",
        "dev.devbay.project": "shop",
        "dev.devbay.repository": "r1",
        "dev.devbay.service": "web",
    }


def test_proxies_reach_the_build_without_their_passwords_in_the_command():
    outbound = Outbound(Path("/ca.pem"), (("http", "http://user:pass@proxy:3128"),))
    found = request(outbound)
    assert "HTTP_PROXY" in found.args_by_name
    assert found.build["secrets"] == ["id=ca_bundle,src=/ca.pem"]
    assert "pass" not in found.to_line()
    assert client_env({}, outbound)["HTTP_PROXY"] == "http://user:pass@proxy:3128"


def test_the_callers_environment_cannot_choose_another_engine_or_builder():
    env = client_env(
        {"PATH": "/bin", "DOCKER_HOST": "x", "DOCKER_CONTEXT": "y", "BUILDX_BUILDER": "z"}, Outbound()
    )
    assert env == {"PATH": "/bin", "BUILDX_NO_DEFAULT_ATTESTATIONS": "1"}


def test_a_cancelled_client_that_does_not_end_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(builds, "_END_TIMEOUT_S", 0.3)
    client = tmp_path / "docker"
    client.write_text("#!/bin/sh\ntrap '' TERM\necho $$\nwhile :; do sleep 0.1; done\n")
    client.chmod(0o700)
    said = []
    job = Job()

    def keep(line):
        said.append(line)
        job.cancel()

    asked = dataclasses.replace(request(), docker=str(client))
    assert builds._run(asked, {"PATH": "/usr/bin:/bin"}, job, keep) != 0
    deadline = time.monotonic() + 5
    while Path(f"/proc/{said[0]}").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not Path(f"/proc/{said[0]}").exists()


def test_a_failing_step_is_named_with_its_line_and_its_own_output():
    error = build_failure("web", 1, STEP_FAILED.splitlines())
    assert (error.code, error.exit_code) == ("build_failed", WORK_FAILED)
    assert "Dockerfile:4 `RUN echo one; make`" in error.message
    assert error.message.endswith("make: *** no rule\nstop")
    assert error.data["line"] == 4
    assert error.data["log"] == ["make: *** no rule", "stop"]


def test_a_wrong_dockerfile_is_named_with_its_line():
    error = build_failure("web", 1, WRONG_FILE.splitlines())
    assert error.data["dockerfile"] == "D3"
    assert "unknown instruction: RUNN" in error.message


def test_an_unknown_failure_shows_the_last_line():
    assert "boom" in build_failure("web", 1, ["one", "boom"]).message
    assert "exit code 3" in build_failure("web", 3, []).message


@pytest.mark.parametrize(
    "text", ["docker: 'buildx' is not a docker command.", "docker: unknown command: docker buildx"]
)
def test_a_client_without_buildx_is_named(text):
    assert build_failure("web", 1, [text, "See 'docker --help'"]).code == "buildx_missing"


def test_progress_is_the_steps_place_and_never_falls():
    progress = BuildProgress()
    assert progress.feed("#1 [internal] load build definition\n") is None
    assert progress.feed("#8 DONE 0.1s\n") is None
    assert progress.feed("#6 [dev 2/4] RUN a\n") == ("[dev 2/4] RUN a", 0.25)
    assert progress.feed("#6 0.143 hi\n") == ("hi", 0.25)
    assert progress.feed("#7 [dev 1/4] FROM b\n") == ("[dev 1/4] FROM b", 0.25)

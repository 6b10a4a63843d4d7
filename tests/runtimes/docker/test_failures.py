from __future__ import annotations

import pytest

from devbay.runtimes.docker.failures import failure_from_text, unreachable

ENDPOINT = "driver failed programming external connectivity on endpoint x: "
PROXY = ENDPOINT + "Error starting userland proxy: "
OCI = "failed to create task for container: OCI runtime create failed: runc create failed: unable to start: "


@pytest.mark.parametrize(
    ("text", "code", "data"),
    [
        ("write /var/lib/docker/tmp/x: no space left on device", "engine_full", {}),
        (ENDPOINT + "Bind for 127.0.0.1:41999 failed: port is already allocated", "port_taken",
         {"port": 41999}),
        (PROXY + "listen tcp4 127.0.0.1:41998: bind: address already in use", "port_taken",
         {"port": 41998}),
        ("failed to bind host port for 127.0.0.1:80:172.18.0.2:8/tcp: address already in use",
         "port_taken", {"port": 80}),
        ("Ports are not available: exposing port TCP 127.0.0.1:5432 -> 0.0.0.0:0: not available",
         "port_taken", {"port": 5432}),
        ("No such image: nope/nope:1", "image_not_found", {"image": "nope/nope:1"}),
        ("image with reference a:1 was found but does not match the specified platform: wanted x",
         "image_not_found", {"named": "a:1"}),
        (
            'Conflict. The container name "/exp-a" is already in use by container "0e5e". You have to',
            "name_conflict",
            {"name": "exp-a"},
        ),
        ("network with name exp-n already exists", "name_conflict", {"network": "exp-n"}),
        ("Pool overlaps with other one on this address space", "network_overlap", {}),
        ("invalid pool request: Pool overlaps with other one on this address space", "network_overlap", {}),
        ("all predefined address pools have been fully subnetted", "network_exhausted", {}),
        (
            'invalid mount config for type "bind": bind source path does not exist: /home/me/my repo',
            "path_not_shared",
            {"path": "/home/me/my repo"},
        ),
        (OCI + 'exec: "nosuch": executable file not found in $PATH: unknown', "command_not_found",
         {"program": "nosuch"}),
        (OCI + 'exec: "./run": stat ./run: no such file or directory: unknown', "command_not_found",
         {"program": "./run"}),
        (OCI + 'exec: "/etc/passwd": permission denied: unknown', "command_not_executable",
         {"program": "/etc/passwd"}),
        (OCI + "exec /bin/x: exec format error", "wrong_architecture", {}),
        ("remove v: volume is in use - [7a81]", "volume_in_use", {}),
        ("error while removing network: network n id 3f has active endpoints", "network_in_use", {}),
        ("container 3474 is not running", "not_running", {}),
        ("Container 4e2b is paused, unpause the container before exec", "paused", {}),
        ("Container 4e2b is already paused", "paused", {}),
        ("Container 4e2b is not paused", "not_paused", {}),
        ("No such container: x", "not_found", {}),
        ("network n2 not found", "not_found", {}),
        ("get v: no such volume", "not_found", {}),
        ("Could not find the file /x in container 12", "not_found", {}),
        ('cannot overwrite directory "/workspace" with non-directory "/"', "directory_in_the_way",
         {"path": "/workspace"}),
        ("something new", "engine_error", {}),
    ],
)  # fmt: skip
def test_the_engines_text_becomes_a_code(text: str, code: str, data: dict[str, object]) -> None:
    error = failure_from_text(text)
    assert error.code == code
    assert data.items() <= error.data.items()
    assert error.exit_code == 1


def test_the_message_says_what_was_asked() -> None:
    error = failure_from_text("No such image: a:1", doing="create web")
    assert error.message == "cannot create web: No such image: a:1"


def test_status_404_without_a_known_text_is_not_found() -> None:
    assert failure_from_text("page not found", status=404).code == "not_found"


def test_an_unreachable_engine_names_host_context_and_remedy() -> None:
    error = unreachable("unix:///c.sock", "connection refused", context="colima")
    assert "unix:///c.sock" in error.message and "'colima'" in error.message and "refused" in error.message
    assert "start the engine" in error.next
    assert "docker --host tcp://h:1 version" in unreachable("tcp://h:1", "x").next

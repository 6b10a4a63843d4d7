"""Rules that look at disk or at judgement: symlinks, missing files, warnings and notices."""

from __future__ import annotations

from pathlib import Path

import pytest

from devbay.errors import DevbayError
from devbay.manifest import Loaded, confined, parse

HEAD = "version: 1\nproject: shop\n"
PATHS = {
    "build/context": "build: {path}\n    health: {{process: true}}",
    "build/dockerfile": "build: {{dockerfile: {path}}}\n    health: {{process: true}}",
    "mounts/0/source": "build: .\n    health: {{log: x}}\n    mounts: [{{source: {path}, target: /y}}]",
    "install_inputs/0": (
        "build: .\n    health: {{process: true}}\n    install: [make]\n    install_inputs: ['{path}/*']"
    ),
}


def service(body: str, root: Path | None = None) -> Loaded:
    return parse(f"{HEAD}services:\n  api:\n    {body}\n", root=root)


def findings(loaded: Loaded, severity: str) -> list[tuple[str, str]]:
    return [(each.rule, each.path) for each in loaded.diagnostics if each.severity == severity]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    (root / "inside").mkdir(parents=True)
    (root / "Dockerfile").touch()
    (root / "out").symlink_to("..")
    (root / "loop").symlink_to("loop")
    (root / "in").symlink_to("inside")
    return root


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("target", ["out", "out/x", "loop", "inside/../out"])
def test_a_path_through_a_symlink_that_leaves_the_repository_is_refused(
    repository: Path, path: str, target: str
) -> None:
    loaded = service(PATHS[path].format(path=target), repository)
    assert ("path", f"services/api/{path}") in findings(loaded, "error")


@pytest.mark.parametrize("path", PATHS)
def test_a_symlink_inside_the_repository_is_fine(repository: Path, path: str) -> None:
    assert findings(service(PATHS[path].format(path="in"), repository), "error") == []


@pytest.mark.parametrize("target", ["out/report.xml", "loop/report.xml"])
def test_a_report_through_such_a_symlink_is_refused(repository: Path, target: str) -> None:
    report = f"{{format: junit, path: {target}}}"
    text = f"{HEAD}tasks: {{t: {{image: 'a:1', run: [x], needs: [], report: {report}}}}}\n"
    assert findings(parse(text, root=repository), "error") == [("path", "tasks/t/report/path")]


def test_without_a_root_the_disk_is_not_looked_at() -> None:
    assert findings(service(PATHS["build/context"].format(path="out")), "error") == []


def test_a_build_context_that_is_not_there_is_a_warning(repository: Path) -> None:
    loaded = service("build: missing\n    health: {process: true}", repository)
    assert loaded.valid
    assert ("path", "services/api/build/context") in findings(loaded, "warning")


def test_confined_refuses_at_the_moment_of_use(repository: Path) -> None:
    assert confined(repository, "inside/new/file") == repository / "inside/new/file"
    for bad in ("../x", "/etc", "out/x", "a/../../b", "loop"):
        with pytest.raises(DevbayError) as caught:
            confined(repository, bad)
        assert caught.value.code == "path_escapes"


WARNINGS = [
    ("image: a\n    health: {log: x}", "image", "image"),
    ("image: a:latest\n    health: {log: x}", "image", "image"),
    ("image: r.example:5000/a\n    health: {log: x}", "image", "image"),
    ("build: a\n    health: {process: true}", "R5", "health/process"),
    ("build: a\n    health: {log: x}\n    egress: [a.example]", "R4", "egress"),
    ("build: a\n    health: {log: x}\n    start: [-m, app]", "R2", "start"),
    ("build: a\n    health: {log: x}\n    start: [sh, -c, 'echo ${bay.api.host}']", "R7", "start/2"),
    ("build: a\n    health: {log: x}\n    labels: {a: '${secret:x}'}", "R7", "labels/a"),
]


@pytest.mark.parametrize(("body", "rule", "path"), WARNINGS)
def test_is_a_warning(body: str, rule: str, path: str) -> None:
    loaded = service(body)
    assert loaded.valid
    assert (rule, f"services/api/{path}") in findings(loaded, "warning")


def test_no_port_anywhere_is_a_warning() -> None:
    assert ("ports", "services") in findings(service("build: a\n    health: {log: x}"), "warning")


@pytest.mark.parametrize("image", ["a:1", f"a:latest@sha256:{'0' * 64}", "r.example:5000/a:1"])
def test_a_fixed_image_is_no_warning(image: str) -> None:
    loaded = service(f"image: '{image}'\n    port: 1\n    health: {{log: x}}")
    assert findings(loaded, "warning") == []


def test_an_unusual_program_is_only_a_notice() -> None:
    loaded = service("build: a\n    port: 1\n    health: {cmd: [bash, -c, x]}\n    start: [./bin/dev]")
    assert loaded.valid
    assert findings(loaded, "notice") == [("R2", "services/api/health/cmd"), ("R2", "services/api/start")]


def test_arguments_of_a_given_entrypoint_are_no_program() -> None:
    loaded = service(
        "build: a\n    port: 1\n    health: {log: x}\n    entrypoint: [python]\n    start: [-m, app]"
    )
    assert findings(loaded, "warning") + findings(loaded, "notice") == []


def test_a_cycle_is_named_as_the_path_it_takes() -> None:
    text = f"{HEAD}services:\n"
    for name, need in (("a", "b"), ("b", "c"), ("c", "a")):
        text += f"  {name}: {{build: a, health: {{log: x}}, needs: [{need}]}}\n"
    (found,) = parse(text).errors
    assert "a -> b -> c -> a" in found.message


def test_a_report_is_a_file_and_not_a_whole_folder() -> None:
    text = """
version: 1
project: p
services: {s: {image: "busybox:1.37", health: {process: true}}}
tasks: {t: {in: s, run: [x], needs: [], report: {format: junit, path: PATH}}}
"""
    for path in (".", "./.", '"${run.dir}/."'):
        found = parse(text.replace("PATH", path)).errors
        assert [each.path for each in found] == ["tasks/t/report/path"], path
    assert parse(text.replace("PATH", "reports/unit.xml")).errors == ()


def test_what_a_machine_without_an_engine_cannot_meet_is_a_warning_where_it_is_written() -> None:
    body = "build: a\n    docker_socket: true\n    health: {process: true}"
    expected = [("runtime", "services/api/build"), ("runtime", "services/api/docker_socket")]
    text = f"services:\n  api:\n    {body}\n"
    found = findings(parse(f"{HEAD}runtime: host\n{text}"), "warning")
    assert [each for each in found if each[0] == "runtime"] == expected
    for other in ("auto", "docker"):
        found = findings(parse(f"{HEAD}runtime: {other}\n{text}"), "warning")
        assert [each for each in found if each[0] == "runtime"] == []


def test_a_task_with_an_image_to_build_is_warned_of_as_well() -> None:
    loaded = parse(f"{HEAD}runtime: host\ntasks: {{t: {{build: a, run: [x], needs: []}}}}\n")
    assert ("runtime", "tasks/t/build") in findings(loaded, "warning")


def test_what_would_run_on_this_machine_is_told_to_be_approved() -> None:
    tasks = "tasks:\n  own: {in: host, run: [x], needs: []}\n  t: {in: api, run: [x], needs: []}\n"
    text = f"services:\n  api: {{image: 'a:1', start: [x], health: {{process: true}}}}\n{tasks}"
    assert findings(parse(f"{HEAD}{text}"), "approval") == [("host", "tasks/own")]
    assert findings(parse(f"{HEAD}runtime: host\n{text}"), "approval") == [
        ("host", "services/api"), ("host", "tasks/own"), ("host", "tasks/t"),
    ]  # fmt: skip

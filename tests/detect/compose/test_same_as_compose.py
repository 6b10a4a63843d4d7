"""Our reading against the real compose's, over every form and over what hypothesis writes."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from devbay.detect.compose import resolve, shell
from devbay.detect.compose.asking import Answer, ask, differences
from devbay.detect.compose.model import ComposeResult
from devbay.detect.files import View
from tests.detect.compose.forms import ACCEPTED, REFUSED


def has_compose() -> bool:
    docker = shutil.which("docker")
    return docker is not None and subprocess.run(
        [docker, "compose", "version"], capture_output=True, stdin=subprocess.DEVNULL, timeout=20
    ).returncode == 0  # fmt: skip


needs_compose = pytest.mark.skipif(not has_compose(), reason="there is no docker compose to compare with")


def view_of(folder: Path, files: dict[str, str]) -> View:
    root = folder / "tree"
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return View(root)


def both(view: View) -> tuple[ComposeResult, Answer]:
    ours = resolve(view, ask=False)
    answer = ask(view, ours, ours.chosen or ("compose.yaml",), ".")
    assert answer is not None
    return ours, answer


@needs_compose
@pytest.mark.parametrize("form", ACCEPTED)
def test_a_form_reads_as_compose_reads_it(form: str, tmp_path: Path) -> None:
    ours, answer = both(view_of(tmp_path, ACCEPTED[form]))
    assert answer.refusal is None
    assert ours.refusals == ()
    assert {service.name for service in ours.services} == set(answer.services)
    assert {
        service.name: found
        for service in ours.services
        if (found := differences(service, answer.services[service.name]))
    } == {}


@needs_compose
@pytest.mark.parametrize("form", REFUSED)
def test_what_compose_refuses_we_say_it_refuses(form: str, tmp_path: Path) -> None:
    ours, answer = both(view_of(tmp_path, REFUSED[form]))
    assert answer.refusal
    assert ours.refusals


few = settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
names = st.sampled_from(["A", "b_1", "_X", "Ab"])
plain = st.text(alphabet=[*"ab c/:?-+={}.é'", "\\", '"'], max_size=6)


def expressions(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from([":-", "-", ":+", "+"])
    word = st.text(alphabet="ab c/:?.=é", max_size=4)
    return st.one_of(
        names.map(lambda name: f"${{{name}}}"),
        st.tuples(names, operators, word, inner, word).map(lambda t: f"${{{t[0]}{t[1]}{t[2]}{t[3]}{t[4]}}}"),
    )


templates = st.lists(
    st.one_of(
        plain, st.just("$$"), names.map(lambda name: f"${name} "),
        expressions(st.one_of(st.just(""), st.just("$$"), expressions(st.just("")))),
    ),
    max_size=6,
).map("".join)  # fmt: skip


@needs_compose
@few
@given(texts=st.lists(templates, min_size=10, max_size=40))
def test_any_template_reads_as_compose_reads_it(texts: list[str], tmp_path: Path) -> None:
    environment = {f"V{number}": text for number, text in enumerate(texts)}
    stack = json.dumps({"services": {"a": {"image": "x", "environment": environment}}})
    ours, answer = both(view_of(tmp_path, {"compose.yaml": stack}))
    assert answer.refusal is None
    assert differences(ours.services[0], answer.services["a"]) == {}


numbers = st.integers(1, 65000)
ranges = st.tuples(numbers, st.integers(0, 12)).map(lambda t: (t[0], t[0] + t[1]))
hosts = st.sampled_from(["", "127.0.0.1:", "[::1]:", "0.0.0.0:"])
protocols = st.sampled_from(["", "/tcp", "/udp", "/sctp", "/UDP"])


def shown(pair: tuple[int, int]) -> str:
    return str(pair[0]) if pair[0] == pair[1] else f"{pair[0]}-{pair[1]}"


short_ports = st.one_of(
    numbers,
    st.tuples(ranges, protocols).map(lambda t: f"{shown(t[0])}{t[1]}"),
    st.tuples(hosts, ranges, numbers, protocols).map(lambda t: f"{t[0]}{shown(t[1])}:{t[2]}{t[3]}"),
    st.tuples(st.sampled_from(["127.0.0.1::", "[::1]::"]), ranges).map(lambda t: f"{t[0]}{shown(t[1])}"),
    st.tuples(hosts, ranges, numbers).map(
        lambda t: f"{t[0]}{shown(t[1])}:{shown((t[2], t[2] + t[1][1] - t[1][0]))}"
    ),
)


@needs_compose
@few
@given(ports=st.lists(short_ports, min_size=1, max_size=20))
def test_any_short_ports_read_as_compose_reads_them(ports: list[int | str], tmp_path: Path) -> None:
    stack = json.dumps({"services": {"a": {"image": "x", "ports": ports}}})
    ours, answer = both(view_of(tmp_path, {"compose.yaml": stack}))
    assert answer.refusal is None
    assert differences(ours.services[0], answer.services["a"]) == {}


letters = [*"ab '-$;&|<>12`nté", "\\", '"']


@needs_compose
@few
@given(lines=st.lists(st.text(alphabet=letters, max_size=10), min_size=8, max_size=30))
def test_any_command_is_split_as_compose_splits_it(lines: list[str], tmp_path: Path) -> None:
    services = {}
    for number, line in enumerate(lines):
        try:
            shell.split(line)
        except ValueError:
            continue
        services[f"s{number}"] = {"image": "x", "command": line.replace("$", "$$")}
    if not services:
        return
    ours, answer = both(view_of(tmp_path, {"compose.yaml": json.dumps({"services": services})}))
    assert answer.refusal is None
    assert {
        each.name: found for each in ours.services if (found := differences(each, answer.services[each.name]))
    } == {}


DATA = Path(__file__).parent / "data"
STACKS = [path.relative_to(DATA).as_posix() for path in sorted(DATA.rglob("*.y*ml"))]


@needs_compose
@pytest.mark.parametrize("stack", STACKS)
def test_a_stack_as_people_write_them_reads_as_compose_reads_it(stack: str, tmp_path: Path) -> None:
    case, _, file = stack.partition("/")
    shutil.copytree(DATA / case, tmp_path / "tree")
    for service in resolve(View(tmp_path / "tree"), files=(file,), ask=False).services:
        for each in service.env_files:
            (tmp_path / "tree" / each.path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "tree" / each.path).touch()
    view = View(tmp_path / "tree")
    ours = resolve(view, files=(file,), ask=False)
    answer = ask(view, ours, (file,), Path(file).parent.as_posix())
    assert answer is not None
    assert bool(answer.refusal) == bool(ours.refusals)
    if answer.refusal is None:
        assert {each.name for each in ours.services} == set(answer.services)
    assert {
        each.name: found
        for each in ours.services
        if each.name in answer.services and (found := differences(each, answer.services[each.name]))
    } == {}

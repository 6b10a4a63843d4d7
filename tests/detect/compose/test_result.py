"""What a stack is made of, what is told about it, and that nothing else is read; no compose is needed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from devbay.detect.compose import ComposeResult, asking, resolve
from devbay.detect.compose.model import Value, Variable
from devbay.detect.compose.ports import Port
from devbay.detect.facts import Origin
from devbay.detect.files import View
from tests.detect.compose.stand_in import StandIn


def read(place: Path, files: dict[str, str | bytes], /, **options: object) -> ComposeResult:
    root = place / "tree"
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(text.encode() if isinstance(text, str) else text)
    return resolve(View(root), **{"ask": False, **options})  # type: ignore[arg-type]


def one(result: ComposeResult, name: str = "a"):
    return next(service for service in result.services if service.name == name)


IMAGE = "services: {a: {image: x}}\n"


@pytest.mark.parametrize(
    ("files", "chosen"),
    [
        (["docker-compose.yml", "compose.yaml", "compose.yml"], ("compose.yaml",)),
        (["docker-compose.yaml", "docker-compose.yml"], ("docker-compose.yml",)),
        (["compose.yml", "docker-compose.override.yaml"], ("compose.yml", "docker-compose.override.yaml")),
        (
            [
                "docker-compose.yml",
                "docker-compose.override.yml",
                "compose.override.yaml",
                "compose.override.yml",
            ],
            ("docker-compose.yml", "compose.override.yml"),
        ),
        (["compose.override.yml"], ()),
        (["sub/compose.yml"], ()),
    ],
)
def test_the_files_of_a_folder_are_those_that_compose_takes(
    files: list[str], chosen: tuple[str, ...], tmp_path: Path
) -> None:
    assert read(tmp_path, dict.fromkeys(files, IMAGE)).chosen == chosen


def test_other_stacks_are_named_and_not_merged(tmp_path: Path) -> None:
    files = dict.fromkeys(
        ["compose.yml", "compose.prod.yml", "e2e/docker-compose.yml", "dev.compose.yaml"], IMAGE
    )
    result = read(tmp_path, {**files, "compose.notes.yml": "a: 1\n", "sub/composer.json": "services:\n"})
    assert result.alternatives == ("compose.prod.yml", "dev.compose.yaml", "e2e/docker-compose.yml")
    assert result.files == ("compose.yml",)


def test_a_folder_and_given_files_are_read_from_where_they_lie(tmp_path: Path) -> None:
    files = {"sub/compose.yml": "services: {a: {build: ., volumes: ['./x:/x', '../y:/y']}}\n"}
    service = one(read(tmp_path, files, folder="sub"))
    assert service.build is not None
    assert service.build.context == "sub"
    assert [volume.source for volume in service.volumes] == ["sub/x", "y"]
    again = read(tmp_path, {}, files=["sub/compose.yml"])
    assert again.services == (service,)
    assert one(read(tmp_path, {}, files=["sub/compose.yml"], folder=".")).build.context == "."


def test_what_no_one_sets_is_told_with_its_place(tmp_path: Path) -> None:
    result = read(
        tmp_path,
        {
            "compose.yaml": """\
services:
  a:
    image: x:${TAG}
    environment:
      - KEY=${TOKEN:?get one}
      - MORE=${OPTION:-on}
      - PASSED
    volumes: ["${DATA}:/data"]
"""
        },
    )
    file = "compose.yaml"
    assert result.missing == (
        Variable("TAG", "services.a.image", Origin(file, 3)),
        Variable("TOKEN", "services.a.environment.[]", Origin(file, 5), True, "get one"),
        Variable("DATA", "services.a.volumes.[]", Origin(file, 8)),
    )
    assert Variable("OPTION", "services.a.environment.[]", Origin(file, 6), default="on") in result.variables
    service = one(result)
    assert service.environment == {"KEY": Value(""), "MORE": Value("on"), "PASSED": Value(None)}
    assert service.environment["KEY"].unset == ("TOKEN",)
    assert service.environment["KEY"].origin == Origin(file, 5)
    assert service.unset["image"] == ("TAG",)
    assert [str(each) for each in result.refusals if "TOKEN" in str(each)]


def test_each_field_knows_the_file_and_line_that_gave_it(tmp_path: Path) -> None:
    result = read(tmp_path, {
        "compose.yml": "services:\n  a:\n    image: x\n    environment:\n      A: 1\n      B: 2\n",
        "compose.override.yml": "services:\n  a:\n    command: run\n    environment:\n      B: 3\n",
    })  # fmt: skip
    service = one(result)
    assert service.origin == Origin("compose.yml", 2, "services.a")
    assert service.at("image") == Origin("compose.yml", 3, "services.a.image")
    assert service.at("command") == Origin("compose.override.yml", 3, "services.a.command")
    assert service.environment["A"].origin == Origin("compose.yml", 5)
    assert service.environment["B"].origin == Origin("compose.override.yml", 5)


SECRET = "hunter2-from-a-file"


def test_values_of_dotenv_and_env_files_are_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", SECRET)
    stand_in = StandIn(tmp_path, {"services": {"a": {"image": "x", "command": None, "entrypoint": None}}})
    monkeypatch.setenv("PATH", str(stand_in.folder))
    service = "{image: x, env_file: [my.env, .env], environment: {T: '${TOKEN}'}}"
    stack = f"include: [sub/c.yml]\nservices: {{a: {service}}}\n"
    values = f"TOKEN={SECRET}\nexport OTHER='{SECRET}'\n"
    files = {
        "my.env": values,
        ".env": values,
        "sub/.env": values,
        "sub/c.yml": "services: {s: {image: '${TOKEN}y'}}\n",
    }
    result = read(tmp_path, {"compose.yaml": stack, **files}, ask=True)
    assert result.asked
    assert SECRET not in repr(result)
    assert SECRET not in repr(stand_in.record)
    assert [file.names for file in one(result).env_files] == [("TOKEN", "OTHER"), ("TOKEN", "OTHER")]
    assert one(result, "s").image == "y"
    assert "sub/.env" not in stand_in.record["seen"]
    assert stand_in.record["seen"]["my.env"] == ""


def test_parts_of_a_value_are_no_names(tmp_path: Path) -> None:
    text = (
        'A=1\nKEY="-----BEGIN\nbase64part=\n-----END"\n'
        "RAW=-----BEGIN KEY-----\nmore64==\n-----END KEY-----\nB=2\n# C=3\n"
    )
    result = read(tmp_path, {"compose.yaml": "services: {a: {image: x, env_file: e.env}}\n", "e.env": text})
    assert one(result).env_files[0].names == ("A", "KEY", "RAW", "B")


def test_names_of_ignored_files_are_not_taken(tmp_path: Path) -> None:
    stack = "services: {a: {image: x, env_file: [s/local.env, s/kept.env]}}\n"
    files = {
        ".gitignore": "*.env\n",
        "s/.gitignore": "!kept.env\n",
        "s/local.env": "A=1\n",
        "s/kept.env": "B=1\n",
    }
    result = read(tmp_path, {"compose.yaml": stack, **files})
    assert [(file.exists, file.names) for file in one(result).env_files] == [(True, ()), (True, ("B",))]


def test_nothing_outside_is_read(tmp_path: Path) -> None:
    outside = tmp_path / "outside.yml"
    outside.write_text(f"services: {{o: {{image: {SECRET}}}}}\n")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "link.yml").symlink_to(outside)
    for path in (
        "link.yml",
        "../outside.yml",
        str(outside),
        "~/outside.yml",
        "https://example.invalid/x.git",
        ".env",
    ):
        for stack in (
            f"include: ['{path}']\n{IMAGE}",
            f"services: {{a: {{image: x, extends: {{file: '{path}', service: o}}}}}}",
        ):
            result = read(
                tmp_path, {"compose.yaml": stack, ".env": f"services: {{o: {{image: {SECRET}}}}}\n"}, ask=True
            )
            assert SECRET not in repr(result)
            assert one(result).image == "x"
            assert result.refusals
            assert not result.asked


def test_a_base_file_that_is_a_link_out_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "real.yml").write_text(IMAGE)
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "compose.yaml").symlink_to(tmp_path / "real.yml")
    result = read(tmp_path, {"compose.yml": "services: {b: {image: y}}\n"})
    assert [service.name for service in result.services] == ["b"]


BROKEN: dict[str, str | bytes] = {
    "not UTF-8": b"services: {a: {image: \xff}}\n",
    "a tab": "services:\n\ta: {image: x}\n",
    "cut off": "services: {a: {image: x",
    "an alias bomb": "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10)),
    "an alias of itself": "services: &s {a: *s}\n",
    "a deep one": "[" * 5000,
    "a long one": "services:\n" + "  a: {image: x}\n" * 70_000,
    "many services": "services:\n" + "".join(f"  a{n}: {{image: x}}\n" for n in range(30_000)),
    "a NUL": 'services: {a: {image: "x\\0"}}\n',
    "documents": "---\n{}\n" * 50,
    "empty": "",
    "a number": "5\n",
    "a key that is a list": "? [a]\n: b\n",
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_file_is_told_and_quickly(kind: str, tmp_path: Path) -> None:
    started = time.monotonic()
    result = read(tmp_path, {"compose.yaml": BROKEN[kind]})
    assert time.monotonic() - started < 60
    assert result.services == ()
    assert result.refusals
    assert all(each.origin is None or each.origin.file == "compose.yaml" for each in result.refusals)


def test_a_folder_is_no_file_to_include(tmp_path: Path) -> None:
    result = read(tmp_path, {"compose.yaml": f"include: [., sub]\n{IMAGE}", "sub/x": ""})
    assert [each.file for each in result.skipped] == [".", "sub"]
    assert {each.why for each in result.skipped} == {"is not there"}
    assert one(result).image == "x"


def test_a_broken_part_leaves_the_rest(tmp_path: Path) -> None:
    result = read(tmp_path, {
        "compose.yaml": "include: [b.yml]\n"
        "services: {a: {image: x, ports: ['x', '80'], tty: maybe, newer_key: 1}}\n",
        "b.yml": "services: {",
        "compose.override.yaml": "services: {a: {command: run}}\n",
    })  # fmt: skip
    assert (one(result).command, one(result).ports) == (("run",), (Port(80),))
    assert len(result.refusals) == 4
    assert [each.file for each in result.skipped] == ["b.yml"]


def test_files_that_multiply_are_given_up_on_quickly(tmp_path: Path) -> None:
    files = {
        f"l{n}{side}.yml": f"include: [l{n + 1}a.yml, l{n + 1}b.yml]\n" for n in range(40) for side in "ab"
    }
    started = time.monotonic()
    result = read(tmp_path, {"compose.yaml": f"include: [l0a.yml, l0b.yml]\n{IMAGE}", **files})
    assert time.monotonic() - started < 60
    assert any("more than" in str(each) for each in result.refusals)


def test_a_service_that_is_extended_a_thousand_times_is_given_up_on_quickly(tmp_path: Path) -> None:
    labels = ", ".join(f"l{n}" for n in range(2000))
    stack = f"services:\n  b: {{image: x, labels: [{labels}]}}\n" + "".join(
        f"  a{n}: {{extends: b}}\n" for n in range(1000)
    )
    started = time.monotonic()
    result = read(tmp_path, {"compose.yaml": stack})
    assert time.monotonic() - started < 60
    assert any("more than" in str(each) for each in result.refusals)


def test_ranges_of_ports_without_end_are_given_up_on(tmp_path: Path) -> None:
    ports = ", ".join(f"'{first}-65000'" for first in range(1, 501))
    started = time.monotonic()
    result = read(tmp_path, {"compose.yaml": f"services: {{a: {{image: x, ports: [{ports}]}}}}\n"})
    assert time.monotonic() - started < 60
    assert result.refusals


def test_two_hundred_compose_files_are_named_up_to_a_limit(tmp_path: Path) -> None:
    files = {f"s{n:03}/compose.yml": IMAGE for n in range(200)}
    result = read(tmp_path, {"compose.yaml": IMAGE, **files})
    assert len(result.alternatives) == 50
    assert result.alternatives[0] == "s000/compose.yml"


def test_the_same_files_give_the_same_result(tmp_path: Path) -> None:
    files = {
        "compose.yaml": "services: {b: {image: '${B}${A}', links: [a]}, a: {build: .}}\nvolumes: {z: , y: }"
    }
    assert repr(read(tmp_path, files)) == repr(read(tmp_path, files))


junk = st.text(alphabet="ab:-{}[]&*!<|>#%@`'\"\\ \n\t?,$0~", max_size=60)
words = st.text(alphabet="ab:/$.{}-0", max_size=8)
keys = st.text(alphabet="abtargesouc", max_size=6)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-5, 70_000), st.floats(), words),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3)),
    max_leaves=6,
)
FIELDS = [
    "image",
    "build",
    "command",
    "entrypoint",
    "environment",
    "env_file",
    "ports",
    "expose",
    "depends_on",
    "healthcheck",
    "volumes",
    "volumes_from",
    "tmpfs",
    "networks",
    "links",
    "extra_hosts",
    "profiles",
    "secrets",
    "configs",
    "labels",
    "scale",
    "deploy",
    "develop",
    "ulimits",
    "sysctls",
    "devices",
    "extends",
    "post_start",
    "logging",
    "network_mode",
    "restart",
    "shm_size",
    "dns",
]
SECTIONS = ["include", "networks", "volumes", "secrets", "configs", "name"]
quick = settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@quick
@given(text=junk)
def test_no_text_makes_it_fail(text: str, tmp_path: Path) -> None:
    read(tmp_path, {"compose.yaml": text, "compose.override.yaml": f"services:\n  a: {{image: x}}\n{text}"})


@quick
@given(
    base=st.dictionaries(st.sampled_from(FIELDS), values, max_size=8),
    over=st.dictionaries(st.sampled_from(FIELDS), values, max_size=8),
    top=st.dictionaries(st.sampled_from(SECTIONS), values, max_size=3),
)  # fmt: skip
def test_no_value_of_any_field_makes_it_fail(
    base: dict[str, object], over: dict[str, object], top: dict[str, object], tmp_path: Path
) -> None:
    def shown(value: object) -> str:
        if isinstance(value, dict):
            return "{" + ", ".join(f"{key!r}: {shown(each)}" for key, each in value.items()) + "}"
        if isinstance(value, list):
            return "[" + ", ".join(map(shown, value)) + "]"
        return "null" if value is None else repr(value).lower() if isinstance(value, bool) else repr(value)

    files = {
        "compose.yaml": shown({"services": {"a": base, "b": over}, **top}),
        "compose.override.yaml": shown({"services": {"a": over}, **top}),
    }
    read(tmp_path, files)


def test_compose_holds_where_it_reads_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = {"services": {"a": {"image": "x", "user": "root", "environment": {"A": "other$$", "B": "2"},
              "build": {"context": "ROOT/sub", "dockerfile": "Dockerfile"}}}}  # fmt: skip
    stand_in = StandIn(tmp_path, answer)
    monkeypatch.setenv("PATH", str(stand_in.folder))
    stack = "services: {a: {image: x, build: sub, environment: {A: '1', B: '2'}}}\n"
    result = read(tmp_path, {"compose.yaml": stack}, ask=True)
    assert one(result).user == "root"
    assert one(result).environment["A"].text == "other$"
    assert one(result).environment["B"].origin == Origin("compose.yaml", 1)
    assert one(result).build.context == "sub"
    assert [note.partition(":")[0] for note in result.notes] == ["services.a.environment", "services.a.user"]


def test_compose_is_asked_of_a_copy_without_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in = StandIn(tmp_path, {"services": {}})
    monkeypatch.setenv("PATH", str(stand_in.folder))
    read(tmp_path, {"compose.yaml": IMAGE, "app/secret.txt": SECRET, ".env": SECRET}, ask=True)
    argv = stand_in.record["argv"]
    assert argv[argv.index("--env-file") + 1] == os.devnull
    assert str(tmp_path / "tree") not in " ".join(argv)
    assert [*stand_in.record["seen"]] == ["compose.yaml"]
    assert {*stand_in.record["env"]} <= {"LC_CTYPE", "__CF_USER_TEXT_ENCODING"}


def test_what_only_compose_refuses_is_told_in_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in = StandIn(tmp_path, error="time=x level=warning msg=y\nvalidating: newer key\n")
    monkeypatch.setenv("PATH", str(stand_in.folder))
    result = read(tmp_path, {"compose.yaml": IMAGE}, ask=True)
    assert [str(each) for each in result.refusals] == ["compose says: validating: newer key"]
    assert one(result).image == "x"


@pytest.mark.parametrize("kind", ["slow", "old", "absent"])
def test_without_an_answer_our_reading_holds(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "TIMEOUT", 0.5)
    stand_in = StandIn(
        tmp_path, error="no such option" if kind == "old" else "", delay=20 if kind == "slow" else 0,
        version="1.29.2" if kind == "old" else "2.26.1",
    )  # fmt: skip
    monkeypatch.setenv("PATH", str(stand_in.folder) if kind != "absent" else str(tmp_path))
    started = time.monotonic()
    result = read(tmp_path, {"compose.yaml": IMAGE}, ask=True)
    assert time.monotonic() - started < 60
    assert not result.asked
    assert (one(result).image, result.refusals) == ("x", ())

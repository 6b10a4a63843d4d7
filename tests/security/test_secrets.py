import os
import sys
import time
from pathlib import Path

import pytest

from devbay.errors import DevbayError
from devbay.security import secrets
from devbay.security.secrets import SecretSource, environment_name, key_values

VALUE = "hunter2-Tr0ub4dor"
PATH = {"PATH": os.environ["PATH"]}


def command(code: str) -> dict[str, object]:
    return {"secrets": {"command": [sys.executable, "-c", code, "{ref}"]}}


def private(path: Path, text: str, mode: int = 0o600) -> dict[str, object]:
    path.write_text(text)
    path.chmod(mode)
    return {"secrets": {"file": str(path)}}


def refused(source: SecretSource, ref: str = "stripe/key") -> DevbayError:
    """The error for `ref`, with nothing of the value in it or in what led to it."""
    with pytest.raises(DevbayError) as caught:
        source(ref)
    error: BaseException | None = caught.value
    while error is not None:
        assert VALUE not in repr(error)
        assert VALUE not in repr(getattr(error, "output", ""))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return caught.value


def test_the_environment_names_a_secret_in_upper_case() -> None:
    assert environment_name("stripe/key.v-2:x") == "DEVBAY_SECRET_STRIPE_KEY_V_2_X"
    assert SecretSource({}, {"DEVBAY_SECRET_STRIPE_KEY": VALUE})("stripe/key") == VALUE


def test_the_environment_overrides_file_and_command(tmp_path: Path) -> None:
    config = private(tmp_path / "s", "stripe/key=from-file")
    assert SecretSource(config, {})("stripe/key") == "from-file"
    assert SecretSource(config, {"DEVBAY_SECRET_STRIPE_KEY": VALUE})("stripe/key") == VALUE


def test_a_command_gets_the_ref_as_one_argument_and_the_callers_environment() -> None:
    source = SecretSource(
        command("import os, sys; print(sys.argv[1], len(sys.argv), os.environ['OP_SESSION'])"),
        {**PATH, "OP_SESSION": "s"},
    )
    assert source("a/b:c") == "a/b:c 2 s"


def test_only_one_line_end_is_taken_off_a_commands_output() -> None:
    assert SecretSource(command("print('-----BEGIN\\nx\\n')"), PATH)("k") == "-----BEGIN\nx\n"


def test_a_secret_is_looked_up_once_per_call(tmp_path: Path) -> None:
    log = tmp_path / "log"
    source = SecretSource(command(f"open({str(log)!r}, 'a').write('x'); print('v')"), PATH)
    assert [source("k"), source("k")] == ["v", "v"]
    assert log.read_text() == "x"
    assert source.values == {"k": "v"}


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (f"import sys; print('{VALUE}'); print('{VALUE}', file=sys.stderr); sys.exit(3)", "exit code 3"),
        ("pass", "printed nothing"),
        ("import sys; sys.stdout.buffer.write(b'\\xff')", "UTF-8"),
        (f"print('{VALUE}' + chr(0))", "NUL"),
    ],
)
def test_a_failing_command_is_named_without_the_value(code: str, reason: str) -> None:
    error = refused(SecretSource(command(code), PATH))
    assert error.code == "secret_failed"
    assert "stripe/key" in error.message
    assert reason in error.message


def test_a_command_that_hangs_is_ended_with_its_children(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(secrets, "COMMAND_LIMIT_S", 0.5)
    pid = tmp_path / "pid"
    script = f"echo {VALUE}; sleep 60 & echo $! > {pid}; sleep 60 # {{ref}}"
    started = time.monotonic()
    error = refused(SecretSource({"secrets": {"command": ["sh", "-c", script]}}, PATH))
    assert "took longer" in error.message
    assert time.monotonic() - started < 60
    deadline = time.monotonic() + 3
    while _runs(int(pid.read_text())) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _runs(int(pid.read_text()))


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


def test_a_command_that_does_not_exist_is_named() -> None:
    error = refused(SecretSource({"secrets": {"command": ["no-such-tool", "{ref}"]}}, PATH))
    assert "no-such-tool" in error.message


def test_a_ref_never_becomes_an_option_of_the_command() -> None:
    assert refused(SecretSource(command("print(1)"), PATH), "--output").code == "secret_failed"


def test_a_missing_secret_names_the_ways_to_give_it() -> None:
    error = refused(SecretSource({}, {"HOME": "/h"}))
    assert error.code == "secret_missing"
    assert error.exit_code == 3
    assert error.data == {"ref": "stripe/key"}
    for way in ("DEVBAY_SECRET_STRIPE_KEY", "secrets.command", "secrets.file"):
        assert way in error.next


def test_files_hold_key_value_lines_or_toml(tmp_path: Path) -> None:
    lines = SecretSource(
        private(tmp_path / "s", "# mine\nexport STRIPE_KEY='a b'\nplain=x=y\n\n q = \"z\" \n"), {}
    )
    assert [lines("stripe/key"), lines("plain"), lines("q")] == ["a b", "x=y", "z"]
    toml = SecretSource(private(tmp_path / "s.toml", '"a.b" = "1"\n[stripe]\nkey = "2"\n[n]\nx = 3\n'), {})
    assert [toml("a.b"), toml("stripe/key")] == ["1", "2"]
    assert refused(toml, "n/x").code == "secret_missing"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o644, 0o666])
def test_a_file_others_can_read_or_write_is_refused(tmp_path: Path, mode: int) -> None:
    error = refused(SecretSource(private(tmp_path / "s", f"stripe/key={VALUE}", mode), {}))
    assert error.code == "unsafe_secret_file"
    assert "chmod 600" in error.next


def test_a_folder_a_pipe_and_nonsense_are_refused_without_showing_a_line(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    for path in (tmp_path, tmp_path / "pipe"):
        assert refused(SecretSource({"secrets": {"file": str(path)}}, {})).code == "unsafe_secret_file"
    for name in ("s", "s.toml"):
        assert refused(SecretSource(private(tmp_path / name, f"{VALUE} x"), {})).code == "unsafe_secret_file"


def test_a_file_below_the_callers_home_may_be_named_with_a_tilde(tmp_path: Path) -> None:
    private(tmp_path / "s", f"k={VALUE}")
    assert SecretSource({"secrets": {"file": "~/s"}}, {"HOME": str(tmp_path)})("k") == VALUE


def test_nothing_of_a_value_stands_in_the_repr() -> None:
    source = SecretSource({}, {"DEVBAY_SECRET_K": VALUE})
    source("k")
    assert VALUE not in repr(source) + str(source)


@pytest.mark.parametrize(
    "section",
    [
        {"command": "op read {ref}"},
        {"command": ["op", "read"]},
        {"command": []},
        {"command": ["{ref}"]},
        {"command": ["op", 1, "{ref}"]},
        {"file": "secrets"},
        {"file": 1},
        "x",
    ],
)
def test_configuration_that_cannot_work_is_refused(section: object) -> None:
    with pytest.raises(DevbayError) as caught:
        SecretSource({"secrets": section}, {})
    assert caught.value.code == "bad_config"


def test_a_line_without_a_value_is_an_error() -> None:
    with pytest.raises(ValueError, match="without ="):
        key_values("a=1\nb\n")

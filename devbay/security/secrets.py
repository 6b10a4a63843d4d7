"""Where the values of `${secret:<ref>}` come from: the caller's environment, a private file, a command."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import threading
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from devbay.errors import PERSON_NEEDED, WORK_FAILED, DevbayError

COMMAND_LIMIT_S = 20.0
PREFIX = "DEVBAY_SECRET_"


class SecretSource:
    """Looks secrets up for one call, each at most once. Call it with a ref, or read `values` afterwards.

    Order: `DEVBAY_SECRET_<REF>` of the caller (for this call only), then `secrets.file`, then
    `secrets.command` of config.toml. No value ever stands in an error or in this object's repr.
    Safe to use from several threads.
    """

    def __init__(self, config: Mapping[str, Any], env: Mapping[str, str]) -> None:
        """`config` is config.toml as data, `env` the caller's environment. Raises `bad_config`."""
        section = config.get("secrets", {})
        if not isinstance(section, Mapping):
            raise _bad_config("secrets is no table", "write a [secrets] section, or remove it")
        self._env = env
        self._command = _checked_command(section.get("command"))
        self._file = _checked_file(section.get("file"), env)
        self._found: dict[str, str] = {}
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self._found)} found)"

    def __call__(self, ref: str) -> str:
        """The value; raises `secret_missing`, `secret_failed` or `unsafe_secret_file`."""
        with self._lock:
            if ref not in self._found:
                self._found[ref] = self._look_up(ref)
            return self._found[ref]

    @property
    def values(self) -> dict[str, str]:
        """Ref to value of everything looked up so far, for the scrubber."""
        with self._lock:
            return dict(self._found)

    def _look_up(self, ref: str) -> str:
        name = environment_name(ref)
        value = self._env.get(name) or None
        if value is None and self._file is not None:
            value = _from_file(self._file, ref)
        if value is None and self._command is not None:
            value = _from_command(self._command, ref, self._env)
        if value is None:
            ways = [
                f"set {name} for one call",
                'set secrets.command = ["op", "read", "{ref}"] in config.toml',
            ]
            ways.append(f"add it to {self._file}" if self._file else "name a 0600 file as secrets.file there")
            raise DevbayError(
                "secret_missing",
                f"there is no value for the secret {ref!r}",
                next="; or ".join(ways),
                exit_code=PERSON_NEEDED,
                ref=ref,
            )
        if "\0" in value:
            raise _failed(ref, "its value holds a NUL character, which no environment can carry", "")
        return value


def environment_name(ref: str) -> str:
    """`DEVBAY_SECRET_STRIPE_KEY` for `stripe/key`."""
    return PREFIX + _upper(ref)


def _upper(ref: str) -> str:
    return re.sub(r"[^A-Z0-9]", "_", ref.upper())


def _from_file(path: Path, ref: str) -> str | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unsafe(path, f"cannot be read: {error.strerror}") from error
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise _unsafe(path, "is no regular file")
        if found.st_uid != os.getuid():
            raise _unsafe(path, "belongs to another user")
        if found.st_mode & 0o077:
            raise _unsafe(path, f"can be read or written by others (mode {found.st_mode & 0o777:04o})")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            content = file.read()
    finally:
        os.close(descriptor)
    try:
        text = content.decode()
        entries = _flat(tomllib.loads(text)) if path.suffix == ".toml" else key_values(text)
    except ValueError as error:  # the parser's own words can quote a line, and so a value
        raise _unsafe(path, f"cannot be understood ({type(error).__name__})") from None
    return entries.get(ref) or entries.get(_upper(ref)) or None


def key_values(text: str) -> dict[str, str]:
    """`KEY=VALUE` lines: `export`, comments and one pair of quotes are taken off. ValueError for others."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        stripped = line.strip().removeprefix("export ")
        if not stripped or stripped.startswith("#"):
            continue
        key, equals, value = stripped.partition("=")
        if not equals:
            raise ValueError("a line without =")
        value = value.strip()
        if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        found[key.strip()] = value
    return found


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Nested TOML tables as `outer/inner` refs; only strings are secrets."""
    found: dict[str, str] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{prefix}{key}/")
        elif isinstance(value, str):
            found[prefix + key] = value
    return found


def _from_command(command: Sequence[str], ref: str, env: Mapping[str, str]) -> str:
    argv = [word.replace("{ref}", ref) for word in command]
    by_hand = f"run it by hand to see why: {' '.join(argv)}"
    if ref.startswith("-"):
        raise _failed(ref, "a ref that starts with a hyphen would be an option of the command", "")
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # may repeat the value, so it is not shown
            env=dict(env),
            start_new_session=True,
        )
    except OSError as error:
        raise _failed(ref, f"{argv[0]} cannot be run: {error.strerror}", by_hand) from error
    try:
        output, _ = process.communicate(timeout=COMMAND_LIMIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        # from None: the exception holds what was printed so far
        raise _failed(ref, f"{argv[0]} took longer than {COMMAND_LIMIT_S:.0f} s", by_hand) from None
    if process.returncode:
        raise _failed(ref, f"{argv[0]} ended with exit code {process.returncode}", by_hand)
    try:
        value = output.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise _failed(ref, f"{argv[0]} printed what is no UTF-8 text", by_hand) from None
    if not value:
        raise _failed(ref, f"{argv[0]} printed nothing", by_hand)
    return value


def _checked_command(command: object) -> list[str] | None:
    if command is None:
        return None
    if isinstance(command, list) and command and all(isinstance(word, str) for word in command):
        words = [str(word) for word in command]
        if any("{ref}" in word for word in words[1:]):
            return words
    raise _bad_config(
        "secrets.command must be a list of words with {ref} in one of them",
        'write command = ["op", "read", "{ref}"]',
    )


def _checked_file(file: object, env: Mapping[str, str]) -> Path | None:
    if file is None:
        return None
    if isinstance(file, str):
        home = env.get("HOME") or str(Path.home())
        path = Path(home, file[2:]) if file.startswith("~/") else Path(file)
        if path.is_absolute():
            return path
    raise _bad_config("secrets.file must be an absolute path", 'write file = "~/.config/devbay/secrets"')


def _bad_config(problem: str, fix: str) -> DevbayError:
    return DevbayError("bad_config", f"config.toml: {problem}", next=fix)


def _failed(ref: str, reason: str, fix: str) -> DevbayError:
    return DevbayError(
        "secret_failed",
        f"the secret {ref!r} cannot be had: {reason}",
        next=fix or "store another value",
        exit_code=WORK_FAILED,
        ref=ref,
    )


def _unsafe(path: Path, reason: str) -> DevbayError:
    return DevbayError(
        "unsafe_secret_file",
        f"the secrets' file {path} {reason}",
        next=f"chmod 600 {path}, or name another file as secrets.file in config.toml",
        exit_code=PERSON_NEEDED,
    )

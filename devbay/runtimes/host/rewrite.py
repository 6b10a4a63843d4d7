"""A command for a container as one for this machine: its declared ports become those that devbay gave it.

A word is changed only where it can mean nothing else: a number that merely is, or holds, the port stays
(`--max-requests 8000`, `18000`). Every address of the machine becomes the loopback one. Pure.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from posixpath import basename

LOOPBACK = "127.0.0.1"

_ANY = ("0.0.0.0", "[::]", "::")  # noqa: S104 - replaced, not bound to
_LOCAL = ("localhost", LOOPBACK, "::1", "0.0.0.0", "::")  # noqa: S104

_HOST = r"localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1?\]"
_ADDRESS = re.compile(
    rf"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://(?=[^:]))?(?P<host>{_HOST}|\*|)"
    r":(?P<port>[0-9]+)(?P<rest>[/?#].*)?",
    re.DOTALL,
)
_URL = re.compile(rf"(?P<scheme>\b(?:https?|wss?|tcp)://)(?P<host>{_HOST}):(?P<port>[0-9]+)(?![0-9.])")
_OPEN = re.compile(
    r"""(?P<lead>"?|--?[\w.-]+="?|\w+="?)(?:0\.0\.0\.0|\[::\])(?P<rest>:\$(?:\w+|\{[^{}]*\})"?)"""
)
_OPTION = re.compile(r"(?P<name>-{0,2}[A-Za-z_][\w.-]*)=(?P<value>.*)", re.DOTALL)
_GLUED = re.compile(r"(?P<option>-[pP])(?P<port>[0-9]+)")
_SEGMENT = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_WORKSPACE = re.compile(r"(?P<lead>^|^-[A-Za-z]|[=:,]|://)/workspace(?=[/:,]|$)")

_ADDRESSES = re.compile(r"ports?$|listen|bind|addr|host|url")
_NOT_ADDRESSES = {"support", "import", "export", "report", "transport", "viewport", "passport", "curl"}
_SHORT = {"-p", "-P", "-l"}
_SERVING = {"runserver", "runserver_plus", "http.server", "SimpleHTTPServer"}
_FLAGS = {"--noreload", "--nothreading", "--insecure", "--nostatic", "--ipv6", "-6", "--cgi"}

_SHELLS = {"sh", "bash", "dash", "ash", "zsh", "ksh"}
_TOKEN = re.compile(
    r"""(?P<comment>(?<![^\s;&|()])\#[^\n]*)|(?P<end>[;&|()\n]+)|(?P<space>[ \t<>]+)"""
    r"""|(?P<word>(?:[^\s;&|()<>'"\\`$]|\\.|\$\([^()]*\)|\$|`[^`]*`|'[^']*'|"(?:[^"\\]|\\.)*")+)""",
    re.DOTALL,
)


@dataclass(frozen=True)
class Given:
    """ports: a service's own declared ports and those it has on this machine.

    worktree: what `/workspace` stands for where no sandbox makes it lead there, else None.
    """

    ports: Mapping[int, int]
    worktree: str | None = None


@dataclass(frozen=True)
class Words:
    """An argv, and what was changed in it: (from, to), each once."""

    argv: tuple[str, ...]
    changes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Values:
    """An environment, and what was changed in it: (`NAME=from`, `NAME=to`)."""

    env: dict[str, str]
    changes: tuple[tuple[str, str], ...] = ()


def argv(words: Sequence[str], given: Given) -> Words:
    """`words` (a service's command, or a probe's) as they are to be run on this machine."""
    writer = _Writer(given)
    return Words(tuple(writer.command(words)), tuple(dict.fromkeys(writer.changes)))


def env(values: Mapping[str, str], given: Given) -> Values:
    """The same for values, which are changed as a whole only.

    For values as the manifest has them, before references are resolved: another service's address may be
    the very number that this service declared.
    """
    writer, done = _Writer(given), {}
    for name, value in values.items():
        done[name] = writer.value(name, value)
    changes = [(f"{name}={values[name]}", f"{name}={done[name]}") for name in values]
    return Values(done, tuple(change for change in changes if change[0] != change[1]))


@dataclass
class _Writer:
    given: Given
    changes: list[tuple[str, str]] = field(default_factory=list)

    def command(self, words: Sequence[str]) -> list[str]:
        """The words of one simple command."""
        done: list[str] = []
        for index, word in enumerate(words):
            new = self.text(word) if _is_script(words, index) else self.word(word, words[:index])
            done.append(new)
        return done

    def word(self, word: str, before: Sequence[str]) -> str:
        new = self._port(word) if _may_be_port(word, before) else self._argument(word)
        new = _WORKSPACE.sub(self._workspace, _URL.sub(self._url, new) if new == word else new)
        return self._noted(word, new)

    def value(self, name: str, value: str) -> str:
        new = self._named(name, value)
        return _WORKSPACE.sub(self._workspace, new)

    def text(self, text: str) -> str:
        """A text for a shell: whole words of it, every other byte as it is."""
        tokens = list(_tokens(text))
        if "<<" in text or "".join(raw for _, raw in tokens) != text:
            return _URL.sub(self._url, text)  # unclear where words begin and end
        done: list[str] = []
        words: list[str] = []
        for kind, raw in tokens:
            if kind == "word":
                plain = _plain(raw)
                new = self._unclear(raw) if plain is None else self._shell_word(raw, plain, words)
                words.append(raw if plain is None else plain)
                done.append(new)
            else:
                words = [] if kind == "end" else words
                done.append(raw)
        return "".join(done)

    def _shell_word(self, raw: str, plain: str, before: list[str]) -> str:
        words = [*before, plain]
        new = self.text(plain) if _is_script(words, len(before)) else self.word(plain, before)
        if new == plain:
            return raw
        if raw == plain and not self._needs_quotes():
            return new
        name, equals, value = new.partition("=")
        if equals and re.fullmatch(r"[\w.-]+", name):  # a quoted assignment would be none
            return f"{name}={shlex.quote(value)}"
        return shlex.quote(new)

    def _unclear(self, raw: str) -> str:
        """A word in which the shell puts something in."""
        new = _URL.sub(self._url, raw)
        if match := _OPEN.fullmatch(new):
            new = f"{match['lead']}{LOOPBACK}{match['rest']}"
        if not self._needs_quotes():
            quote = '"' if raw.startswith('"') else ""
            new = quote + _WORKSPACE.sub(self._workspace, new.removeprefix(quote))
        return self._noted(raw, new)

    def _argument(self, word: str) -> str:
        if match := _GLUED.fullmatch(word):
            return match["option"] + self._port(match["port"])
        if match := _OPTION.fullmatch(word):
            return f"{match['name']}={self._named(match['name'], match['value'])}"
        return self._address(word)

    def _named(self, name: str, value: str) -> str:
        if _is_address_name(name):
            return self._port(value) if value.isdigit() else self._address(value)
        return value if value == "::" else self._address(value)

    def _address(self, word: str) -> str:
        if word in _ANY:
            return LOOPBACK
        match = _ADDRESS.fullmatch(word)
        if match is None or (match["scheme"] and not match["host"]):
            return word
        return f"{match['scheme'] or ''}{self._host_port(match)}{match['rest'] or ''}"

    def _host_port(self, match: re.Match[str]) -> str:
        host, port = match["host"], self._port(match["port"])
        if host in _ANY or (host in ("*", "[::1]") and port != match["port"]):
            host = LOOPBACK  # where the port was given
        return f"{host}:{port}"

    def _url(self, match: re.Match[str]) -> str:
        return f"{match['scheme']}{self._host_port(match)}"

    def _port(self, port: str) -> str:
        known = self.given.ports.get(int(port)) if port.isdigit() and len(port) <= 5 else None
        return port if known is None else str(known)

    def _workspace(self, match: re.Match[str]) -> str:
        return match["lead"] + (self.given.worktree or "/workspace")

    def _needs_quotes(self) -> bool:
        worktree = self.given.worktree
        return worktree is not None and shlex.quote(worktree) != worktree

    def _noted(self, old: str, new: str) -> str:
        if old != new:
            self.changes.append((old, new))
        return new


def _may_be_port(word: str, before: Sequence[str]) -> bool:
    if not word.isdigit() or not before:
        return False
    last = before[-1]
    if last in _SHORT or last in _LOCAL or (last.startswith("--") and _is_address_name(last)):
        return True
    if re.fullmatch(r"-[A-Za-z][\w.-]+", last):  # `-port 8080` of Go's flags
        return _is_address_name(last)
    return (not last.startswith("-") or last in _FLAGS) and any(basename(one) in _SERVING for one in before)


def _is_address_name(name: str) -> bool:
    """Whether an option or variable of this name is about an address."""
    segments = [segment.lower() for segment in _SEGMENT.findall(name)]
    return any(_ADDRESSES.search(segment) for segment in segments if segment not in _NOT_ADDRESSES)


def _is_script(words: Sequence[str], index: int) -> bool:
    """Whether a word is the text of `sh -c TEXT`, also after `exec`, `env` and their like."""
    if index < 2 or not re.fullmatch(r"-[a-z]*c", words[index - 1]):
        return False
    program = next((at for at in range(index - 1) if basename(words[at]) in _SHELLS), None)
    return program is not None and all(word.startswith("-") for word in words[program + 1 : index])


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    for match in _TOKEN.finditer(text):
        yield match.lastgroup or "", match[0]


def _plain(raw: str) -> str | None:
    """A shell word without its quotes; None where the shell would put something in."""
    if re.search(r"[$`\\]", re.sub(r"'[^']*'", "", raw)):
        return None
    try:
        parts = shlex.split(raw)
    except ValueError:
        return None
    return parts[0] if len(parts) == 1 else None

"""Files of variables: their names, and of example files the shape of an address; never a value."""

from __future__ import annotations

import re
from dataclasses import dataclass

from devbay.detect.facts import Origin
from devbay.detect.files import View

_EXAMPLE = re.compile(
    r"(^|/)(\.?env([.-][\w-]+)*[.-](example|sample|template|dist|defaults?)|(example|sample)\.env|\.?env\.(example|sample))$"
)
_LINE = re.compile(r"^\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*)$")
_ADDRESS = re.compile(
    r"^([a-z][a-z0-9+.-]*)://(?:[^@/\s]*@)?(localhost|127\.0\.0\.1|\[::1\]|[\w.-]+)(?::(\d+))?(/\S*)?$"
)


@dataclass(frozen=True)
class Variable:
    """A name and, from an example file, what kind of address stands there: its scheme, host and port.

    local: the value is this machine itself. number: the value is a plain number up to 65535, such as a port.
    """

    name: str
    origin: Origin
    scheme: str | None = None
    host: str | None = None
    port: int | None = None
    local: bool = False


def examples(view: View) -> tuple[str, ...]:
    """The example files, the root's first."""
    found = (file for file in view.files() if _EXAMPLE.search(file) and file.count("/") < 4)
    return tuple(sorted(found, key=lambda file: (file.count("/"), file)))


def names(view: View, file: str) -> tuple[Variable, ...]:
    """The variables of a file by name alone."""
    return tuple(Variable(name, origin) for name, _, origin in _lines(view, file))


def shapes(view: View, file: str) -> tuple[Variable, ...]:
    """The variables of an example file, with the shape of those that are addresses of this machine."""
    found = []
    for name, text, origin in _lines(view, file):
        value = text.split(" #")[0].strip().strip("\"'")
        match = _ADDRESS.match(value)
        if match:
            port = int(match[3]) if match[3] else None
            found.append(Variable(name, origin, match[1], match[2], port, _local(match[2])))
        elif _local(value):
            found.append(Variable(name, origin, host=value, local=True))
        elif value.isdigit() and 0 < int(value) < 65536:
            found.append(Variable(name, origin, port=int(value)))
        else:
            found.append(Variable(name, origin))
    return tuple(found)


def _local(host: str) -> bool:
    return host in ("localhost", "127.0.0.1", "[::1]", "0.0.0.0")  # noqa: S104 - compared, not bound


def _lines(view: View, file: str) -> list[tuple[str, str, Origin]]:
    found = []
    for number, line in enumerate(view.lines(file), 1):
        match = _LINE.match(line)
        if match:
            found.append((match[1], match[2], Origin(file, number, match[1])))
    return found

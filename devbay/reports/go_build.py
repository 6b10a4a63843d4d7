"""What `go build`, `go vet` and the go command say of packages that do not build, as problems of suites."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from devbay.reports.plain import shorten
from devbay.reports.records import MAX_FAILURES, Found, Frame

MAX_LINES = 200

_HEADER = re.compile(r"^# \[?(?P<package>[^\s\[\]]+)\]?(?: \[\S+\])?$")
_LOCATED = re.compile(
    r"^(?:vet: )?(?P<path>(?:[A-Za-z]:)?[^\s:][^:]*?\.(?:go|s|c|cc|cpp|h|y)):(?P<line>\d+)(?::\d+)?: "
    r"(?P<text>.+)$"
)
_FAILED = re.compile(r"^FAIL\t(?P<package>\S+) \[(?P<what>build failed|setup failed)\]$")
_ENDED = re.compile(r"^(\?   |ok  |FAIL)\t|^(FAIL|PASS|ok)$|^\s*(===|---) |^note: module requires Go")


@dataclass
class _Package:
    """One package's errors. loose: lines without a place, such as the linker's."""

    name: str
    found: list[Found] = field(default_factory=list)
    loose: list[str] = field(default_factory=list)
    failed: str | None = None


@dataclass
class Build:
    """Takes the lines that are not a test's, in order."""

    packages: dict[str, _Package] = field(default_factory=dict)
    open: _Package | None = None
    _seen: set[tuple[str, int, str]] = field(default_factory=set)
    _found: int = 0

    def take(self, line: str) -> bool:
        """Whether the line is the build's."""
        if header := _HEADER.match(line):
            self.open = self._package(header["package"])
            return True
        if failed := _FAILED.match(line):
            self._package(failed["package"]).failed = failed["what"]
            self.open = None
            return True
        if self.open is None:
            return False
        if not line.strip() or _ENDED.match(line):
            self.open = None
            return False
        if located := _LOCATED.match(line):
            self._locate(self.open, located["path"], int(located["line"]), located["text"])
        elif line != "too many errors":
            self._loose(self.open, line)
        return True

    def failing(self, package: str) -> bool:
        return package in self.packages

    def failures(self) -> list[Found]:
        """One record for each error; nothing unless a package was said to have failed for it."""
        packages = self.packages.values()
        if not any(package.failed for package in packages):
            return []
        elsewhere = any(package.found or package.loose for package in packages if not package.failed)
        result: list[Found] = []
        for package in packages:
            if package.found:
                result += package.found
            elif package.loose or not elsewhere:
                message = "\n".join(package.loose) or package.failed or ""
                result.append(Found(package.name, package.name, "error", "suite", message=message))
        return result

    def _package(self, name: str) -> _Package:
        name = name.removesuffix(".test")
        if name not in self.packages and len(self.packages) >= MAX_FAILURES:
            return _Package(name)
        return self.packages.setdefault(name, _Package(name))

    def _locate(self, package: _Package, path: str, line: int, text: str) -> None:
        if (path, line, text) in self._seen or self._found >= MAX_FAILURES:
            return  # said of the package and of its test variant
        self._seen.add((path, line, text))
        self._found += 1
        package.found.append(
            Found(
                package.name,
                package.name,
                "error",
                "suite",
                message=shorten(text, 8_000),
                frames=(Frame(path, line),),
                own=(path,),
                own_line=line,
            )
        )

    def _loose(self, package: _Package, line: str) -> None:
        if line.startswith(("\t", " ")) and package.found:
            last = package.found[-1]
            if len(last.message) < 2_000:
                package.found[-1] = _continued(last, line)
        elif len(package.loose) < MAX_LINES:
            package.loose.append(line)


def _continued(found: Found, line: str) -> Found:
    return Found(
        found.name,
        found.suite,
        found.kind,
        found.scope,
        message=f"{found.message}\n{line.strip()}",
        frames=found.frames,
        own=found.own,
        own_line=found.own_line,
    )

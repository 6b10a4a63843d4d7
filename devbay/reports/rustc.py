"""Errors of rustc and Cargo that keep tests from being built, as people and as programs (JSON) read them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace

from devbay.reports.records import MAX_FAILURES, Found, Frame

_ERROR = re.compile(r"^error(?:\[E\d+\])?: (?P<text>.+)$")
_SHORT = re.compile(r"^(?P<path>[^\s:][^:]*\.rs):(?P<line>\d+):\d+: error(?:\[E\d+\])?: (?P<text>.+)$")
_PLACE = re.compile(r"^\s*--> (?P<path>.+?):(?P<line>\d+):\d+$")
_SUMMED = re.compile(
    r"^(?:could not compile|aborting due to|(?:doc)?test failed, to rerun|\d+ targets? failed|test run failed"
    r"|build failed|bench failed, to rerun|process didn't exit)"
)
_CRATE = re.compile(r"^error: could not compile `(?P<crate>[^`]+)`")


@dataclass
class Diagnostics:
    """Takes lines; `failures` has each error once, though a library is built twice for its tests."""

    found: list[Found] = field(default_factory=list)
    unplaced: list[str] = field(default_factory=list)
    crates: list[str] = field(default_factory=list)
    _open: str | None = None
    _seen: set[tuple[str, int, str]] = field(default_factory=set)

    def take(self, line: str) -> bool:
        """Whether the line is a compiler's."""
        if line.startswith('{"reason":'):
            return self._json(line)
        if self._open is not None and (place := _PLACE.match(line)):
            self._add(place["path"], int(place["line"]), self._open)
            self._open = None
            return True
        if self._open is not None and not line.strip():
            self._unplaced()
        if crate := _CRATE.match(line):
            self.crates.append(crate["crate"])
        if short := _SHORT.match(line):
            self._add(short["path"], int(short["line"]), short["text"])
            return True
        if error := _ERROR.match(line):
            self._unplaced()
            self._open = None if _SUMMED.match(error["text"]) else error["text"]
            return True
        return False

    def failures(self) -> list[Found]:
        self._unplaced()
        crate = self.crates[0] if self.crates else None
        if self.found:
            return [replace(each, name=each.name or crate or each.own[0]) for each in self.found]
        scope = "suite" if crate else "run"
        return [
            Found(crate or "cargo", kind="error", scope=scope, message=text)  # type: ignore[arg-type]
            for text in dict.fromkeys(self.unplaced)
        ]

    def _unplaced(self) -> None:
        if self._open is not None and len(self.unplaced) < 100:
            self.unplaced.append(self._open)
        self._open = None

    def _add(self, path: str, line: int, text: str, crate: str = "") -> None:
        if (path, line, text) in self._seen or len(self.found) >= MAX_FAILURES:
            return
        self._seen.add((path, line, text))
        self.found.append(
            Found(
                crate,
                kind="error",
                scope="suite",
                message=text,
                frames=(Frame(path, line),),
                own=(path,),
                own_line=line,
            )
        )

    def _json(self, line: str) -> bool:
        """A message of `--message-format=json`: the primary span of an error."""
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            return False
        message = event.get("message") if isinstance(event, dict) else None
        if not isinstance(message, dict) or message.get("level") != "error":
            return True
        target = event.get("target")
        crate = target.get("name") if isinstance(target, dict) else None
        spans = message.get("spans")
        for span in spans if isinstance(spans, list) else []:
            if isinstance(span, dict) and span.get("is_primary"):
                path, number = span.get("file_name"), span.get("line_start")
                if isinstance(path, str) and isinstance(number, int):
                    self._add(path, number, str(message.get("message", "")), str(crate or ""))
                    return True
        return True

"""Reading output: of services (by the engine's log) and of runs (by their log file), with cursors."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from devbay.answers import LogLine, LogsAnswer
from devbay.bays.parts import Bay, Parts
from devbay.errors import DevbayError
from devbay.jobs import Job
from devbay.runtimes.base import LogEntry
from devbay.tasks.log import TAIL_BYTES
from devbay.tasks.run import LOG_NAME

ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
AGE = re.compile(r"(\d+)(s|m|h|d)")
MAX_TEXT = 2000
SEARCHED = 50_000


@dataclass(frozen=True)
class _Page:
    lines: list[LogLine]
    cursor: str | None
    dropped: int


class Logs:
    def __init__(self, parts: Parts) -> None:
        self.parts = parts

    def read(
        self,
        bay: Bay,
        *,
        service: str | None,
        run: str | None,
        lines: int,
        since: str | None,
        grep: str | None,
        cursor: str | None,
    ) -> LogsAnswer:
        """The newest lines that fit; with a cursor those after it, oldest first.

        Raises `unknown_service`, `unknown_run`, `bad_arguments`.
        """
        pattern = _pattern(grep)
        if run is not None:
            page = self._of_run(bay, run, lines, pattern, cursor)
        else:
            page = self._of_services(bay, service, lines, since, pattern, cursor)
        fields: dict[str, object] = {
            "bay": bay.record.name, "runtime": bay.record.runtime, "lines": page.lines,
        }  # fmt: skip
        if page.cursor:
            fields["cursor"] = page.cursor
        if page.dropped:
            fields["dropped"] = page.dropped
        return LogsAnswer.model_validate(fields)

    def follow(
        self, bay: Bay, *, service: str | None, run: str | None, lines: int, job: Job
    ) -> Iterator[LogLine]:
        """The last lines and then every new one until the job is cancelled or the source ends."""
        if run is not None:
            yield from self._follow_run(bay, run, lines, job)
            return
        name = service or (bay.manifest.primary() or next(iter(bay.manifest.services), ""))
        _known_service(bay, name)
        for entry in bay.runtime.follow_logs(bay.ref, name, lines=lines, job=job):
            yield _line(bay, entry)

    # -- services --------------------------------------------------------------------------------------

    def _of_services(
        self,
        bay: Bay,
        service: str | None,
        lines: int,
        since: str | None,
        pattern: re.Pattern[str] | None,
        cursor: str | None,
    ) -> _Page:
        names = [service] if service else list(bay.manifest.services)
        if service:
            _known_service(bay, service)
        start = _position(cursor) or _moment(since)
        depth = None if pattern or start else lines
        entries: list[LogEntry] = []
        for name in names:
            entries += bay.runtime.logs(bay.ref, name, lines=depth or SEARCHED, since=start)
        entries.sort(key=lambda entry: entry.at)
        wanted = [entry for entry in entries if pattern is None or pattern.search(entry.text)]
        shown = wanted[:lines] if cursor else wanted[-lines:]
        last = shown[-1].at if shown else (entries[-1].at if entries else start)
        return _Page(
            [_line(bay, each) for each in shown], last, len(wanted) - len(shown) if not cursor else 0
        )

    # -- runs ------------------------------------------------------------------------------------------

    def _of_run(
        self, bay: Bay, run: str, lines: int, pattern: re.Pattern[str] | None, cursor: str | None
    ) -> _Page:
        path = self._run_log(bay, run)
        offset = _offset(cursor)
        with path.open("rb") as file:
            file.seek(offset)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1] if cursor else data
        texts = whole.decode("utf-8", "replace").splitlines()
        wanted = [text for text in texts if pattern is None or pattern.search(text)]
        shown = wanted[-lines:]
        return _Page(
            [_run_line(bay, text) for text in shown], f"@{offset + len(whole)}", len(wanted) - len(shown)
        )

    def _follow_run(self, bay: Bay, run: str, lines: int, job: Job) -> Iterator[LogLine]:
        path = self._run_log(bay, run)
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - TAIL_BYTES))
            rest = file.read()
            *whole, rest = rest.split(b"\n")
            for text in whole[-lines:]:
                yield _run_line(bay, text.decode("utf-8", "replace"))
            while True:
                over = self._over(run)
                rest += file.read()
                *whole, rest = rest.split(b"\n")
                for text in whole:
                    yield _run_line(bay, text.decode("utf-8", "replace"))
                if over:
                    if rest:
                        yield _run_line(bay, rest.decode("utf-8", "replace"))
                    return
                job.sleep(0.2)

    def _over(self, run: str) -> bool:
        record = self.parts.store.run(run)
        return record is None or record.status not in ("queued", "running")

    def _run_log(self, bay: Bay, run: str) -> Path:
        record = self.parts.store.run(run)
        if record is None or record.bay != bay.record.id:
            raise DevbayError(
                "unknown_run",
                f"bay {bay.record.name!r} has no run {run[:80]!r}",
                next="bay_run_task answers with a run's id",
            )
        path = Path(record.folder) / LOG_NAME
        if not path.is_file():
            raise DevbayError("no_output", f"run {run} has printed nothing yet", next="bay_run_result")
        return path


def _line(bay: Bay, entry: LogEntry) -> LogLine:
    return LogLine(service=entry.service, at=entry.at, text=_clean(bay, entry.text))


def _run_line(bay: Bay, text: str) -> LogLine:
    return LogLine(text=_clean(bay, text))


def _clean(bay: Bay, text: str) -> str:
    plain = ANSI.sub("", bay.scrub(text)).rstrip("\r")
    return plain if len(plain) <= MAX_TEXT else f"{plain[:MAX_TEXT]}... ({len(plain)} characters)"


def _known_service(bay: Bay, service: str) -> None:
    if service not in bay.manifest.services:
        raise DevbayError(
            "unknown_service",
            f"{service[:80]!r} is no service of bay {bay.record.name!r}",
            next=f"choose one of: {', '.join(bay.manifest.services) or 'there are none'}",
        )


def _pattern(grep: str | None) -> re.Pattern[str] | None:
    if grep is None:
        return None
    try:
        return re.compile(grep)
    except re.error as error:
        raise DevbayError(
            "bad_arguments", f"grep: {error}", next="write a regular expression, or escape it"
        ) from error


def _position(cursor: str | None) -> str | None:
    """A cursor of services' logs is the time of the last line."""
    if cursor is not None and not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z", cursor):
        raise DevbayError("bad_arguments", f"cursor: {cursor[:40]!r} is none", next="leave it out")
    return cursor


def _moment(since: str | None) -> str | None:
    """An age (`5m`) or an ISO 8601 time as RFC 3339 UTC."""
    if since is None:
        return None
    if age := AGE.fullmatch(since.strip()):
        seconds = int(age[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[age[2]]
        when = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=min(seconds, 10**8))
        return when.isoformat().replace("+00:00", "Z")
    try:
        when = datetime.datetime.fromisoformat(since)
    except ValueError as error:
        raise DevbayError(
            "bad_arguments", f"since: {since[:40]!r} is no time", next="write 30s, 5m, 2h or an ISO 8601 time"
        ) from error
    return when.astimezone(datetime.UTC).isoformat().replace("+00:00", "Z")


def _offset(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not re.fullmatch(r"@\d{1,15}", cursor):
        raise DevbayError("bad_arguments", f"cursor: {cursor[:40]!r} is none", next="leave it out")
    return int(cursor[1:])

"""What keepers write of a service's output, and what is read of it."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from devbay.errors import Cancelled
from devbay.jobs import Job
from devbay.runtimes.host import logfile, logwriter
from devbay.runtimes.host.logwriter import LONGEST_LINE, LogWriter
from tests.runtimes.host.conftest import Kept, eventually


def texts(folder: Path, lines: int | None = None) -> list[str]:
    return [entry.text for entry in logfile.tail(folder, "web", lines=lines)]


def test_lines_are_kept_whole_whatever_parts_they_come_in(tmp_path: Path) -> None:
    log = LogWriter(str(tmp_path))
    for part in (b"on", b"e\ntw", b"o\r\n\nthr", b"ee"):
        log.feed(part)
    assert texts(tmp_path) == ["one", "two", ""]
    log.flush()
    assert texts(tmp_path) == ["one", "two", "", "three"]


def test_each_line_has_a_time_of_its_own_in_order(tmp_path: Path) -> None:
    LogWriter(str(tmp_path)).feed(b"line\n" * 1000)
    times = [entry.at for entry in logfile.tail(tmp_path, "web", lines=None)]
    assert times == sorted(set(times)) and len(times) == 1000


def test_a_line_without_end_becomes_entries_that_split_no_character(tmp_path: Path) -> None:
    log = LogWriter(str(tmp_path))
    text = "x" + "\u00e9" * LONGEST_LINE
    for at in range(0, len(text.encode()), 1000):
        log.feed(text.encode()[at : at + 1000])
    log.flush()
    found = texts(tmp_path)
    assert "".join(found) == text and len(found) == 3
    assert all(len(one.encode()) <= LONGEST_LINE for one in found)


def test_the_files_stay_within_their_size_and_hold_the_newest(tmp_path: Path) -> None:
    log = LogWriter(str(tmp_path), limit=10_000)
    for number in range(2000):
        log.feed(b"line %d\n" % number)
    sizes = [path.stat().st_size for path in tmp_path.iterdir()]
    assert len(sizes) == 2 and max(sizes) <= 10_000
    found = texts(tmp_path)
    assert len(found) > 200
    assert found == [f"line {number}" for number in range(2000 - len(found), 2000)]


def test_a_full_disk_loses_lines_and_says_so_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = LogWriter(str(tmp_path))
    log.feed(b"before\n")
    write, room = os.write, [5]

    def full(handle: int, data: bytes) -> int:
        if not room:
            raise OSError(28, "No space left on device")
        return write(handle, data[: room.pop()])

    monkeypatch.setattr(logwriter.os, "write", full)
    log.feed(b"torn\n")
    log.feed(b"lost\n")
    monkeypatch.setattr(logwriter.os, "write", write)
    log.feed(b"after\n")
    assert texts(tmp_path) == ["before", "[devbay lost 2 lines here: they could not be written]", "after"]


def test_a_line_torn_by_a_killed_keeper_does_not_spoil_the_next(tmp_path: Path) -> None:
    LogWriter(str(tmp_path)).feed(b"whole\n")
    with (tmp_path / "log").open("ab") as file:
        file.write(b"2026-01-01T00:00:0")
    assert texts(tmp_path) == ["whole"]
    LogWriter(str(tmp_path)).feed(b"next\n")
    assert texts(tmp_path) == ["whole", "next"]


@pytest.mark.parametrize("lines", [0, 1, 3, 400, None])
def test_the_last_lines_come_from_both_files(tmp_path: Path, lines: int | None) -> None:
    log = LogWriter(str(tmp_path), limit=20_000)
    for number in range(900):
        log.feed(b"%d\n" % number)
    assert (tmp_path / "log.1").exists()
    found = texts(tmp_path, lines)
    assert found == [str(number) for number in range(900 - len(found), 900)]
    assert lines is None or len(found) == lines


@pytest.mark.parametrize("shown", [str, lambda at: at.replace("Z", "+00:00")])
def test_since_gives_only_later_lines(tmp_path: Path, shown: object) -> None:
    LogWriter(str(tmp_path)).feed(b"a\nb\nc\n")
    at = logfile.tail(tmp_path, "web", lines=None)[0].at
    found = logfile.tail(tmp_path, "web", lines=None, since=shown(at))  # type: ignore[operator]
    assert [entry.text for entry in found] == ["b", "c"]
    assert logfile.tail(tmp_path, "web", lines=None, since="2099-01-01T00:00:00Z") == []


def test_a_service_that_never_printed_has_no_lines(tmp_path: Path) -> None:
    assert logfile.tail(tmp_path / "none", "web", lines=10) == []
    found = logfile.follow(tmp_path / "none", "web", lines=10, job=Job(), is_over=lambda: True)
    assert list(found) == []


def test_following_gives_every_line_once_across_rotations(tmp_path: Path) -> None:
    log = LogWriter(str(tmp_path), limit=30_000)
    log.feed(b"early\n" * 5 + b"0\n")
    over = threading.Event()
    seen: list[str] = []

    def read() -> None:
        found = logfile.follow(tmp_path, "web", lines=1, job=Job(), is_over=over.is_set)
        seen.extend(entry.text for entry in found)

    reader = threading.Thread(target=read)
    reader.start()
    eventually(lambda: seen)
    for number in range(1, 3000):
        log.feed(b"%d\n" % number)
        if number % 500 == 0:  # a reader that lags more than a whole file behind has to lose lines
            eventually(lambda upto=str(number): seen[-1] == upto)
    over.set()
    reader.join()
    assert seen == [str(number) for number in range(3000)]


def test_following_ends_with_the_job(tmp_path: Path) -> None:
    LogWriter(str(tmp_path)).feed(b"one\n")
    job = Job()
    found = logfile.follow(tmp_path, "web", lines=5, job=job, is_over=lambda: False)
    assert next(found).text == "one"
    job.cancel()
    with pytest.raises(Cancelled):
        next(found)


def test_output_without_a_newline_is_cut_and_bounded(kept: Kept) -> None:
    kept.start("head -c 12000000 /dev/zero | tr '\\0' x; exit 0")
    kept.keepers.wait(kept.folder, kept.socket, Job())
    found = texts(kept.folder)
    assert set("".join(found)) == {"x"} and all(len(one) <= LONGEST_LINE for one in found)
    assert sum(path.stat().st_size for path in kept.folder.glob("log*")) < 2 * logwriter.ROTATED_AT + 100_000


def test_output_faster_than_it_is_written_loses_nothing(kept: Kept) -> None:
    kept.start("seq 1 150000")
    kept.keepers.wait(kept.folder, kept.socket, Job())
    assert texts(kept.folder) == [str(number) for number in range(1, 150001)]


def test_a_service_that_closes_its_output_goes_on(kept: Kept) -> None:
    kept.start("printf half; exec >&- 2>&-; exec sleep 60")
    eventually(lambda: "half" in kept.log)
    assert kept.state.state == "running"
    kept.stop()
    assert kept.state.exit_code == 143


def test_the_last_words_of_a_service_are_kept_without_a_newline(kept: Kept) -> None:
    kept.start("printf 'last words'")
    kept.keepers.wait(kept.folder, kept.socket, Job())
    assert texts(kept.folder) == ["last words"]

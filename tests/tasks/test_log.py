"""A run's log: scrubbed before it is stored, with its end in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from devbay.security.scrub import Scrubber
from devbay.tasks import log as log_module
from devbay.tasks.log import RunLog


def test_a_secret_split_over_two_chunks_is_stored_nowhere(tmp_path: Path) -> None:
    log = RunLog(tmp_path / "output.log", Scrubber({"db/password": "hunter2-very-long"}).stream)
    log.write(b"password is hunter2-")
    log.write(b"very-long, remember\nnext\n")
    log.close()
    stored = (tmp_path / "output.log").read_text()
    assert "hunter2-very-long" not in stored
    assert "[redacted:db/password]" in stored
    assert log.tail.endswith("next\n")


def test_the_tail_is_bounded_and_starts_at_a_whole_line(tmp_path: Path) -> None:
    log = RunLog(tmp_path / "output.log", Scrubber({}).stream)
    for number in range(20_000):
        log.write(b"line %d\n" % number)
    log.close()
    assert len(log.tail) <= log_module.TAIL_BYTES
    assert log.tail.startswith("line ")
    assert log.tail.endswith("line 19999\n")
    assert (tmp_path / "output.log").read_bytes().count(b"\n") == 20_000


def test_a_flood_does_not_fill_the_disk_and_the_end_is_still_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "MAX_LOG_BYTES", 1000)
    log = RunLog(tmp_path / "output.log", Scrubber({}).stream)
    for _ in range(100):
        log.write(b"x" * 99 + b"\n")
    log.write(b"the end\n")
    log.close()
    assert (tmp_path / "output.log").stat().st_size == 1000
    assert log.full
    assert log.tail.endswith("the end\n")


def test_a_secret_that_becomes_known_before_the_first_output_is_scrubbed(tmp_path: Path) -> None:
    known: dict[str, str] = {}
    log = RunLog(tmp_path / "output.log", lambda: Scrubber(known).stream())
    known["api/token"] = "resolved-after-the-log-was-opened"
    log.write(b"token resolved-after-the-log-was-opened\n")
    log.close()
    assert "resolved-after" not in (tmp_path / "output.log").read_text()

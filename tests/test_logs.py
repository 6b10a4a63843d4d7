"""Cursors of logs: what is none is refused by name, before an engine is asked."""

from __future__ import annotations

import pytest

from devbay.errors import DevbayError
from devbay.logs import _offset, _position


@pytest.mark.parametrize("cursor", ["../../etc", "", "2026", "@7", "2026-11-30T22:46:31Z\n"])
def test_a_cursor_that_is_no_time_is_refused(cursor: str) -> None:
    with pytest.raises(DevbayError) as caught:
        _position(cursor)
    assert caught.value.code == "bad_arguments"


def test_the_time_of_a_line_is_a_cursor_and_none_is_none() -> None:
    assert _position("2026-11-30T22:46:31.651123456Z") == "2026-11-30T22:46:31.651123456Z"
    assert _position(None) is None


@pytest.mark.parametrize("cursor", ["../../etc", "7", "@-1", "@"])
def test_a_cursor_of_a_run_is_a_place_in_its_log(cursor: str) -> None:
    with pytest.raises(DevbayError) as caught:
        _offset(cursor)
    assert caught.value.code == "bad_arguments"

"""Folders of bays are marked as unrelated where the file system knows that, and are plain ones elsewhere."""

import fcntl
import os
import struct
from pathlib import Path

import pytest

from devbay.runtimes.host.spread import GET_FLAGS, TOP, spread


def flags(folder) -> int:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        (found,) = struct.unpack("l", fcntl.ioctl(descriptor, GET_FLAGS, struct.pack("l", 0)))
    except OSError:
        pytest.skip("this file system has no such marks")
    finally:
        os.close(descriptor)
    return int(found)


def test_a_folder_is_marked_once_and_keeps_its_other_marks(tmp_path):
    before = flags(tmp_path)
    spread(tmp_path)
    spread(tmp_path)
    if flags(tmp_path) == before:
        pytest.skip("this file system takes no such mark")
    assert flags(tmp_path) == before | TOP


def test_a_file_system_that_knows_no_marks_is_left_alone():
    spread(Path("/proc/self"))

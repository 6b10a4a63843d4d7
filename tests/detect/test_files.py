import os
import time
from pathlib import Path

from devbay.detect import files
from devbay.detect.files import View


def names(view: View) -> list[str]:
    return [each.file for each in view.skipped]


def test_the_listing_is_sorted_and_leaves_out_what_tools_fill(repo):
    view = repo(
        {"b.txt": "", "a/z.txt": "", "node_modules/x/package.json": "{}", ".git/config": "", ".env": "X=1"}
    )
    assert view.files() == (".env", "a/z.txt", "b.txt")


def test_a_link_that_leaves_is_neither_listed_nor_read(repo, tmp_path: Path):
    (tmp_path / "secret.txt").write_text("outside")
    view = repo({"a.txt": "in"})
    (view.root / "out.txt").symlink_to(tmp_path / "secret.txt")
    (view.root / "folder").symlink_to(tmp_path)
    (view.root / "loop").symlink_to("loop")
    (view.root / "inner.txt").symlink_to("a.txt")
    view = View(view.root)
    assert view.files() == ("a.txt", "inner.txt")
    assert view.text("inner.txt") == "in"
    assert view.text("out.txt") is None
    assert view.text("folder/secret.txt") is None
    assert view.text("../secret.txt") is None
    assert view.text("/etc/passwd") is None
    assert "out.txt" in names(view)


def test_what_cannot_be_read_is_named(repo):
    view = repo({"a.txt": "x" * (files.MAX_TEXT + 1)})
    (view.root / "b.bin").write_bytes(b"\xff\xfe\x00")
    (view.root / "line\nbreak").write_text("")
    os.mkfifo(view.root / "pipe")
    view = View(view.root)
    assert view.text("a.txt") is None
    assert view.text("b.bin") is None
    assert view.text("pipe") is None
    assert names(view) == ["a.txt", "b.bin", "line\\nbreak"]


def test_a_byte_order_mark_is_no_part_of_the_text(repo):
    view = repo({})
    (view.root / "a.txt").write_bytes(b"\xef\xbb\xbfhello")
    assert View(view.root).text("./a.txt") == "hello"


def test_twenty_thousand_files_are_listed_well_below_a_second(tmp_path: Path):
    for folder in range(100):
        place = tmp_path / f"d{folder}"
        place.mkdir()
        for number in range(200):
            (place / f"f{number}.py").touch()
    began = time.perf_counter()
    view = View(tmp_path)
    assert len(view.files()) == 20_000
    assert time.perf_counter() - began < 60


def test_more_files_than_the_cap_are_said_to_be_left_out(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(files, "MAX_FILES", 3)
    for number in range(5):
        (tmp_path / f"{number}").touch()
    view = View(tmp_path)
    assert len(view.files()) == 3
    assert "only the first 3 files" in view.skipped[0].why


def test_a_folder_has_no_text(tmp_path):
    (tmp_path / "compose.yaml").mkdir()
    assert View(tmp_path).text("compose.yaml") is None

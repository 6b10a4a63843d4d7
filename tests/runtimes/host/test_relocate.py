"""What was made in one folder names the one that it is copied to, and binary files stay as they are."""

import os
import shutil
import subprocess
import sys

import pytest

from devbay.runtimes.host.relocate import NOTE, note, relocate


def test_texts_and_links_that_name_the_old_folder_name_the_new_one(tmp_path):
    made, now = tmp_path / "made", tmp_path / "now"
    (made / "venv/bin").mkdir(parents=True)
    script = made / "venv/bin/tool"
    script.write_text(f"#!{made}/venv/bin/python\nimport x  # {made}/worktree/src\n")
    script.chmod(0o555)
    (made / "venv/link").symlink_to(made / "worktree/src")
    (made / "venv/plain").write_text("nothing of the kind\n")
    note(made / "venv", made)
    shutil.copytree(made / "venv", now, symlinks=True)
    relocate(now, made / "venv", {"venv": now, "worktree": tmp_path / "bay"})
    assert (now / "bin/tool").read_text() == f"#!{now}/bin/python\nimport x  # {tmp_path}/bay/src\n"
    assert (now / "bin/tool").stat().st_mode & 0o777 == 0o555
    assert str((now / "link").readlink()) == f"{tmp_path}/bay/src"
    assert (made / "venv" / NOTE).is_file()


def test_a_binary_file_that_holds_the_path_is_left_alone(tmp_path):
    made, now = tmp_path / "made", tmp_path / "now"
    made.mkdir()
    data = b"\x7fELF\0" + os.fsencode(made) + b"/venv\0"
    (made / "program").write_bytes(data)
    note(made, made)
    shutil.copytree(made, now)
    relocate(now, made, {"venv": now})
    assert (now / "program").read_bytes() == data


def moved(tmp_path, name, text, folder):
    """The script `name` with a text about `tmp_path/made`, as it is in a copy of its folder."""
    made, now = tmp_path / "made", tmp_path / folder
    (made / "venv").mkdir(parents=True)
    (made / "venv" / name).write_text(text.format(made=made))
    (made / "venv" / name).chmod(0o755)
    note(made / "venv", made)
    now.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(made / "venv", now, symlinks=True)
    relocate(now, made / "venv", {"venv": now, "worktree": tmp_path / "a bay"})
    return now / name


@pytest.mark.parametrize("folder", ["with a space", "deep/" + "er/" * 100 + "down"])
def test_a_script_runs_also_where_no_system_reads_its_interpreters_path(tmp_path, folder):
    script = moved(tmp_path, "tool", "#!{made}/venv/python -I\nimport sys\nprint(sys.argv[1:])\n", folder)
    (script.parent / "python").symlink_to(sys.executable)
    done = subprocess.run([script, "a b", "c"], capture_output=True, text=True, check=True)
    assert done.stdout == "['a b', 'c']\n"


def test_a_path_in_a_url_is_put_right_in_the_urls_spelling(tmp_path):
    (tmp_path / "r%d d").mkdir()
    top = tmp_path / "r%d d"
    text = '{{"url": "file://' + str(top).replace("%", "%25").replace(" ", "%20") + '/made/worktree"}}'
    record = moved(top, "direct_url.json", text, "now")
    assert record.read_text().endswith('/r%25d%20d/a%20bay"}')

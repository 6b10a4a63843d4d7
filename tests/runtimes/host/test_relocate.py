"""What was made in one folder names the one that it is copied to, and binary files stay as they are."""

import os
import shutil

from devbay.runtimes.host.relocate import NOTE, note, relocate


def test_texts_and_links_that_name_the_old_folder_name_the_new_one(tmp_path):
    made, now = tmp_path / "made", tmp_path / "now here"
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

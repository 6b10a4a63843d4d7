import os
import socket

import pytest

from devbay.errors import Cancelled, DevbayError
from devbay.jobs import Job
from devbay.runtimes.base import BuildSpec
from devbay.runtimes.docker.buildcontext import context_digest, read_context


@pytest.fixture
def tree(tmp_path):
    """A worktree `w` with a Dockerfile and two files, and a folder outside of it."""
    worktree = tmp_path / "w"
    (worktree / "src").mkdir(parents=True)
    (worktree / "Dockerfile").write_text("FROM busybox\nCOPY . /app\n")
    (worktree / "src/a.py").write_text("a = 1\n")
    (worktree / "notes.md").write_text("notes\n")
    (tmp_path / "outside").mkdir()
    return worktree


def digest(tree, platform=None, **build):
    spec = BuildSpec(context=tree / build.pop("context", "."), **build)
    return context_digest(read_context(spec, tree), spec, platform, Job())


def changed(tree, change, **build):
    before = digest(tree, **build)
    change()
    return digest(tree, **build) != before


def test_the_same_content_elsewhere_has_the_same_digest(tree, tmp_path):
    other = tmp_path / "elsewhere" / "copy"
    (other / "src").mkdir(parents=True)
    for name in ("Dockerfile", "src/a.py", "notes.md"):
        (other / name).write_bytes((tree / name).read_bytes())
        os.utime(other / name, (1, 1))
    assert digest(tree) == digest(other)
    assert len(digest(tree)) == 12


@pytest.mark.parametrize(
    "change",
    [
        lambda w: (w / "src/a.py").write_text("a = 2\n"),
        lambda w: (w / "src/a.py").chmod(0o755),
        lambda w: (w / "src/a.py").rename(w / "src/b.py"),
        lambda w: (w / "Dockerfile").write_text("FROM busybox:1.36\n"),
        lambda w: (w / "empty").mkdir(),
        lambda w: (w / "link").symlink_to("src"),
        lambda w: (w / "src").chmod(0o700),
    ],
)
def test_what_is_sent_decides(tree, change):
    assert changed(tree, lambda: change(tree))


def test_a_links_target_decides_not_what_it_points_to(tree, tmp_path):
    outside = tmp_path / "outside/secret"
    outside.write_text("one")
    (tree / "link").symlink_to(outside)
    assert not changed(tree, lambda: outside.write_text("two"))
    (tree / "link").unlink()
    assert changed(tree, lambda: (tree / "link").symlink_to("/elsewhere"))


def test_target_arguments_and_platform_decide(tree):
    found = {
        digest(tree),
        digest(tree, target="dev"),
        digest(tree, args={"A": "1"}),
        digest(tree, args={"A": "2"}),
        digest(tree, platform="linux/arm64"),
    }
    assert len(found) == 5


def test_ignored_files_do_not_decide(tree):
    (tree / ".dockerignore").write_text("*.md\n!kept.md\n")
    assert not changed(tree, lambda: (tree / "notes.md").write_text("other"))
    assert changed(tree, lambda: (tree / "kept.md").write_text("new"))


def test_what_is_taken_back_below_an_ignored_folder_decides(tree):
    (tree / ".dockerignore").write_text("src\n!src/a.py\n")
    assert changed(tree, lambda: (tree / "src/a.py").write_text("a = 3"))
    assert not changed(tree, lambda: (tree / "src/b.py").write_text("b"))


def test_the_dockerfiles_own_ignore_file_comes_first(tree):
    (tree / ".dockerignore").write_text("src\n")
    (tree / "Dockerfile.dockerignore").write_text("*.md\n")
    assert changed(tree, lambda: (tree / "src/a.py").write_text("a = 4"))
    assert not changed(tree, lambda: (tree / "notes.md").write_text("other"))


def test_git_and_other_bays_do_not_decide(tree):
    (tree / ".devbay/bays/other").mkdir(parents=True)
    assert not changed(tree, lambda: (tree / ".git").write_text("gitdir: /somewhere"))
    assert not changed(tree, lambda: (tree / "src/.git").write_text("gitdir: /somewhere"))
    assert not changed(tree, lambda: (tree / ".devbay/bays/other/file").write_text("x"))


def test_git_decides_where_the_dockerfile_names_it(tree):
    (tree / "Dockerfile").write_text("FROM busybox\nCOPY .git /git\n")
    assert changed(tree, lambda: (tree / ".git").write_text("gitdir: /somewhere"))


def test_naming_gitignore_is_not_naming_git(tree):
    (tree / "Dockerfile").write_text("FROM busybox\nCOPY .gitignore app.git /x\n")
    assert not changed(tree, lambda: (tree / ".git").write_text("gitdir: /somewhere"))


def test_a_socket_in_the_context_is_no_problem(tree, monkeypatch):
    monkeypatch.chdir(tree)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("s")
        assert digest(tree)


@pytest.mark.parametrize(
    ("build", "says"),
    [
        ({"context": "missing"}, "does not exist"),
        ({"context": "notes.md"}, "no folder|does not exist"),
        ({"dockerfile": "Other"}, "does not exist"),
        ({"dockerfile": "src"}, "no Dockerfile"),
        ({"context": "out"}, "leads out of the worktree"),
        ({"dockerfile": "out/Dockerfile"}, "leads out of the worktree"),
        ({"context": "src", "dockerfile": "../../outside/Dockerfile"}, "leads out of the worktree"),
    ],
)
def test_a_build_cannot_start_from_what_is_missing_or_outside(tree, tmp_path, build, says):
    (tmp_path / "outside/Dockerfile").write_text("FROM scratch\n")
    (tree / "out").symlink_to(tmp_path / "outside")
    with pytest.raises(DevbayError, match=says) as raised:
        digest(tree, **build)
    assert raised.value.code == "build_context"


def test_a_dockerfile_may_lie_beside_its_context(tree):
    assert digest(tree, context="src", dockerfile="../Dockerfile")


def test_an_ignore_file_that_is_a_link_out_is_not_read(tree, tmp_path):
    (tmp_path / "outside/ignore").write_text("*\n")
    (tree / ".dockerignore").symlink_to(tmp_path / "outside/ignore")
    with pytest.raises(DevbayError, match="leads out of the worktree"):
        digest(tree)


def test_a_wrong_pattern_names_the_ignore_file(tree):
    (tree / ".dockerignore").write_text("a[\n")
    with pytest.raises(DevbayError, match="ignore file"):
        digest(tree)


def test_hashing_can_be_cancelled(tree):
    job = Job()
    job.cancel()
    spec = BuildSpec(context=tree)
    with pytest.raises(Cancelled):
        context_digest(read_context(spec, tree), spec, None, job)

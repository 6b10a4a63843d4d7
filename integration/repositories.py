"""Real git repositories to make bays of."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from devbay.templates import template

IDENTITY = ("-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false")
FOREIGN = Path(__file__).parent / "foreign"

TINY = """\
version: 1
project: tiny
services:
  web:
    image: python:3.13-slim
    start: [python, -m, http.server, "8080", -b, 0.0.0.0, -d, www]
    port: 8080
    health: {http: /}
  helper:
    image: python:3.13-slim
    start: [sh, -c, "trap 'exit 0' TERM; while :; do sleep 0.2; done"]
    health: {process: true}
tasks:
  hello:
    run: [echo, hello]
    needs: []
  with-web:
    run: [python, -c, "FETCH"]
    needs: [web]
    env: {WEB: "${bay.web.url}"}
""".replace(
    "FETCH",
    "import os, urllib.request as u; print(u.urlopen(os.environ['WEB']).read().decode().strip())",
)
"""Runs on both runtimes."""


def git(folder: Path, *words: str, code: int | None = 0) -> str:
    """The output of git in a folder; fails unless it exits with `code` (None: any)."""
    done = subprocess.run(["git", *IDENTITY, *words], cwd=folder, capture_output=True, text=True)
    assert code is None or done.returncode == code, f"git {' '.join(words)}: {done.stderr}"
    return done.stdout.strip()


def repository(folder: Path, files: dict[str, str]) -> Path:
    """A new repository in `folder` with one commit of `files` on the branch main."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    write(folder, files)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "Start")
    return folder


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def tiny(folder: Path, manifest: str = TINY, **files: str) -> Path:
    """Two services, so small that a bay of them is up in a second."""
    return repository(folder, {"devbay.yaml": manifest, "www/index.html": "tiny\n", **files})


def copied_from(folder: Path, source: Path) -> Path:
    """A repository with the files of `source`."""
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns("__pycache__", ".pytest_cache"))
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "Start")
    return folder


def shop(folder: Path) -> Path:
    """The demo: Postgres, an API, a web page."""
    return copied_from(folder, template("demo"))

"""What `devbay init` and `repo_init` do: propose, show the difference, write, apply parts."""

from __future__ import annotations

import difflib
import os
import tempfile
from pathlib import Path

from devbay.detect import apply as parts
from devbay.detect.answers import EvidenceInfo, InitAnswer, Undecided
from devbay.detect.files import View
from devbay.detect.propose import propose
from devbay.detect.verdict import Proposal, settle
from devbay.errors import WORK_FAILED, DevbayError
from devbay.manifest import Loaded, load
from devbay.manifest.load import MAX_DIAGNOSTICS

NAME = "devbay.yaml"


def init(
    root: Path,
    *,
    write: bool = False,
    force: bool = False,
    wanted: tuple[str, ...] = (),
    only_propose: bool = False,
) -> InitAnswer:
    """Propose a manifest for the checkout `root`, and write it where asked.

    A file that exists is replaced with `force` only; otherwise the answer has the difference. wanted: parts
    (`services/web`) that are taken over into it. Raises `no_directory`, `bare_repository`, `unknown_part`,
    `bad_manifest_file` and `cannot_write`.
    """
    _check(root)
    view = View(root)
    proposal = settle(propose(view, root.resolve().name), root)
    existing = None if only_propose else _existing(root)
    path = existing.path if existing and existing.path else root / NAME
    text, written, difference, step = (
        proposal.yaml,
        False,
        None,
        "read it, then `devbay init` to write devbay.yaml",
    )
    if existing is not None and existing.path is not None:
        old = existing.path.read_text("utf-8", "replace")
        new = parts.take_over(old, proposal.yaml, wanted) if wanted else proposal.yaml
        difference = _diff(old, new, path.name)
        step = f"{path.name} stays as it is: `--apply PATH` takes over a part, `--force` replaces it"
        if wanted or (write and force):
            _write(path, new)
            written, step = True, "devbay validate, then devbay new"
    elif wanted:
        raise DevbayError("no_manifest", f"{root} has no {NAME} to apply parts to", next="devbay init")
    elif write:
        _write(path, text)
        written, step = True, "decide what is open in it, then devbay new"
    return _answer(proposal, view, path, written=written, difference=difference, step=step)


def _check(root: Path) -> None:
    if not root.is_dir():
        raise DevbayError("no_directory", f"{root} is no folder", next="name a checkout")
    bare = (root / "HEAD").is_file() and (root / "objects").is_dir() and not (root / ".git").exists()
    if bare:
        text = f"{root} is a bare repository, which has no files"
        raise DevbayError("bare_repository", text, next="git worktree add DIR, then devbay init DIR")


def _existing(root: Path) -> Loaded | None:
    try:
        return load(root)
    except DevbayError as error:
        if error.code != "no_manifest":
            raise
    return None


def _diff(old: str, new: str, name: str) -> str:
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), name, f"{name} (proposed)", lineterm="")
    return "\n".join(lines)


def _write(path: Path, text: str) -> None:
    """Whole or not at all, beside the old file and then in its place."""
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        temporary = Path(name)
        temporary.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o644)
        temporary.replace(path)
    except OSError as error:
        text = f"{path} cannot be written: {error.strerror}"
        raise DevbayError("cannot_write", text, next="check its folder", exit_code=WORK_FAILED) from error


def _answer(
    proposal: Proposal, view: View, path: Path, *, written: bool, difference: str | None, step: str
) -> InitAnswer:
    draft, loaded = proposal.draft, proposal.loaded
    undecided = [
        Undecided(
            about=each.about, question=each.text, candidates=list(each.candidates),
            source=str(each.origin) if each.origin else None,
        )
        for each in draft.questions
    ]  # fmt: skip
    fields: dict[str, object] = {
        "yaml": proposal.yaml,
        "manifest": draft.data(),
        "evidence": [EvidenceInfo(path=each.path, source=each.source) for each in draft.evidence],
        "undecided": undecided,
        "diagnostics": [
            each.info() for each in loaded.diagnostics[:MAX_DIAGNOSTICS] if each.severity != "notice"
        ],
        "warnings": [f"skipped {each.file}: {each.why}" for each in view.skipped],
        "notes": list(draft.notes),
        "valid": loaded.valid,
        "written": written,
        "path": str(path),
        "next": step,
    }
    if difference is not None:
        fields["diff"] = difference
    return InitAnswer.model_validate(fields)

"""What `devbay init` and `repo_init` do: propose, show the difference, write, apply parts."""

from __future__ import annotations

import difflib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from devbay.detect import apply as parts
from devbay.detect.answers import EvidenceInfo, InitAnswer, Undecided, Verification
from devbay.detect.apply import plain_data
from devbay.detect.files import View
from devbay.detect.propose import propose
from devbay.detect.verdict import Proposal, settle
from devbay.detect.verify import unstamped
from devbay.errors import WORK_FAILED, DevbayError
from devbay.manifest import Loaded, load
from devbay.manifest.load import MAX_DIAGNOSTICS

NAME = "devbay.yaml"


class Verified(Protocol):
    """What trying a manifest came to. text: as verified, repaired where it had to be."""

    @property
    def text(self) -> str: ...

    @property
    def verification(self) -> Verification: ...

    @property
    def ok(self) -> bool: ...


Verify = Callable[[str], Verified]


def init(
    root: Path,
    *,
    write: bool = False,
    force: bool = False,
    wanted: tuple[str, ...] = (),
    only_propose: bool = False,
    verify: Verify | None = None,
) -> InitAnswer:
    """Propose a manifest for the checkout `root`, and write it where asked.

    A file that exists is replaced with `force` only; otherwise the answer has the difference. wanted: parts
    (`services/web`) that are taken over into it. verify: tries the manifest that is to be written, or the one
    that exists; what holds is marked as verified where it is written, a file that stays gets that mark only.
    Raises `no_directory`, `bare_repository`, `unknown_part`, `bad_manifest_file` and `cannot_write`.
    """
    _check(root)
    view = View(root)
    proposal = settle(propose(view, root.resolve().name), root)
    existing = None if only_propose else _existing(root)
    path = existing.path if existing and existing.path else root / NAME
    old = existing.path.read_text("utf-8", "replace") if existing and existing.path else None
    if old is None and wanted:
        raise DevbayError("no_manifest", f"{root} has no {NAME} to apply parts to", next="devbay init")
    new = parts.take_over(old, proposal.yaml, wanted) if wanted and old is not None else proposal.yaml
    replaces = old is None or bool(wanted) or (write and force)
    tried = new if replaces or old is None else old
    writes = bool(wanted) or (write and replaces)
    verified = None if verify is None else verify(tried)
    if verified is not None and verified.verification.outcome == "running":
        writes = False
    elif verified is not None and verified.ok:
        new = verified.text
        # a file of the user's gets the line that says so, and no repair that he did not ask for
        writes = writes or (write and unstamped(new) == unstamped(tried))
    difference = None if old is None else _diff(old, new, path.name)
    if writes:
        _write(path, new)
    step = _step(path.name, writes, old is not None, verified)
    return _answer(proposal, view, path, written=writes, difference=difference, step=step, verified=verified)


def _step(name: str, written: bool, existed: bool, verified: Verified | None) -> str:
    outcome = verified.verification.outcome if verified is not None else None
    if outcome == "running":
        return "repeat the same call: it waits for this verification"
    if outcome == "approval_required":
        file = "" if written or existed else f"write {name} (`devbay init`), then "
        return f"{file}a person runs `devbay approve`; then verify again"
    if outcome not in (None, "verified"):
        return f"read `verification`, correct {name if written or existed else 'what it names'}, verify again"
    if written:
        return "devbay validate, then devbay new" if existed else "decide what is open in it, then devbay new"
    if existed and outcome == "verified":
        return f"{name} stays as it is: take over what `diff` shows, if anything"
    if existed:
        return f"{name} stays as it is: `--apply PATH` takes over a part, `--force` replaces it"
    return "read it, then `devbay init` to write devbay.yaml"


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
    proposal: Proposal,
    view: View,
    path: Path,
    *,
    written: bool,
    difference: str | None,
    step: str,
    verified: Verified | None,
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
    if verified is not None:
        fields |= {"verified": verified.ok, "verification": verified.verification}
        if verified.ok:
            fields |= {"yaml": verified.text, "manifest": plain_data(verified.text)}
    return InitAnswer.model_validate(fields)

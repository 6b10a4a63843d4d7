"""Small repositories with the right answers; `corpus/README.md` says what a truth holds."""

import importlib.util
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from devbay.detect.init import init

CORPUS = Path(__file__).parent / "corpus"
CASES = sorted(path.parent.name for path in CORPUS.glob("*/truth.json"))


def _score() -> Any:
    spec = importlib.util.spec_from_file_location("corpus_score", CORPUS / "score.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SCORE = _score()


@pytest.mark.parametrize("case", CASES)
def test_a_proposal_holds_what_the_repository_says_and_nothing_that_is_wrong(
    case: str, tmp_path: Path
) -> None:
    truth = json.loads((CORPUS / case / "truth.json").read_text())
    root = tmp_path / case
    shutil.copytree(CORPUS / case / "tree", root, symlinks=True)
    answer = init(root / (truth.get("run_in") or "")).as_json()
    wrong, points = SCORE.grade(truth, answer)
    assert points > 1
    assert wrong == []
    assert answer["valid"] and "egress" not in answer["yaml"]


def test_every_case_of_the_corpus_is_there() -> None:
    assert len(CASES) >= 26
    assert (CORPUS / "syn-procfile" / "tree" / ".env").exists(), "the bait belongs to the cases"

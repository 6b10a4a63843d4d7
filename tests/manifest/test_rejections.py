"""Every rejection names its line, its path of keys, its rule, and what to write instead."""

from __future__ import annotations

import pytest

from devbay.manifest import parse
from tests.manifest import rejections
from tests.manifest.rejections import Rejection


@pytest.mark.parametrize("case", rejections.ALL, ids=lambda case: case.name)
def test_is_refused_with_line_path_rule_and_fix(case: Rejection) -> None:
    loaded = parse(case.text, source="devbay.yaml")
    assert loaded.parses
    assert not loaded.valid
    found = [(each.line, each.path, each.rule) for each in loaded.errors]
    assert (case.line, case.path, case.rule) in found
    for each in loaded.errors:
        assert each.file == "devbay.yaml"
        assert each.fix
        assert each.message
        assert each.column >= 1


@pytest.mark.parametrize("case", rejections.ALL, ids=lambda case: case.name)
def test_nothing_else_is_wrong_with_it(case: Rejection) -> None:
    """The table is precise: a case fails for its own reason only."""
    others = [each for each in parse(case.text).errors if (each.path, each.rule) != (case.path, case.rule)]
    assert others == []


def test_names_are_unique() -> None:
    names = [case.name for case in rejections.ALL]
    assert len(names) == len(set(names))

"""Every form of a variable against one that is set, blank and not set (the Compose Specification's table)."""

from __future__ import annotations

import pytest

from devbay.detect.compose.interpolation import Found, Needed, substitute

KNOWN = {"SET": "s", "BLANK": ""}


@pytest.mark.parametrize(
    ("form", "when_set", "when_blank", "when_unset"),
    [
        ("$V", "s", "", ""),
        ("${V}", "s", "", ""),
        ("${V-d}", "s", "", "d"),
        ("${V:-d}", "s", "d", "d"),
        ("${V+r}", "r", "r", ""),
        ("${V:+r}", "r", "", ""),
        ("${V?e}", "s", "", ""),
        ("${V:?e}", "s", "", ""),
        ("a${V:-${V:-e}f}g", "asg", "aefg", "aefg"),
        ("$$X", "$X", "$X", "$X"),
    ],
)
def test_a_form_gives_what_the_specification_says(
    form: str, when_set: str, when_blank: str, when_unset: str
) -> None:
    for name, expected in (("SET", when_set), ("BLANK", when_blank), ("UNSET", when_unset)):
        assert substitute(form.replace("V", name), KNOWN, Found()) == expected


def test_what_is_missing_is_told_once_and_apart() -> None:
    found = Found()
    substitute("$A ${A} ${B:-x} ${C:?for ${B}} ${BLANK:?blank} ${SET:?fine} ${D:+y}", KNOWN, found)
    assert found.unset == ["A"]
    assert found.needed == [Needed("C", "for "), Needed("BLANK", "blank")]
    assert found.defaults == {"B": "x"}


@pytest.mark.parametrize("text", ["${}", "${a b}", "${1a}", "a ${-x}", "${A:-a\nb}", "${A:-" * 60 + "}" * 60])
def test_what_is_no_template_stays_as_it_is(text: str) -> None:
    found = Found()
    assert substitute(text, KNOWN, found) == text
    assert found.broken


def test_a_long_line_of_variables_is_read_to_its_end() -> None:
    found = Found()
    assert substitute("${A:-x}" * 1900, KNOWN, found) == "x" * 1900
    assert not found.broken

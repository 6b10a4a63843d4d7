"""Names of bays: what is allowed, what a branch becomes, and the label of a site."""

from __future__ import annotations

import pytest

from devbay.errors import DevbayError
from devbay.names import bay_name_for_branch, check_bay_name, name_problem, site_label

BAD = ["", ".", "..", "../..", "a" * 300, "a" * 41, "Login", "añb", "a--b", "-a", "a-", "a_b", "a b", "a/b",
       "xn", "a\n", "a.b", "--force", "ab-bay", "\x00"]  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_bad_name_is_refused_with_a_reason(name: str) -> None:
    with pytest.raises(DevbayError) as caught:
        check_bay_name(name)
    assert caught.value.code == "bad_name"
    assert caught.value.next


@pytest.mark.parametrize("name", ["a", "a1", "login-fix", "0", "a" * 40])
def test_a_good_name_passes(name: str) -> None:
    assert check_bay_name(name) == name


@pytest.mark.parametrize(
    ("branch", "name"),
    [
        ("login", "login"),
        ("feature/Login_Fix", "login-fix"),
        ("user/über/größe", "groe"),
        ("release/1.2.3", "1-2-3"),
        ("fix--double", "fix-double"),
    ],
)
def test_a_branch_becomes_a_readable_name(branch: str, name: str) -> None:
    assert bay_name_for_branch(branch, ()) == name


@pytest.mark.parametrize("branch", ["日本語", "x" * 300, "a/" + "y" * 60, "ab-bay", "xn", "___", "-"])
def test_any_branch_gets_an_allowed_name(branch: str) -> None:
    name = bay_name_for_branch(branch, ())
    assert name_problem(name) is None
    assert check_bay_name(name)


def test_a_taken_name_gets_hex_of_the_branch_and_two_branches_differ() -> None:
    first = bay_name_for_branch("a/login", {"login"})
    second = bay_name_for_branch("b/login", {"login", first})
    assert first.startswith("login-")
    assert first != second


def test_the_label_of_a_site_is_at_most_63_characters_and_stays_unique() -> None:
    long = site_label("a" * 40, "b" * 40)
    assert len(long) <= 63
    assert long != site_label("a" * 40, "b" * 39 + "c")
    assert site_label("login", "shop") == "login--shop"


def test_a_bay_of_two_characters_has_no_hyphens_in_places_three_and_four() -> None:
    assert site_label("ab", "shop") == "ab-bay--shop"

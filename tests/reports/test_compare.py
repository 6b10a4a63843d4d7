import pytest

from devbay.reports.compare import compared


@pytest.mark.parametrize(
    ("text", "expected", "actual"),
    [
        ("AssertionError: mugs are wrong\nassert 4 == 5", "5", "4"),
        ("AssertionError: 120 != 100 : half of 200", "100", "120"),
        ("AssertionError: Lists differ: [1, 2] != [1, 3]", "[1, 3]", "[1, 2]"),
        ("expect(received).toBe(expected)\n\nExpected: 3\nReceived: 2", "3", "2"),
        ("AssertionError: expected 7 to be 5 // Object.is equality", "5", "7"),
        ("expected: <5> but was: <2>", "<5>", "<2>"),
        ("\nexpected: 91\n     got: 90\n", "91", "90"),
        ("Failed asserting that 350 is identical to 360.", "360", "350"),
        ("assertion `left == right` failed\n  left: 4\n right: 5", "5", "4"),
        ("Expected: 4\n  Actual: 3", "4", "3"),
        ("Total() = 7, want 8", "8", "7"),
    ],
)
def test_both_values_are_read_where_the_text_names_them(text: str, expected: str, actual: str) -> None:
    assert compared(text) == (expected, actual)


@pytest.mark.parametrize(
    "text",
    [
        "KeyError: 'x'",
        "assert 4 != 4",
        "assert 'a == b' in text",
        "expected 70000 to be refused",
        "assert 'line one...three' == 'line one...three'",
        "  actual: [Array],\n  expected: { a: 1 },",
        "assert " + "x" * 5000 + " == 1",
    ],
)
def test_half_a_value_is_none(text: str) -> None:
    assert compared(text) == (None, None)

"""JSON documents in a text that comes in pieces."""

import json

from hypothesis import given
from hypothesis import strategies as st

from devbay.reports.json_walk import END, Walk

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(max_size=6), _JSON, max_size=5), st.integers(1, 7))
def test_the_members_of_a_document_are_the_same_however_it_is_cut_into_pieces(
    document: dict[str, object], size: int
) -> None:
    text = "noise\n" + json.dumps(document) + "\n"
    walk = Walk((text[at : at + size] for at in range(0, len(text), size)), lambda path: not path)
    assert {path[0]: value for path, value in walk if path != END} == document
    assert walk.seen
    assert walk.complete


def test_a_backslash_at_the_end_of_a_piece_escapes_the_next_character() -> None:
    walk = Walk(['{"a": "x\\', '" y", "b": 1}'], lambda path: not path)
    assert [pair for pair in walk if pair[0] != END] == [(("a",), 'x" y'), (("b",), 1)]


def test_documents_follow_each_other_and_a_broken_one_does_not_hide_the_next() -> None:
    walk = Walk(['{"a": 1}\nhello\n{"b": }\n{"c": 3}\n'], lambda path: not path)
    assert [value for path, value in walk if path != END] == [1, 3]
    assert not walk.complete

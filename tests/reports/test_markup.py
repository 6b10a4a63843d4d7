from devbay.reports.markup import Token, tokens


def pieces_of(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def joined(found: list[Token]) -> list[tuple[str, str]]:
    """Kinds with names or text; neighbouring texts as one, since their borders mean nothing."""
    result: list[tuple[str, str]] = []
    for token in found:
        if token.kind == "text" and result and result[-1][0] == "text":
            result[-1] = ("text", result[-1][1] + token.text)
        else:
            result.append((token.kind, token.text or token.name))
    return result


DOCUMENT = """<?xml version="1.0"?><!-- <failure> --><a:b c="1 > 0" d='"'>x &lt; y &amp;amp; &nope; &#x1b;[1m
<![CDATA[</a> & ]]]]><![CDATA[> end]]> a < b << <e/></a:b>"""


def test_the_size_of_the_pieces_does_not_matter() -> None:
    whole = joined(list(tokens([DOCUMENT])))
    assert whole == [
        ("start", "b"),
        ("text", "x < y &amp; &nope; \x1b[1m\n</a> & ]]> end a < b << "),
        ("start", "e"),
        ("end", "b"),
    ]
    for size in range(1, 40):
        assert joined(list(tokens(pieces_of(DOCUMENT, size)))) == whole, size


def test_attributes_keep_their_newlines_and_the_last_of_a_name_is_ignored() -> None:
    start = next(iter(tokens(["<x a='1\n2&#10;3' a=\"4\" b = c/>"])))
    assert start.attributes == {"a": "1\n2\n3", "b": "c"}
    assert start.closed


def test_a_document_type_declaration_ends_the_reading() -> None:
    text = '<!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><x>&b;</x>'
    assert [token.kind for token in tokens([text])] == ["doctype"]


def test_references_to_what_is_no_character_are_replaced() -> None:
    found = list(tokens(["&#0;&#xD800;&#x110000;&#99999999999999;"]))
    assert joined(found) == [("text", "\ufffd\ufffd\ufffd&#99999999999999;")]


def test_a_text_that_ends_in_a_tag_or_in_cdata_says_so() -> None:
    for text in ("<a", "<a b='c", "<a><![CDATA[x", "<!-- x", "<"):
        assert list(tokens([text]))[-1].kind == "cut", text

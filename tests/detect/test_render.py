from hypothesis import given
from hypothesis import strategies as st

from devbay.detect import render
from devbay.detect.draft import Draft
from devbay.detect.facts import Origin
from devbay.detect.verdict import settle
from devbay.manifest import source


def read(text: str) -> object:
    return source.read(text).data


@given(st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), max_size=40))
def test_any_text_comes_back_as_it_was(text: str):
    assert read(f"a: {render.scalar(text)}\nb: {render.flow([text])}\nc: {render.flow({'k': text})}\n") == {
        "a": text, "b": [text], "c": {"k": text},
    }  # fmt: skip


def test_texts_that_yaml_reads_as_something_else_are_quoted():
    for text in (
        "yes",
        "0x1F",
        "1e3",
        "12:30:45",
        "null",
        "~",
        "- a",
        "a: b",
        "a #b",
        "",
        "-g",
        "@x",
        "2024-01-01",
    ):
        assert render.scalar(text).startswith('"'), text
    for text in ("npm", "node:22-slim", "./api", "/srv/app", "a_b.c"):
        assert render.scalar(text) == text


def draft() -> Draft:
    made = Draft("shop")
    made.put(("services", "web", "image"), "python:3.12-slim", Origin("a\nb.yml", 3, "image"))
    made.put(("services", "web", "port"), 8000, None)
    made.put(("services", "web", "health"), {"tcp": 8000}, None)
    made.put(("services", "web", "env", "A"), "1", "x")
    made.put(("tasks", "t", "run"), ["sh", "-c", "a\nb"], None)
    made.put(("tasks", "t", "needs"), [], None)
    made.ask("services", "what?\nmore", "a", "b")
    made.note("x\ny: [")
    return made


def test_each_line_names_its_source_and_no_source_breaks_a_line():
    text = render.yaml(draft())
    assert "image: python:3.12-slim  # a b.yml:3 image" in text
    assert "# - services: what? more (candidates: a; b)" in text
    assert settle(draft(), None).loaded.valid


def test_the_same_draft_is_the_same_text():
    assert render.yaml(draft()) == render.yaml(draft())


def test_what_the_manifest_refuses_is_taken_out_and_asked_about():
    made = draft()
    made.put(("services", "web", "env", "KEY"), "ghp_" + "a1B2" * 10, None)
    made.put(("services", "web", "user"), "nobody", None)
    made.put(("services", "web", "start"), ["run", "ghp_" + "a1B2" * 10], None)
    made.put(("services", "bad", "image"), "NOT AN IMAGE", None)
    made.put(("services", "web", "needs"), ["bad"], None)
    made.put(("tasks", "u", "run"), ["x"], None)
    made.put(("tasks", "u", "needs"), ["bad"], None)
    proposal = settle(made, None)
    assert proposal.loaded.valid, proposal.loaded.errors
    assert "ghp_" not in proposal.yaml
    assert made.services["web"]["env"]["KEY"] == "${secret:key}"
    assert "user" not in made.services["web"] and "bad" not in made.services
    asked = {question.about for question in made.questions}
    assert {"services/web/env/KEY", "services/web/user", "services/bad"} <= {
        about.split("/image")[0] for about in asked
    }

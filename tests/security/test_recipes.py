"""What of a makefile, justfile or package.json bears on a target: its rules and all that is no rule."""

from __future__ import annotations

import time

import pytest

from devbay.security.recipes import just_includes, just_part, make_includes, make_part, package_scripts

BEFORE = "X = 1\ntest: need\n\trun $(X)\nneed:\n\tneeded\nother:\n\tother\n"


@pytest.mark.parametrize(
    "changed",
    [
        BEFORE.replace("\tother", "\trm -rf"),
        BEFORE + "# a comment\n",
        BEFORE + "\n\nmore: test\n\tmore\n",
        BEFORE.replace("other:", "other: need"),
    ],
)
def test_another_rule_or_a_comment_changes_nothing(changed: str) -> None:
    assert make_part(changed, ["test"]) == make_part(BEFORE, ["test"])


@pytest.mark.parametrize(
    "changed",
    [
        BEFORE.replace("\trun", "\trun2"),
        BEFORE.replace("\tneeded", "\tevil"),
        BEFORE.replace("X = 1", "X = 2"),
        "include evil.mk\n" + BEFORE,
        "SHELL ::= ./evil\n" + BEFORE,
        "SHELL :::= ./evil\n" + BEFORE,
        "export PATH := evil\n" + BEFORE,
        "test: PATH = evil\n" + BEFORE,
        "define X\nevil: x\n\ty\nendef\n" + BEFORE,
        "override define X\nevil\nendef\n" + BEFORE,
        'ifeq "a" "b:c"\nX = 3\nendif\n' + BEFORE,
        "other: $(shell evil)\n" + BEFORE,
        "%: x\n\tevil\n" + BEFORE,
        "$(NAME): x\n\tevil\n" + BEFORE,
        ".DEFAULT:\n\tevil\n" + BEFORE,
        ".RECIPEPREFIX = >\nneed:\n> evil\n" + BEFORE,
        BEFORE.replace("test: need", "test: need extra") + "extra:\n\tevil\n",
        BEFORE.replace("\trun", "\tru\\\n n"),
    ],
)
def test_what_can_change_what_the_target_runs_changes_the_part(changed: str) -> None:
    assert make_part(changed, ["test"]) != make_part(BEFORE, ["test"])


@pytest.mark.parametrize(
    ("line", "other"),
    [
        ('ifeq "a" "b:c"', 'ifeq "a" "b:d"'),
        ("include a:b.mk", "include a:c.mk"),
        ("export A:B", "export A:C"),
    ],
)
def test_a_directive_with_a_colon_is_no_rule(line: str, other: str) -> None:
    assert make_part(f"{line}\n{BEFORE}", ["test"]) != make_part(f"{other}\n{BEFORE}", ["test"])


def test_without_a_target_it_is_the_first() -> None:
    assert make_part(BEFORE, []) == make_part(BEFORE, ["test"])
    assert "other" in make_part(f".DEFAULT_GOAL := other\n{BEFORE}", [])


def test_a_target_that_no_rule_has_covers_the_whole_file() -> None:
    assert "\tother" in make_part(BEFORE, ["file.o"])
    assert "\tother" in make_part(BEFORE.replace("test: need", "test: $(NEEDS)"), ["test"])


def test_included_makefiles_are_named() -> None:
    assert make_includes("include a.mk b.mk # c\n-include d.mk\nsinclude e.mk\n") == [
        "a.mk",
        "b.mk",
        "d.mk",
        "e.mk",
    ]


JUST = """\
x := 'y'
test a='1': need
    run {{x}}
plain: need
    plain
need:
    needed
other:
    other
"""


def test_a_justfile_is_kept_but_for_other_recipes() -> None:
    assert "other" not in just_part(JUST, ["plain", "an argument"])
    assert just_part(JUST.replace("    other", "    evil"), ["plain"]) == just_part(JUST, ["plain"])
    for old, new in (("'y'", "`evil`"), ("    needed", "    evil"), ("    plain", "    evil")):
        assert just_part(JUST.replace(old, new), ["plain"]) != just_part(JUST, ["plain"])
    assert "other" in just_part(JUST, ["an-alias"])


@pytest.mark.parametrize("text", ["", "[]", '{"scripts": []}', "[" * 100_000, '{"scripts": {"a": 1}}'])
def test_a_package_file_that_cannot_be_read_has_no_scripts(text: str) -> None:
    assert package_scripts(text) == {}


@pytest.mark.parametrize(
    "text", ["a" + " " * 200_000, "\n" * 200_000, "a:" * 100_000, "{{" * 100_000, "mod " * 60_000]
)
def test_a_hostile_file_is_read_quickly(text: str) -> None:
    began = time.process_time()
    for part in (make_part, just_part):
        part(text, ["x"])
    make_includes(text)
    just_includes(text)
    assert time.process_time() - began < 60

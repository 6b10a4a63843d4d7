import pytest

from devbay.runtimes.docker.globs import Patterns


@pytest.mark.parametrize(
    ("lines", "path", "expected"),
    [
        (["node_modules"], "node_modules", True),
        (["node_modules"], "node_modules/a/b.js", True),
        (["node_modules"], "web/node_modules", False),
        (["**/node_modules"], "web/node_modules/a.js", True),
        (["**/node_modules"], "node_modules", True),
        (["/dist/"], "dist/x", True),
        (["*.md"], "README.md", True),
        (["*.md"], "docs/README.md", False),
        (["*/*.md"], "docs/README.md", True),
        (["*/temp*"], "a/temporary", True),
        (["**"], "anything/at/all", True),
        (["a/**/z"], "a/z", True),
        (["a/**/z"], "a/b/c/z", True),
        (["a?c"], "abc", True),
        (["a?c"], "a/c", False),
        (["[a-c].txt"], "b.txt", True),
        (["[^a-c].txt"], "b.txt", False),
        ([r"\*.txt"], "*.txt", True),
        ([r"\*.txt"], "a.txt", False),
        (["a.b"], "axb", False),
        (["./a/../b"], "b", True),
        (["../b"], "b", True),
        (["."], "a", False),
        (["  a  "], "a", True),
        (["*.md", "!README.md"], "README.md", False),
        (["*.md", "!README.md"], "OTHER.md", True),
        (["!README.md", "*.md"], "README.md", True),
        (["*", "!src"], "src/deep/file", False),
        (["*", "!src", "src/secret"], "src/secret/x", True),
        (["docs", "!docs/keep"], "docs/keep", False),
    ],
)
def test_patterns_match_as_the_builder_matches_them(lines, path, expected):
    assert Patterns.of(lines).match(path) is expected


def test_an_ignore_file_has_comments_at_the_start_of_a_line_only():
    patterns = Patterns.from_ignore_file("\ufeff# a comment\n\n #kept\nb#c\n")
    assert not patterns.match("# a comment")
    assert patterns.match("#kept")
    assert patterns.match("b#c")


@pytest.mark.parametrize("line", ["!", "a[b", "[z-a]"])
def test_what_is_no_pattern_is_refused(line):
    with pytest.raises(ValueError, match="no pattern"):
        Patterns.of([line])


@pytest.mark.parametrize(
    ("lines", "folder", "expected"),
    [
        (["docs", "!docs/keep"], "docs", True),
        (["docs", "!docs/a/b"], "docs/a", True),
        (["docs", "!docs/a/b"], "docs/c", False),
        (["docs", "!other"], "docs", False),
        (["**", "!**/*.py"], "any", True),
        (["docs"], "docs", False),
        (["*", "!src*/x"], "srcset", True),
    ],
)
def test_a_matched_folder_is_walked_only_where_something_may_be_taken_back(lines, folder, expected):
    assert Patterns.of(lines).may_take_back_below(folder) is expected

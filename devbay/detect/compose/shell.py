"""Command lines split as compose splits them: words and quotes, nothing expanded, an operator ends them."""

from __future__ import annotations

_SPACE = " \t\r\n"
_OPERATORS = ";&|<>"


def split(line: str) -> tuple[str, ...]:
    """The words of `command`, `entrypoint` or a hook given as one text.

    Compose uses go-shellwords without its expansions: what follows an unquoted `;`, `&`, `|`, `<` or `>` is
    dropped. Raises `ValueError` where compose refuses: an open quote, a lone parenthesis, a last backslash.
    """
    words: list[str] = []
    word, has_word = "", False
    single = double = back = dollar = escaped = False  # open: ', ", ` and $(
    for letter in line:
        if escaped:
            word, has_word, escaped = word + letter, True, False
        elif letter == "\\" and not single:
            escaped = True
        elif letter in _SPACE and not (single or double or back or dollar):
            if has_word:
                words.append(word)
            word, has_word = "", False
        elif letter in "()" and not (single or double or back):
            opens = letter == "(" and not dollar and word.endswith("$")
            if not opens and not (letter == ")" and dollar):
                raise ValueError("a parenthesis outside quotes")
            dollar, word = opens, word + letter
        elif letter == '"' and not (single or dollar):
            has_word, double = has_word or double, not double
        elif letter == "'" and not (double or dollar):
            has_word, single = has_word or single, not single
        elif letter in _OPERATORS and not (single or double or back or dollar):
            if letter == ">" and word[:1].isdigit():
                has_word = False
            break
        else:
            if letter == "`" and not (single or double or dollar):
                back = not back
            word = word + letter
            has_word = has_word or letter not in _SPACE
    if single or double or back or dollar or escaped:
        raise ValueError("a quote or an escape that does not end")
    if has_word:
        words.append(word)
    return tuple(words)

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
    quote = ""  # ', ", ` or ( for $(...)
    escaped = False
    for letter in line:
        if escaped:
            word, has_word, escaped = word + letter, True, False
        elif letter == "\\" and quote != "'":
            escaped = True
        elif letter in _SPACE and not quote:
            if has_word:
                words.append(word)
            word, has_word = "", False
        elif letter in "()" and quote in ("", "("):
            opens = letter == "(" and not quote and word.endswith("$")
            if not opens and not (letter == ")" and quote):
                raise ValueError("a parenthesis outside quotes")
            quote = "(" if opens else ""
            word, has_word = word + letter, True
        elif letter in "'\"" and quote in ("", letter):
            has_word = has_word or bool(quote)
            quote = "" if quote else letter
        elif letter == "`" and quote in ("", "`"):
            quote = "" if quote else letter
            word, has_word = word + letter, True
        elif letter in _OPERATORS and not quote:
            if letter == ">" and word[:1].isdigit():
                has_word = False
            break
        else:
            word, has_word = word + letter, True
    if quote or escaped:
        raise ValueError("a quote or an escape that does not end")
    if has_word:
        words.append(word)
    return tuple(words)

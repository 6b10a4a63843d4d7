"""Hides credentials that are known by their shape, or by the words they stand in, whoever's they are."""

from __future__ import annotations

import re
from functools import partial

from devbay.manifest.credentials import CREDENTIALS, PRIVATE_KEY, Shape, shape

# Longer than any PEM block (RFC 7468) of a private key (RSA-16384 has about 12,700 characters).
PEM_LIMIT = 20_000
_PEM_END = re.compile(r"-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----")
_PEM_BODY = re.compile(r"(?:(?:\s|\\[rn])*[A-Za-z0-9+/=]{40,})*(?:(?:\s|\\[rn])*[A-Za-z0-9+/]{1,63}={1,2})?")

# What stands in a login is hidden, and still allowed in a manifest: most of these are of local databases.
# Sources: RFC 7235 (Authorization), RFC 3986 (userinfo). How patterns are written: `manifest.credentials`.
SHAPES = (
    *CREDENTIALS,
    shape(
        "authorization",
        "uthorization UTHORIZATION",
        r"(?:uthorization|UTHORIZATION)[\"']?\s{0,9}[:=]\s{0,9}[\"']?(?i:basic|bearer|token)\s{1,9}"
        r"(?P<secret>[\w.~+/=-]{8,})",
    ),
    shape(
        "url password",
        "://",
        r"://[^\s/?#:@\"'<>]{0,200}:(?P<secret>(?!\[redacted:)[^\s/?#@\"'<>]{1,1000})@",
    ),
)


def hide_shapes(text: str) -> str:
    """The text with every credential of a known shape replaced by `[redacted:<kind>]`."""
    text = _hide_private_keys(text)
    for kind in SHAPES:
        if kind.may_be_in(text):
            text = kind.pattern.sub(partial(_hidden, kind), text)
    return text


def crossing_shape(text: str, cut: int) -> int:
    """Where the first credential starts that begins before `cut` and ends behind it; `cut` if none does."""
    for kind in SHAPES:
        if kind.may_be_in(text):
            for match in kind.pattern.finditer(text):
                if match.start() < cut < match.end():
                    cut = match.start()
    return cut


def _hide_private_keys(text: str) -> str:
    """PEM blocks up to their end; where that is missing, as far as it looks like one."""
    parts: list[str] = []
    done = 0
    while begin := PRIVATE_KEY.search(text, done):
        end = _PEM_END.search(text, begin.end(), begin.end() + PEM_LIMIT) or _PEM_BODY.match(
            text, begin.end()
        )
        parts += [text[done : begin.start()], "[redacted:private key]"]
        done = end.end() if end else begin.end()
    return "".join([*parts, text[done:]])


def _hidden(kind: Shape, match: re.Match[str]) -> str:
    mark = f"[redacted:{kind.label.lower()}]"
    if "secret" not in match.re.groupindex:
        return mark
    start, end = (at - match.start() for at in match.span("secret"))
    return match[0][:start] + mark + match[0][end:]

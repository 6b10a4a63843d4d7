"""The ways a value can look when a program prints it: as it is, escaped, or encoded. Pure."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from html import escape
from urllib.parse import quote, quote_plus

# Shorter values would be found all over ordinary text.
SHORTEST = 4
# Fragments of an encoded value need more: they are matched wherever they stand.
SHORTEST_FRAGMENT = 8


def disguises(value: str) -> set[str]:
    """Every form of `value` to look for; empty if it is too short to be told from ordinary text."""
    bare = value.strip()
    if len(bare) < SHORTEST:
        return set()
    found = {value, bare}
    for form in (value, bare):
        found.update(_escaped(form))
        found.update(_encoded(form.encode(errors="surrogateescape")))
    lines = [line.strip() for line in bare.splitlines()]
    if len(lines) > 1:
        found.update(
            line for line in lines if len(line) >= SHORTEST_FRAGMENT and not line.startswith("-----")
        )
    return found


def _escaped(value: str) -> Iterator[str]:
    raw = value.encode(errors="surrogateescape")
    for quoted in (quote(raw, safe=""), quote(raw), quote_plus(raw), quote(raw, safe="!'()*~")):
        yield quoted
        yield _lower_escapes(quoted)
        yield quote(quoted, safe="")
    for ascii_only in (True, False):
        text = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
        yield text
        yield text.replace("/", "\\/")
        yield json.dumps(text, ensure_ascii=ascii_only)[1:-1]  # JSON that holds JSON
        for character in "<>&":  # Go and Rails
            text = text.replace(character, f"\\u{ord(character):04x}")
        yield text
    yield repr(value)[1:-1]
    yield escape(value)
    yield escape(value, quote=False)
    yield value.replace("'", "'\\''")  # inside single quotes of a shell


def _lower_escapes(quoted: str) -> str:
    """`%2F` as `%2f`, nothing else changed."""
    head, *rest = quoted.split("%")
    return "%".join([head, *(part[:2].lower() + part[2:] for part in rest)])


def _encoded(raw: bytes) -> Iterator[str]:
    """Hex, and base64 at each of the three places a value can have in a longer encoded text.

    Of base64 only the characters that depend on the value alone are looked for.
    """
    if len(raw.hex()) >= SHORTEST_FRAGMENT:
        yield raw.hex()
        yield raw.hex().upper()
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        whole = encode(raw).decode()
        if len(whole) >= SHORTEST_FRAGMENT:
            yield whole
        for before, skipped in ((0, 0), (1, 2), (2, 3)):
            text = encode(b"\0" * before + raw).decode()
            fragment = text[skipped : (before + len(raw)) * 8 // 6]
            if len(fragment) >= SHORTEST_FRAGMENT:
                yield fragment

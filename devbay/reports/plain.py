"""Output as a person would read it: no colour codes, no overwritten progress bars, no control characters."""

from __future__ import annotations

import re

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI (ECMA-48, 5.4): colours, cursor movement
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # OSC: titles, links
    r"|\x1b[PX^_][^\x1b]*\x1b\\"  # DCS, SOS, PM, APC
    r"|\x1b[ -/]*[0-~]"  # two-character escapes
    # colours whose ESC an XML writer masked
    r"|(?:\[NON-XML-CHAR-0x1B\]|#x1B|\\x1b|\\u001b|\ufffd|\u241b)\[[0-9;]*m"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_BAR = re.compile(r"[█▉▊▋▌▍▎▏░▒▓━╸╺]{6,}|\[[#=>.\- ]{20,}\]")


def plain(text: str) -> str:
    """`text` without escape sequences and control characters; line ends become newlines."""
    if "\x1b" in text or "[" in text:
        text = _ESCAPES.sub("", text)
    return _CONTROL.sub("", text.replace("\r\n", "\n"))


def overwritten(line: str) -> str:
    """What is left of a line that carriage returns wrote several times."""
    parts = [part for part in line.split("\r") if part.strip()]
    return parts[-1] if parts else ""


def readable(text: str) -> str:
    """`plain`, and without the lines that only drew a progress bar."""
    lines = (overwritten(line) for line in plain(text).split("\n"))
    kept: list[str] = []
    for line in lines:
        line = line.rstrip()
        if _BAR.search(line) or (kept and not line and not kept[-1]):
            continue
        kept.append(line)
    return "\n".join(kept).strip("\n")


def shorten(text: str, limit: int) -> str:
    """The start of `text`, at most `limit` characters, marked where it was cut."""
    return text if len(text) <= limit else text[: limit - 2].rstrip() + " …"


def tail(text: str, limit: int) -> str:
    """The end of `text`, at most `limit` characters, from the start of a line where that loses little."""
    if len(text) <= limit:
        return text
    cut = text[-(limit - 2) :]
    start = cut.find("\n", 0, limit // 4)
    return "… " + (cut[start + 1 :] if start >= 0 else cut)

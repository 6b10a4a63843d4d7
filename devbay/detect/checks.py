"""A stack's own health checks, as the probes that say the same."""

from __future__ import annotations

import re
from typing import Any

from devbay.detect.stack import HealthFact

_ASKS = re.compile(r"\b(curl|wget|urlopen|fetch|http\.get|requests\.get|httpx\.get|HTTPConnection)\b")
_ADDRESS = re.compile(
    r"(?:http://)?(?<![\w.])(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\])(?::(?P<port>\d+))?(?P<path>/[^\s'\"`)|;&]*)?"
)
LONGEST = 600


def asked(argv: tuple[str, ...]) -> tuple[int, str] | None:
    """Port and path of a check that only asks its own container over HTTP; None for any other."""
    text = " ".join(argv)
    if not _ASKS.search(text) or "https://" in text or "$" in text:
        return None
    tail = re.sub(r"\|\|\s*(exit|false|kill)\b.*$", "", text)
    if "|" in tail or ";" in _unquoted(tail) or "&&" in tail:
        return None
    found = list(_ADDRESS.finditer(tail))
    if len(found) != 1 or not (found[0]["port"] or "http://" in found[0][0]):
        return None
    path = found[0]["path"] or "/"
    return (int(found[0]["port"] or 80), path) if re.fullmatch(r"/[!-~]*", path) else None


def _unquoted(text: str) -> str:
    """Without what follows `-c` or `-e`: a program's text may hold any character."""
    return re.sub(r"(\s-[ce]\s).*", r"\1", text, flags=re.DOTALL)


def probe(check: HealthFact, port: int | None) -> dict[str, Any]:
    """The probe of a check that is not switched off: `http` where that is what it asks the primary port."""
    found = asked(check.argv)
    if found and port == found[0]:
        return {"http": found[1], **_waits(check)}
    return {"cmd": list(over_tcp(check.argv)), **_waits(check)}


def over_tcp(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Postgres is asked over TCP: while it prepares its data, its server answers on the socket only."""
    if not any("pg_isready" in word for word in argv) or re.search(r"\s-h|--host", " ".join(argv)):
        return argv
    if argv[0] == "pg_isready":
        return (argv[0], "-h", "127.0.0.1", *argv[1:])
    return tuple(re.sub(r"\bpg_isready\b(?!\.)", "pg_isready -h 127.0.0.1", word) for word in argv)


def _waits(check: HealthFact) -> dict[str, Any]:
    """How long the stack itself would wait: its start period and all its tries."""
    tries = (check.interval if check.interval is not None else 30.0) * (check.retries or 3)
    total = int((check.start_period or 0) + tries)
    return {"timeout": f"{min(LONGEST, max(60, total))}s"}

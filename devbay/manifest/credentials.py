"""Rule R3: text that looks like a credential and so does not belong into a committed file."""

from __future__ import annotations

import re

# Sources: each provider's documentation of its token formats.
_KNOWN = {
    "Stripe key": r"\b[sr]k_(live|test)_[0-9A-Za-z]{16,}",
    "Stripe webhook secret": r"\bwhsec_[0-9A-Za-z+/=]{24,}",
    "GitHub token": r"\bgh[pousr]_[0-9A-Za-z]{36,}|\bgithub_pat_[0-9A-Za-z_]{22,}",
    "GitLab token": r"\bgl(pat|ptt|rt|dt|cbt|soat|ft)-[0-9A-Za-z_-]{20,}",
    "AWS access key": r"\b(AKIA|ASIA)[0-9A-Z]{16}\b",
    "Google API key": r"\bAIza[0-9A-Za-z_-]{35}",
    "Google OAuth secret": r"\bGOCSPX-[0-9A-Za-z_-]{20,}",
    "Slack token": r"\bxox[abeoprs]-[0-9A-Za-z-]{10,}|\bxapp-[0-9]-[0-9A-Za-z-]{10,}",
    "Slack webhook": r"hooks\.slack\.com/services/T[0-9A-Z]+/B[0-9A-Z]+/",
    "npm token": r"\bnpm_[0-9A-Za-z]{36}",
    "DigitalOcean token": r"\bdo[opr]_v1_[0-9a-f]{32,}",
    "Anthropic key": r"\bsk-ant-[0-9A-Za-z_-]{16,}",
    "OpenAI key": r"\bsk-(proj-)?[0-9A-Za-z_-]{40,}",
    "PyPI token": r"\bpypi-[0-9A-Za-z_-]{32,}",
    "private key": r"-----BEGIN ([A-Z0-9]+ )*PRIVATE KEY-----",
    "JSON web token": r"\beyJ[0-9A-Za-z_-]{10,}\.eyJ[0-9A-Za-z_-]{10,}\.[0-9A-Za-z_-]{10,}",
}
_PATTERNS = tuple((kind, re.compile(pattern)) for kind, pattern in _KNOWN.items())


def credential(text: str) -> str | None:
    """What credential a text looks like, or None."""
    for kind, pattern in _PATTERNS:
        if pattern.search(text):
            return f"a {kind}" if kind[0] not in "AO" or kind[:2] == "AW" else f"an {kind}"
    if any(_random(part) for part in (text, *text.split("="))):
        return "a random secret"
    return None


def _random(text: str) -> bool:
    """24 characters or more, 16 distinct, upper and lower case and digits, no path, URL or sentence."""
    return (
        len(text) >= 24
        and "${" not in text
        and not re.search(r"[ /:\n]", text)
        and len(set(text)) >= 16
        and re.search("[A-Z]", text) is not None
        and re.search("[a-z]", text) is not None
        and re.search("[0-9]", text) is not None
    )

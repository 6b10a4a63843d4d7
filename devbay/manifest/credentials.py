"""Credentials that are known by their shape, whoever's they are: what rule R3 keeps out of a committed file,
and what is scrubbed from everything shown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """One kind of credential. A text without any of `hints` cannot hold it, so it need not be searched.

    The group `secret`, if there is one, is the part to hide; otherwise the whole match.
    """

    label: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]

    def may_be_in(self, text: str) -> bool:
        return any(hint in text for hint in self.hints)


def shape(label: str, hints: str, pattern: str) -> Shape:
    """A `Shape`; the hints are separated by spaces."""
    return Shape(label, tuple(hints.split()), re.compile(pattern))


PRIVATE_KEY = re.compile(r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----")
# Sources: each provider's documentation of its token formats; RFC 7519 (JWT). A pattern starts with plain
# characters and looks back after them, because `re` finds these fast and nothing behind a leading `\b`. Every
# repeat before a fixed end is bounded or starts at one place only, so that no text makes a search quadratic.
CREDENTIALS = (
    shape("JSON web token", "eyJ", r"eyJ(?<![\w-]eyJ)[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}"),
    shape("Stripe key", "sk_live_ sk_test_", r"sk_(?<!\wsk_)(?:live|test)_[0-9A-Za-z]{16,}"),
    shape("Stripe key", "rk_live_ rk_test_", r"rk_(?<!\wrk_)(?:live|test)_[0-9A-Za-z]{16,}"),
    shape("Stripe webhook secret", "whsec_", r"whsec_(?<!\wwhsec_)[\w+/=]{24,}"),
    shape("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh(?<!\wgh)[pousr]_[0-9A-Za-z]{36,}"),
    shape("GitHub token", "github_pat_", r"github_pat_(?<!\wgithub_pat_)\w{22,}"),
    shape(
        "GitLab token",
        "glpat- glptt- glrt- gldt- glcbt- glsoat- glft-",
        r"gl(?<!\wgl)(?:pat|ptt|rt|dt|cbt|soat|ft)-[\w-]{20,}",
    ),
    shape("AWS access key", "AKIA", r"AKIA(?<!\wAKIA)[0-9A-Z]{16}\b"),
    shape("AWS access key", "ASIA", r"ASIA(?<!\wASIA)[0-9A-Z]{16}\b"),
    shape(
        "AWS secret key",
        "ecret_access_key ECRET_ACCESS_KEY ecretAccessKey",
        r"(?:ecret|ECRET)_?(?i:access_?key)[\"']?\s*[:=]\s*[\"']?(?P<secret>[0-9A-Za-z/+]{40})\b",
    ),
    shape("Google API key", "AIza", r"AIza(?<!\wAIza)[\w-]{35}"),
    shape("Google OAuth secret", "GOCSPX-", r"GOCSPX-(?<!\wGOCSPX-)[\w-]{20,}"),
    shape("Google OAuth token", "ya29.", r"ya29\.(?<!\wya29\.)[\w-]{20,}"),
    shape("Slack token", "xox", r"xox(?<!\wxox)[abeoprs]-[0-9A-Za-z-]{10,}"),
    shape("Slack token", "xapp-", r"xapp-(?<!\wxapp-)[0-9]-[0-9A-Za-z-]{10,}"),
    shape("Slack webhook", "hooks.slack.com/", r"hooks\.slack\.com/services/(?P<secret>T\w+/B\w+/\w+)"),
    shape("npm token", "npm_", r"npm_(?<!\wnpm_)[0-9A-Za-z]{36}\b"),
    shape("PyPI token", "pypi-", r"pypi-(?<!\wpypi-)[\w-]{32,}"),
    shape("DigitalOcean token", "dop_v1_ doo_v1_ dor_v1_", r"do(?<!\wdo)[opr]_v1_[0-9a-f]{32,}"),
    shape("Anthropic key", "sk-ant-", r"sk-ant-(?<!\wsk-ant-)[\w-]{16,}"),
    shape("OpenAI key", "sk-", r"sk-(?<!\wsk-)(?:(?:proj|svcacct|admin)-[\w-]{20,}|[0-9A-Za-z]{40,})"),
    shape("Hugging Face token", "hf_", r"hf_(?<!\whf_)[0-9A-Za-z]{30,}"),
    shape("SendGrid key", "SG.", r"SG\.(?<!\wSG\.)[\w-]{22}\.[\w-]{43}"),
    shape("Docker token", "dckr_", r"dckr_(?<!\wdckr_)(?:pat|oat)_[\w-]{20,}"),
    shape("Vault token", "hvs. hvb.", r"hv(?<!\whv)[sb]\.[\w-]{24,}"),
    shape("age key", "AGE-SECRET-KEY-", r"AGE-SECRET-KEY-1[0-9A-Z]{50,}"),
)


def credential(text: str) -> str | None:
    """What credential a text looks like, with its article; None for none."""
    if PRIVATE_KEY.search(text):
        return "a private key"
    for kind in CREDENTIALS:
        if kind.may_be_in(text) and kind.pattern.search(text):
            return f"{'an' if kind.label.startswith(('A', 'O', 'a', 'npm')) else 'a'} {kind.label}"
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

"""Credentials that are known by their shape alone, whoever's they are."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """One kind of credential. A text without any of `hints` cannot hold it, so it is not searched.

    The group `secret`, if there is one, is the part to hide; otherwise the whole match.
    """

    label: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]


def _shape(label: str, hints: str, pattern: str) -> Shape:
    return Shape(label, tuple(hints.split()), re.compile(pattern))


# Longer than any PEM block (RFC 7468) of a private key (RSA-16384 has about 12,700 characters).
PEM_LIMIT = 20_000
_PEM_BEGIN = re.compile(r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----")
_PEM_END = re.compile(r"-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----")
_PEM_BODY = re.compile(r"(?:(?:\s|\\[rn])*[A-Za-z0-9+/=]{40,})*(?:(?:\s|\\[rn])*[A-Za-z0-9+/]{1,63}={1,2})?")

# Sources: each provider's documentation of its token formats; RFC 7519 (JWT), RFC 7235 (Authorization),
# RFC 3986 (userinfo). A pattern starts with plain characters and looks back after them, because `re` finds
# these fast and nothing behind a leading `\b`. Every repeat before a fixed end is bounded or starts at one
# place only, so that no text makes a search quadratic.
SHAPES = (
    _shape("json web token", "eyJ", r"eyJ(?<![\w-]eyJ)[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}"),
    _shape("stripe key", "sk_live_ sk_test_", r"sk_(?<!\wsk_)(?:live|test)_[0-9A-Za-z]{16,}"),
    _shape("stripe key", "rk_live_ rk_test_", r"rk_(?<!\wrk_)(?:live|test)_[0-9A-Za-z]{16,}"),
    _shape("stripe webhook secret", "whsec_", r"whsec_(?<!\wwhsec_)[\w+/=]{24,}"),
    _shape("github token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh(?<!\wgh)[pousr]_[0-9A-Za-z]{36,}"),
    _shape("github token", "github_pat_", r"github_pat_(?<!\wgithub_pat_)\w{22,}"),
    _shape(
        "gitlab token",
        "glpat- glptt- glrt- gldt- glcbt- glsoat- glft-",
        r"gl(?<!\wgl)(?:pat|ptt|rt|dt|cbt|soat|ft)-[\w-]{20,}",
    ),
    _shape("aws access key", "AKIA", r"AKIA(?<!\wAKIA)[0-9A-Z]{16}\b"),
    _shape("aws access key", "ASIA", r"ASIA(?<!\wASIA)[0-9A-Z]{16}\b"),
    _shape(
        "aws secret key",
        "ecret_access_key ECRET_ACCESS_KEY ecretAccessKey",
        r"(?:ecret|ECRET)_?(?i:access_?key)[\"']?\s*[:=]\s*[\"']?(?P<secret>[0-9A-Za-z/+]{40})\b",
    ),
    _shape("google api key", "AIza", r"AIza(?<!\wAIza)[\w-]{35}"),
    _shape("google oauth secret", "GOCSPX-", r"GOCSPX-(?<!\wGOCSPX-)[\w-]{20,}"),
    _shape("google oauth token", "ya29.", r"ya29\.(?<!\wya29\.)[\w-]{20,}"),
    _shape("slack token", "xox", r"xox(?<!\wxox)[abeoprs]-[0-9A-Za-z-]{10,}"),
    _shape("slack token", "xapp-", r"xapp-(?<!\wxapp-)[0-9]-[0-9A-Za-z-]{10,}"),
    _shape("slack webhook", "hooks.slack.com/", r"hooks\.slack\.com/services/(?P<secret>T\w+/B\w+/\w+)"),
    _shape("npm token", "npm_", r"npm_(?<!\wnpm_)[0-9A-Za-z]{36}\b"),
    _shape("pypi token", "pypi-", r"pypi-(?<!\wpypi-)[\w-]{32,}"),
    _shape("digitalocean token", "dop_v1_ doo_v1_ dor_v1_", r"do(?<!\wdo)[opr]_v1_[0-9a-f]{32,}"),
    _shape("anthropic key", "sk-ant-", r"sk-ant-(?<!\wsk-ant-)[\w-]{16,}"),
    _shape("openai key", "sk-", r"sk-(?<!\wsk-)(?:(?:proj|svcacct|admin)-[\w-]{20,}|[0-9A-Za-z]{40,})"),
    _shape("hugging face token", "hf_", r"hf_(?<!\whf_)[0-9A-Za-z]{30,}"),
    _shape("sendgrid key", "SG.", r"SG\.(?<!\wSG\.)[\w-]{22}\.[\w-]{43}"),
    _shape("docker token", "dckr_", r"dckr_(?<!\wdckr_)(?:pat|oat)_[\w-]{20,}"),
    _shape("vault token", "hvs. hvb.", r"hv(?<!\whv)[sb]\.[\w-]{24,}"),
    _shape("age key", "AGE-SECRET-KEY-", r"AGE-SECRET-KEY-1[0-9A-Z]{50,}"),
    _shape(
        "authorization",
        "uthorization UTHORIZATION",
        r"(?:uthorization|UTHORIZATION)[\"']?\s{0,9}[:=]\s{0,9}[\"']?(?i:basic|bearer|token)\s{1,9}"
        r"(?P<secret>[\w.~+/=-]{8,})",
    ),
    _shape(
        "url password",
        "://",
        r"://[^\s/?#:@\"'<>]{0,200}:(?P<secret>(?!\[redacted:)[^\s/?#@\"'<>]{1,1000})@",
    ),
)


def hide_shapes(text: str) -> str:
    """The text with every credential of a known shape replaced by `[redacted:<kind>]`."""
    text = _hide_private_keys(text)
    for shape in SHAPES:
        if any(hint in text for hint in shape.hints):
            text = shape.pattern.sub(lambda match, label=shape.label: _hidden(match, label), text)  # type: ignore[misc]
    return text


def crossing_shape(text: str, cut: int) -> int:
    """Where the first credential starts that begins before `cut` and ends behind it; `cut` if none does."""
    for shape in SHAPES:
        if any(hint in text for hint in shape.hints):
            for match in shape.pattern.finditer(text):
                if match.start() < cut < match.end():
                    cut = match.start()
    return cut


def _hide_private_keys(text: str) -> str:
    """PEM blocks up to their end; where that is missing, as far as it looks like one."""
    parts: list[str] = []
    done = 0
    while begin := _PEM_BEGIN.search(text, done):
        end = _PEM_END.search(text, begin.end(), begin.end() + PEM_LIMIT) or _PEM_BODY.match(
            text, begin.end()
        )
        parts += [text[done : begin.start()], "[redacted:private key]"]
        done = end.end() if end else begin.end()
    return "".join([*parts, text[done:]])


def _hidden(match: re.Match[str], label: str) -> str:
    mark = f"[redacted:{label}]"
    if "secret" not in match.re.groupindex:
        return mark
    start, end = (at - match.start() for at in match.span("secret"))
    return match[0][:start] + mark + match[0][end:]

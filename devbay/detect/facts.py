"""What every evidence source gives: where a fact stands, what nobody says, what was seen."""

from __future__ import annotations

import re
from dataclasses import dataclass

from devbay.names import MAX_NAME, name_problem


@dataclass(frozen=True)
class Origin:
    """Where a fact stands. line: 1-based, 0 where only the file is known. key: what names it in the file."""

    file: str
    line: int = 0
    key: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place} {self.key}" if self.key else place


@dataclass(frozen=True)
class Question:
    """Something that no file decides.

    about: the path of the manifest it concerns, such as `services/web/env/TOKEN`, or a word. text: the
    question. candidates: what files offer as answers, never values of secrets.
    """

    about: str
    text: str
    candidates: tuple[str, ...] = ()
    origin: Origin | None = None

    def __str__(self) -> str:
        offered = f" (candidates: {'; '.join(self.candidates)})" if self.candidates else ""
        seen = f" [{self.origin}]" if self.origin else ""
        return f"{self.about}: {self.text}{offered}{seen}"


@dataclass(frozen=True)
class Evidence:
    """One conclusion and where it comes from. path: of the manifest, such as `services/web/port`."""

    path: str
    source: str


_SECRET = re.compile(
    r"(^|[_.])(SECRETS?|TOKENS?|PASS(WORD|WD|PHRASE|CODE)?|PWD|CREDENTIALS?|KEYS?|APIKEY|AUTH|PRIVATE|SALT|DSN|SIGNING"
    r"|SIGNATURE|WEBHOOK)([_.]|$)|(SECRET|TOKEN|PASSWORD|APIKEY)S?$|PASSW(OR)?D",
    re.IGNORECASE,
)
_NO_SECRET = re.compile(
    r"(_(FILE|PATH|DIR|URL|URI|HOST|PORT|LENGTH|SIZE|TTL|NAME|EXPIRES?\w*|ENABLED|METHOD|MODE|TYPE|ALGORITHM))$"
    r"|^(PUBLIC|NEXT_PUBLIC|VITE|REACT_APP)_",
    re.IGNORECASE,
)


def is_secret(variable: str) -> bool:
    """Whether a variable's name says that its value is a secret."""
    return bool(_SECRET.search(variable)) and not _NO_SECRET.search(variable)


def slug(text: str, default: str = "app") -> str:
    """A text as a name of the manifest (decision 7)."""
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:MAX_NAME].strip("-")
    return plain if plain and name_problem(plain) is None and plain != "host" else default


def line_of(text: str, needle: str) -> int:
    """The line on which a text first stands, 1-based; 0 if it does not."""
    at = text.find(needle)
    return text.count("\n", 0, at) + 1 if at >= 0 else 0

"""Names: what a project, bay or service may be called, and how a branch becomes a bay's name."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Container

from devbay.errors import DevbayError

NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
MAX_NAME = 40


def name_problem(text: str) -> str | None:
    """Why `text` is no name, or None. Names are DNS labels without a double hyphen (decision 7)."""
    if not text:
        return "is empty"
    if len(text) > MAX_NAME:
        return f"has {len(text)} characters; at most {MAX_NAME} are allowed"
    if not NAME.fullmatch(text):
        return "may hold only a-z, 0-9 and single hyphens between them"
    if text == "xn":
        return "is reserved (punycode)"
    return None


def check_bay_name(text: str) -> str:
    """`text` if it can name a bay; raises `bad_name`."""
    problem = name_problem(text)
    if problem is None and re.fullmatch(r"..-bay", text):
        problem = "collides with the site name of a bay of two characters"
    if problem:
        raise DevbayError(
            "bad_name",
            f"the bay name {text[:60]!r} {problem}",
            next="choose a name such as 'login-fix'",
        )
    return text


def bay_name_for_branch(branch: str, taken: Container[str]) -> str:
    """The branch's last segment as a free bay name; 4 hex of the branch are added where needed."""
    plain = unicodedata.normalize("NFKD", branch.rsplit("/", 1)[-1]).encode("ascii", "ignore").decode()
    base = re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")
    digest = hashlib.sha256(branch.encode()).hexdigest()
    name = base
    for size in range(4, len(digest), 4):
        usable = bool(name) and name_problem(name) is None and not re.fullmatch(r"..-bay", name)
        if usable and name not in taken:
            return name
        suffix = digest[:size]
        name = f"{base[: MAX_NAME - size - 1].strip('-')}-{suffix}".lstrip("-")
    raise DevbayError("bad_name", f"no free bay name for branch {branch!r}", next="give a name")


def site_label(bay: str, project: str) -> str:
    """`<bay>--<project>`, at most 63 characters (the rest is replaced by 8 hex of a hash).

    A bay of two characters gets `-bay` appended: strict resolvers refuse labels with hyphens in places
    three and four.
    """
    label = f"{bay}-bay--{project}" if len(bay) == 2 else f"{bay}--{project}"
    if len(label) <= 63:
        return label
    digest = hashlib.sha256(label.encode()).hexdigest()[:8]
    return f"{label[:54].rstrip('-')}-{digest}"

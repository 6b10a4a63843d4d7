"""What of a makefile, a justfile and package.json decides what a target, a recipe or a script runs. Pure.

Everything is kept but the rules of other targets: variables, includes and settings bear on all of them. Where
it is unclear which rules are others, all are kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

_RULE = re.compile(r"(?P<names>[^\s:#=][^:=#]*)::?(?!:{0,2}=)(?P<needs>[^#]*)")
_JUST_RULE = re.compile(r"@?(?P<names>[A-Za-z_][\w-]*)(?P<parameters>[^:=]*):(?!=)(?P<needs>[^#]*)")
_DIRECTIVES = frozenset(
    {"define", "else", "endif", "export", "ifdef", "ifeq", "ifndef", "ifneq", "include", "-include", "load"}
    | {"override", "private", "sinclude", "undefine", "unexport", "vpath"}
)
_INCLUDE = re.compile(r"(?m)^[ \t]*(?:-?include|sinclude)[ \t]+(?P<files>[^#\n]+)")
_IMPORT = re.compile(r"""(?m)^(?:import\??\s+|!include\s+)['"]?(?P<file>[^'"\s]+)""")
_MODULE = re.compile(r"""(?m)^mod\??\s+(?P<name>[\w-]+)(?:\s+['"](?P<file>[^'"]+)['"])?""")
LIFECYCLE = (
    "preinstall", "install", "postinstall", "prepublish", "preprepare", "prepare", "postprepare",
)  # fmt: skip
"""What package managers run of the package itself when they install."""


@dataclass
class _Block:
    """A rule with its lines, or (without names) lines of another kind."""

    names: tuple[str, ...] = ()
    needs: str = ""
    lines: list[str] = field(default_factory=list)


def make_part(text: str, targets: Sequence[str]) -> str:
    """The lines of a makefile that bear on `targets` (none: the first one)."""
    blocks = list(_make_blocks(text.replace("\\\n", " ")))
    if not targets and ".DEFAULT_GOAL" not in text:
        first = (name for block in blocks for name in block.names if not name.startswith("."))
        targets = tuple(first)[:1]
    return _kept(blocks, targets, unclear=".RECIPEPREFIX" in text)


def just_part(text: str, words: Sequence[str]) -> str:
    """The lines of a justfile that bear on the recipes among `words` (none: the first one)."""
    blocks = list(_just_blocks(text.replace("\\\n", " ")))
    known = {name for block in blocks for name in block.names}
    targets = [word for word in words if word in known] if words[:1] and words[0] in known else list(words)
    if not words:
        targets = [name for block in blocks for name in block.names][:1]
    return _kept(blocks, targets, unclear=False)


def make_includes(text: str) -> list[str]:
    return [name for match in _INCLUDE.finditer(text) for name in match["files"].split()]


def just_includes(text: str) -> list[str]:
    """Files that a justfile takes in, and where the modules it names may lie."""
    found = [match["file"] for match in _IMPORT.finditer(text)]
    for match in _MODULE.finditer(text):
        name = match["name"]
        found += (
            [match["file"]] if match["file"] else [f"{name}.just", f"{name}/mod.just", f"{name}/justfile"]
        )
    return found


def package_scripts(text: str) -> dict[str, str]:
    """The scripts of package.json; none where it cannot be read."""
    try:
        scripts = json.loads(text).get("scripts")
    except (ValueError, AttributeError, RecursionError):
        return {}
    if not isinstance(scripts, dict):
        return {}
    return {name: script for name, script in scripts.items() if isinstance(script, str)}


def _make_blocks(text: str) -> Iterator[_Block]:
    rule: _Block | None = None
    defining = False
    for line in text.split("\n"):
        if re.match(r"(?:(?:override|export)\s+)*define\s", line):
            defining = True
        if rule is not None and line.startswith("\t") and not defining:
            rule.lines.append(line)
        elif not line.strip() or (line.startswith("#") and not defining):
            continue
        elif not defining and (match := _RULE.match(line)) and match["names"].split()[0] not in _DIRECTIVES:
            if rule is not None:
                yield rule
            rule = _Block(tuple(match["names"].split()), match["needs"], [line])
        else:
            yield _Block(lines=[line])
        defining = defining and line.strip() != "endef"
    if rule is not None:
        yield rule


def _just_blocks(text: str) -> Iterator[_Block]:
    rule: _Block | None = None
    for line in text.split("\n"):
        if not line.strip():
            continue
        if line[:1] in " \t" and rule is not None:
            rule.lines.append(line)
            continue
        if line.startswith("#"):
            continue
        if rule is not None:
            yield rule
            rule = None
        if match := _JUST_RULE.match(line):
            rule = _Block((match["names"],), match["needs"], [line])
        else:
            yield _Block(lines=[line])
    if rule is not None:
        yield rule


def _kept(blocks: Sequence[_Block], targets: Sequence[str], *, unclear: bool) -> str:
    rules: dict[str, list[_Block]] = {}
    for block in blocks:
        for name in block.names:
            rules.setdefault(name, []).append(block)
    wanted, waiting = set[str](), list(targets)
    while waiting:
        name = waiting.pop()
        if name in wanted:
            continue
        wanted.add(name)
        if name not in rules and name in targets:
            unclear = True
        for block in rules.get(name, ()):
            unclear = unclear or bool(re.search(r"[$%*?]", block.needs))
            waiting += re.findall(r"[^\s()|&;]+", block.needs)
    lines: list[str] = []
    for block in blocks:
        if (
            unclear
            or not (targets and block.names)
            or any(n in wanted or _is_general(n) for n in block.names)
        ):
            lines += block.lines
        elif "$" in block.lines[0]:  # filled in whatever the target is
            lines.append(block.lines[0])
    return "\n".join(lines)


def _is_general(name: str) -> bool:
    """Names that are patterns, variables or settings of make's own."""
    return "%" in name or "$" in name or (name.startswith(".") and "/" not in name and name != ".PHONY")

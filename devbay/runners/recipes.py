"""What scripts of package.json, a makefile's targets and a justfile's recipes run, as their text. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

_TARGET = re.compile(r"^(?P<names>[^\s:#=][^:#=]*?)\s*::?(?![=:])(?P<needs>[^#;]*)(?:;(?P<inline>.*))?")
_VARIABLE = re.compile(r"^(?:export\s+)?([A-Za-z_][\w.]*)\s*(?:::?|\?|)=\s*(.*)$")
_REFERENCE = re.compile(r"\$[({]([A-Za-z_][\w.]*)[)}]")
_RECIPE = re.compile(r"^@?(?P<name>[A-Za-z_][\w-]*)(?P<parameters>[^:=]*):(?!=)(?P<needs>[^#]*)")
MAX_DEPTH = 5

_Rules = dict[str, tuple[list[str], list[str]]]


def package_script(text: str, name: str) -> str | None:
    """The script and those that run around it (`pre`, `post`), one a line; None if there is none."""
    try:
        scripts = json.loads(text).get("scripts")
    except (ValueError, AttributeError, RecursionError):
        return None
    if not isinstance(scripts, dict) or not isinstance(scripts.get(name), str):
        return None
    around = (scripts.get(f"pre{name}"), scripts[name], scripts.get(f"post{name}"))
    return "\n".join(script for script in around if isinstance(script, str))


def make_recipe(text: str, target: str | None) -> str | None:
    """The lines that make runs for a target (default: the first) and what it needs; None if there is none."""
    variables: dict[str, str] = {"MAKE": "make"}
    rules: _Rules = {}
    current: list[str] = []
    for line in text.replace("\\\n", " ").splitlines():
        if line.startswith("\t"):
            for name in current:
                rules[name][1].append(line.strip().lstrip("@-+ "))
            continue
        if not line.strip() or line.startswith("#"):
            continue
        current = []
        if match := _VARIABLE.match(line):
            variables.setdefault(match[1], match[2].split(" #")[0].strip())
        elif match := _TARGET.match(line):
            current = match["names"].split()
            for name in current:
                needs, lines = rules.setdefault(name, ([], []))
                needs += match["needs"].split()
                lines += [match["inline"].strip()] if match["inline"] else []
    if target is None:
        target = next((name for name in rules if not name.startswith(".") and "%" not in name), None)
    return _joined(rules, target, lambda line: _expanded(line, variables).replace("$$", "$"))


def just_recipe(text: str, name: str | None) -> str | None:
    """The lines that just runs for a recipe (default: the first) and what it needs; None if there is none."""
    rules: _Rules = {}
    current = ""
    for line in text.replace("\\\n", " ").splitlines():
        if line[:1] in (" ", "\t"):
            if current and line.strip():
                rules[current][1].append(line.strip().lstrip("@-"))
        elif match := _RECIPE.match(line):
            current = match["name"]
            rules[current] = (re.findall(r"[A-Za-z_][\w-]*", match["needs"]), [])
        elif line.strip() and not line.startswith(("#", "[")):
            current = ""
    chosen = name if name is not None else next(iter(rules), None)
    if chosen in rules and rules[chosen][1][:1] and rules[chosen][1][0].startswith("#!"):
        return None
    return _joined(rules, chosen, lambda line: re.sub(r"\{\{.*?\}\}", "", line))


def _joined(rules: _Rules, name: str | None, plain: Callable[[str], str]) -> str | None:
    """The lines of a rule after those of what it needs, each once."""
    if name not in rules:
        return None
    lines: list[str] = []
    seen: set[str] = set()

    def visit(each: str) -> None:
        if each in seen or each not in rules:
            return
        seen.add(each)
        for need in rules[each][0][:100]:
            visit(need)
        lines.extend(plain(line) for line in rules[each][1])

    visit(name)
    return "\n".join(lines)


def _expanded(line: str, variables: dict[str, str]) -> str:
    for _ in range(MAX_DEPTH):
        replaced = _REFERENCE.sub(lambda match: variables.get(match[1], ""), line)[:10_000]
        if replaced == line:
            break
        line = replaced
    return line

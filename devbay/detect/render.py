"""A draft as `devbay.yaml`: each line with its source, and a block of what is still to decide."""

from __future__ import annotations

import json
import re
from typing import Any

from devbay.detect.draft import Draft, Path
from devbay.detect.facts import Question

WIDTH = 100
_PLAIN = re.compile(r"[A-Za-z_./][A-Za-z0-9_./@:+-]*")
_NOT_TEXT = re.compile(
    r"(?i:true|false|null|yes|no|on|off|y|n|~)|[-+.]?[0-9][0-9_.:eE+-]*|0[xob][0-9a-fA-F_]+|\.(inf|nan)"
)


def yaml(draft: Draft) -> str:
    """The text of the file. Deterministic; nothing in it is folded, so that each line has one source."""
    lines = [
        "# Proposed by `devbay init` from what this repository says; a comment names each line's source.",
        "# Edit it freely: a second `devbay init` shows what it would change and overwrites nothing.",
    ]
    if draft.questions:
        lines += ["#", "# Still to decide:"]
        for question in draft.questions:
            lines += _wrapped(question)
    if draft.notes:
        lines += ["#", "# Notes:", *(f"# - {_one_line(note)}" for note in draft.notes)]
    data = draft.data()
    lines += ["", "version: 1", f"project: {scalar(data['project'])}"]
    for group in ("services", "tasks"):
        if group in data:
            lines += ["", f"{group}:"]
            for name, part in data[group].items():
                lines += _entry((group, name), name, part, draft, 1)
                lines.append("")
            lines.pop()
    return "\n".join(lines) + "\n"


def _wrapped(question: Question) -> list[str]:
    text = _one_line(str(question))
    return [f"# - {text}"]


def _one_line(text: str) -> str:
    return " ".join(part for part in re.split(r"[\x00-\x1f\x7f\x85\u2028\u2029]+", text) if part)


def _entry(path: Path, key: str, value: Any, draft: Draft, depth: int) -> list[str]:
    indent = "  " * depth
    source = draft.sources.get(path)
    comment = f"  # {_one_line(source)}" if source else ""
    name = scalar(key)
    if isinstance(value, dict) and not _short(value, path):
        lines = [f"{indent}{name}:{comment}"]
        for each, inner in value.items():
            lines += _entry((*path, each), each, inner, draft, depth + 1)
        return lines
    if isinstance(value, list) and value and isinstance(value[0], dict):
        lines = [f"{indent}{name}:{comment}"]
        for item in value:
            lines.append(f"{indent}  - {flow(item)}")
        return lines
    return [f"{indent}{name}: {flow(value)}{comment}"]


def _short(value: dict[str, Any], path: Path) -> bool:
    """Whether a mapping stands on one line: probes and reports do, variables and services do not."""
    return path[-1] in ("health", "report", "ports") and len(flow(value)) < WIDTH


def flow(value: Any) -> str:
    """A value on one line, as YAML reads it back."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_inner, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{scalar(key)}: {_inner(item)}' for key, item in value.items())}}}"
    return scalar(value)


def _inner(item: Any) -> str:
    return scalar(item, inside=True) if isinstance(item, str) else flow(item)


def scalar(text: str, *, inside: bool = False) -> str:
    """A text, plain where YAML 1.1 and 1.2 both read it as this text, else in JSON's quotes."""
    plain = _PLAIN.fullmatch(text) and not _NOT_TEXT.fullmatch(text) and not text.endswith(":")
    if plain and not (inside and re.search(r":(?=$)", text)) and ": " not in text:
        return text
    return _quoted(text)


def _quoted(text: str) -> str:
    """In JSON's quotes, unprintable characters escaped; what no manifest can hold (NUL) is replaced."""
    usable = re.sub(r"[\x00\ud800-\udfff]", "\ufffd", text)
    quoted = json.dumps(usable, ensure_ascii=False)
    return re.sub(
        r"[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]", lambda match: f"\\u{ord(match[0]):04x}", quoted
    )

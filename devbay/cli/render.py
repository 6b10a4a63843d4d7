"""Bays and runs as text for people."""

from __future__ import annotations

from typing import Any

from devbay.cli.out import paint, table

STATE_COLOURS = {
    "running": "green", "healthy": "green", "passed": "green", "degraded": "red", "failed": "red",
    "error": "red", "timeout": "red", "unhealthy": "red", "lost": "red", "cold": "dim", "frozen": "blue",
    "verified": "green", "booted": "green", "boot_failed": "red", "task_failed": "red",
}  # fmt: skip


def state(word: str) -> str:
    """A state in its colour."""
    colour = STATE_COLOURS.get(word, "yellow")
    return paint(word, colour)


def bays(found: list[dict[str, Any]]) -> str:
    """The table of `devbay ls`."""
    several = len({bay["repository"] for bay in found}) > 1
    rows = [["BAY", "STATE", "BRANCH", "URL"]]
    for bay in found:
        name = f"{bay['name']}--{bay['project']}" if several else bay["name"]
        if bay.get("alias"):
            name += f" ({bay['alias']})"
        rows.append([name, bay["state"], bay.get("branch") or "-", bay.get("public_url") or "-"])
    text = table(rows)
    head, *body = text.splitlines()
    coloured = [
        line.replace(f"  {bay['state']}", f"  {state(bay['state'])}", 1)
        for line, bay in zip(body, found, strict=True)
    ]
    return "\n".join([paint(head, "dim"), *coloured])


def bay(info: dict[str, Any]) -> str:
    """One bay: what it is, its services, and what to do next."""
    reason = f": {info['reason']}" if info.get("reason") else ""
    partial = " (partial)" if info.get("partial") else ""
    rows = [
        ["state", f"{state(info['state'])}{partial}{reason}"],
        ["branch", _branch(info)],
        ["worktree", info["worktree"]],
    ]
    if info.get("public_url"):
        rows.append(["url", info["public_url"]])
    if info.get("memory_mb") is not None:
        rows.append(["memory", f"{info['memory_mb']} MiB"])
    if info.get("runs"):
        rows.append(["runs", " ".join(info["runs"])])
    parts = [paint(f"{info['name']}--{info['project']}", "bold"), table(rows, indent="  ")]
    if info.get("services"):
        parts.append(table([_service(service) for service in info["services"]], indent="  "))
    parts += [f"{paint('warning', 'yellow')}: {text}" for text in info.get("warnings", [])]
    parts += [f"{paint('approval needed', 'yellow')}: {text}" for text in info.get("pending_approvals", [])]
    if info.get("next"):
        parts.append(f"next: {info['next']}")
    return "\n".join(parts)


def _branch(info: dict[str, Any]) -> str:
    commit = f" at {info['commit'][:10]}" if info.get("commit") else ""
    return f"{info.get('branch') or '(detached)'}{commit}{', dirty' if info.get('dirty') else ''}"


def _service(service: dict[str, Any]) -> list[str]:
    health = service.get("health", "none")
    shown = service["state"] if health == "none" else f"{service['state']}, {health}"
    extra = [service.get("reason") or "", service.get("public_url") or service.get("url") or ""]
    if service.get("restarts"):
        extra.append(f"{service['restarts']} restarts")
    if service.get("exit_code") is not None:
        extra.append(f"exit code {service['exit_code']}")
    return [service["name"], shown, "  ".join(part for part in extra if part)]


def run(result: dict[str, Any]) -> str:
    """One run: the verdict, each failure as `file:line: message`, output where it adds something."""
    parts = [_verdict(result)]
    if result.get("detail"):
        parts.append(f"  {result['detail']}")
    for failure in result.get("failures", []):
        parts += _failure(failure)
    if result.get("more_failures"):
        parts.append(f"... and {result['more_failures']} more failures")
    if result.get("comparison"):
        parts += _comparison(result["comparison"])
    if result.get("output"):
        parts += ["output:", *(f"  {line}" for line in result["output"].splitlines())]
    parts += [f"approval needed: {text}" for text in result.get("pending_approvals", [])]
    if result.get("log") and result["status"] != "passed":
        parts.append(f"log: {result['log']}")
    if result.get("next"):
        parts.append(f"next: {result['next']}")
    return "\n".join(parts)


def _verdict(result: dict[str, Any]) -> str:
    words = [state(result["status"]), result.get("task") or "report"]
    if result.get("reason"):
        words.append(f"({result['reason']})")
    if result.get("duration_ms") is not None:
        words.append(f"in {result['duration_ms'] / 1000:.2f} s")
    counts = result.get("counts")
    if counts:
        names = ("passed", "failed", "errors", "skipped")
        words.append(", ".join(f"{counts[name]} {name}" for name in names if counts.get(name)) or "no tests")
    if result.get("exit_code"):
        words.append(f"exit code {result['exit_code']}")
    if result.get("run"):
        words.append(paint(result["run"], "dim"))
    return " ".join(words)


def _comparison(found: dict[str, Any]) -> list[str]:
    """What is new, fixed and shared, and the names of the first two."""
    totals = {
        kind: len(found.get(kind, [])) + found.get(f"more_{kind}", 0) for kind in ("new", "fixed", "shared")
    }
    lines = [f"compared with {found['with']}: {', '.join(f'{n} {kind}' for kind, n in totals.items())}"]
    for kind, colour in (("new", "red"), ("fixed", "green")):
        lines += [f"  {paint(kind, colour)} {name}" for name in found.get(kind, [])]
    return lines


def _failure(failure: dict[str, Any]) -> list[str]:
    where = failure.get("file") or failure.get("suite") or ""
    if failure.get("file") and failure.get("line"):
        where += f":{failure['line']}"
    phase = f" [{failure['phase']}]" if failure.get("phase") else ""
    phase += " [flaky]" if failure.get("flaky") else ""
    message = (failure.get("message") or "").splitlines() or [""]
    text = [f"{paint(where or '-', 'bold')}: {failure['name']}{phase}: {message[0]}"]
    text += [f"    {line}" for line in message[1:12]]
    if failure.get("expected") is not None or failure.get("actual") is not None:
        text.append(f"    expected {failure.get('expected')}, got {failure.get('actual')}")
    return text


def verification(found: dict[str, Any]) -> str:
    """Every try with what was repaired before it, then the run of the test task."""
    reason = f": {found['reason']}" if found.get("reason") else ""
    lines = [f"verification: {state(found['outcome'])}{reason}"]
    for number, each in enumerate(found.get("tries", []), 1):
        lines += [f"  repaired: {change}" for change in each.get("changes", [])]
        lines.append(f"  try {number}: {state(each['outcome'])}")
        for failure in each.get("failures", []):
            lines.append(f"    {failure['reason']}")
            lines += [f"      {paint(line, 'dim')}" for line in failure.get("log", [])]
    lines += [f"  waits for approval: {each}" for each in found.get("pending_approvals", [])]
    if "result" in found:
        lines.append(run(found["result"]))
        lines += [f"    {paint(line, 'dim')}" for line in found.get("log", [])]
    return "\n".join([*lines, *(f"  note: {each}" for each in found.get("notes", []))])


def diagnostics(answer: dict[str, Any]) -> str:
    """A manifest's findings and the verdict."""
    lines = []
    for item in answer.get("diagnostics", []):
        place = ":".join(str(part) for part in (item.get("file"), item.get("line")) if part)
        rule = f" ({item['rule']})" if item.get("rule") else ""
        path = f" {item['path']}:" if item.get("path") else ""
        colour = {"error": "red", "notice": "dim"}.get(item["severity"], "yellow")
        severity = paint(item["severity"], colour)
        place = place or answer.get("source") or "-"
        lines.append(f"{place}: {severity}:{path} {item['message']}{rule}")
        if item.get("fix"):
            lines.append(f"    fix: {item['fix']}")
    verdict = paint("valid", "green") if answer["valid"] else paint("not valid", "red")
    return "\n".join([*lines, f"{answer.get('source') or 'manifest'}: {verdict}"])

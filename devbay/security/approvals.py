"""Approvals: which capabilities still wait for a person, and who counts as one."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from pathlib import Path, PurePath

from devbay.errors import PERSON_NEEDED, DevbayError
from devbay.manifest.capabilities import Capability
from devbay.processes import PROC, Process, ancestry, environment

# Variables that agents set in the commands they run. Left out are those that an editor also sets in the
# terminals of people (CURSOR_TRACE_ID, TERM_PROGRAM) and those that people set to configure an agent
# (CODEX_HOME, AIDER_MODEL, CLAUDE_CODE_USE_BEDROCK). Sources: the documentation and release notes of the
# agents, as collected by is-ai-agent 0.4, std-env and Visual Studio Code's issue 311734.
MARKERS = frozenset(
    {"AGENT", "AI_AGENT"}  # agents.md's proposal 136, and what Goose, Amp and OpenCode set
    | {
        "CLAUDECODE",
        "CLAUDE_CODE",
        "CLAUDE_CODE_ENTRYPOINT",
        "CLAUDE_CODE_SESSION_ID",
        "CLAUDE_CODE_EXECPATH",
    }
    | {"CURSOR_AGENT", "CURSOR_SANDBOX"}
    | {"CODEX_THREAD_ID", "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_CI"}
    | {"GEMINI_CLI", "QWEN_CODE", "IFLOW_CLI", "ANTIGRAVITY_AGENT", "AUGMENT_AGENT", "CLINE_ACTIVE"}
    | {"ROO_ACTIVE", "CRUSH", "OPENCODE", "OPENCODE_PID", "OPENCODE_CLIENT", "OPENCODE_CALLER"}
    | {"TRAE_AI_SHELL_ID", "GOOSE_TERMINAL", "AMP_CURRENT_THREAD_ID", "COPILOT_AGENT"}
    | {"COPILOT_AGENT_SESSION_ID"}
)

# Programs that are agents; only such names as nothing else is commonly called by.
PROGRAMS = frozenset(
    {"claude", "codex", "gemini", "aider", "cursor-agent", "opencode", "goose", "amp", "crush", "qwen"}
    | {"auggie", "copilot", "droid", "openhands", "cline", "kilocode", "junie", "kiro-cli", "plandex"}
    | {"iflow", "codebuddy", "trae-cli"}
)
PACKAGES = frozenset({"claude-code", "gemini-cli", "codex", "qwen-code", "opencode-ai", "aider-chat"})
_INTERPRETERS = ("node", "python", "bun", "deno", "ruby")


def pending(capabilities: Iterable[Capability], grants: Container[str]) -> list[Capability]:
    """The capabilities without a grant, in their order; `grants` holds the keys granted to the repository."""
    return [capability for capability in capabilities if capability.key not in grants]


def may_grant(peer_pid: int | None, env: Mapping[str, str], proc: Path = PROC) -> None:
    """Raise `not_a_person` unless the process at the other end of the socket seems to be a person's.

    `env` is the environment that came with the request. Refused are processes that carry an agent's
    marker, that descend from one which does or from an agent's program, and those without a controlling
    terminal. This keeps an agent from approving by the way what it asked for; it is no barrier against
    intent: a process of the same user can make itself a terminal, clear its environment and leave its
    parents, or write to the store directly.
    """
    line = ancestry(peer_pid, proc) if peer_pid else []
    if not line:
        raise _not_a_person("the asking process cannot be seen")
    if marker := _marker(env):
        raise _not_a_person(f"the variable {marker} is set, as agents set it for the commands they run")
    for process in line:
        if name := agent_program(process):
            raise _not_a_person(f"it was started by {name} (process {process.pid})")
        if marker := _marker(environment(process.pid, proc)):
            raise _not_a_person(
                f"process {process.pid} ({process.command}) above it has {marker} set,"
                " as agents set it for the commands they run"
            )
    if not line[0].has_terminal:
        raise _not_a_person("it has no controlling terminal")


def agent_program(process: Process) -> str | None:
    """The agent's name if the process runs one, directly or as a script of an interpreter."""
    words = [process.command, *(PurePath(word).name for word in process.argv[:1])]
    if process.argv and PurePath(process.argv[0]).name.startswith(_INTERPRETERS):
        script = next((word for word in process.argv[1:] if not word.startswith("-")), "")
        words.append(PurePath(script).stem)
        words += [part for part in PurePath(script).parts if part in PACKAGES]
    return next((word for word in words if word in PROGRAMS or word in PACKAGES), None)


def _marker(env: Mapping[str, str]) -> str | None:
    return next((name for name in sorted(MARKERS) if env.get(name)), None)


def _not_a_person(reason: str) -> DevbayError:
    return DevbayError(
        "not_a_person",
        f"only a person may approve, and this does not look like one: {reason}",
        next="a person runs `devbay approve` in a terminal of their own",
        exit_code=PERSON_NEEDED,
    )

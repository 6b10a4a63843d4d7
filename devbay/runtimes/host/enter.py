"""Become a further process of a running service: `python -I -S enter.py PID START WORD...`.

Standard library only. The environment, the working directory and the sandbox are read from the service's
own process, so that no secret stands in an argument or a file. PID START: its process id and start time,
which are checked.
"""

import os
import sys


def main(words: list[str]) -> None:
    pid, start, argv = int(words[0]), words[1], words[2:]
    folder = f"/proc/{pid}"
    try:
        env, cmdline = _words(f"{folder}/environ"), _words(f"{folder}/cmdline")
        cwd = os.readlink(f"{folder}/cwd")  # noqa: PTH115
        with open(f"{folder}/stat") as file:  # noqa: PTH123 - this file imports as little as it can
            found = file.read().rpartition(")")[2].split()[19]
    except OSError as error:
        raise SystemExit(f"the service does not run any more: {error.strerror}") from error
    if found != start:
        raise SystemExit("the service does not run any more")
    if os.path.basename(cmdline[0]) == "bwrap":  # noqa: PTH119
        argv = [*cmdline[: cmdline.index("--") + 1], *argv]
    values = dict(word.split("=", 1) for word in env if "=" in word)
    if term := os.environ.get("TERM"):
        values["TERM"] = term
    os.chdir(cwd)
    try:
        os.execvpe(argv[0], argv, values)  # noqa: S606
    except OSError as error:
        sys.stderr.write(f"{argv[0]}: {error.strerror}\n")
        raise SystemExit(126 if isinstance(error, PermissionError) else 127) from error


def _words(path: str) -> list[str]:
    with open(path, "rb") as file:  # noqa: PTH123
        return [os.fsdecode(word) for word in file.read().split(b"\0")[:-1]]


if __name__ == "__main__":
    main(sys.argv[1:])

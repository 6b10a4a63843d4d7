"""The one fake of compose: a program that records how it was called and answers what it was told to."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

PROGRAM = """#!{python} -I
import json, os, sys, time
from pathlib import Path
if "version" in sys.argv:
    print({version!r})
    sys.exit(0)
files = [sys.argv[at + 1] for at, word in enumerate(sys.argv) if word == "-f"]
root = Path(sys.argv[sys.argv.index("--project-directory") + 1])
seen = {{str(each.relative_to(root)): each.read_text() for each in root.rglob("*") if each.is_file()}}
Path({record!r}).write_text(json.dumps({{"argv": sys.argv, "env": dict(os.environ), "seen": seen}}))
time.sleep({delay})
sys.stderr.write({error!r})
print(json.dumps({answer!r}).replace("ROOT", str(root)))
sys.exit({code})
"""


class StandIn:
    """A `docker` of its own folder; put that on the PATH."""

    def __init__(
        self, folder: Path, answer: Any = None, *, error: str = "", delay: float = 0, version: str = "2.26.1"
    ) -> None:
        self._record = folder / "record.json"
        self.folder = folder / "bin"
        self.folder.mkdir()
        program = self.folder / "docker"
        program.write_text(PROGRAM.format(
            python=sys.executable, record=str(self._record), answer=answer, error=error, delay=delay,
            version=version, code=1 if error else 0,
        ))  # fmt: skip
        program.chmod(0o755)

    @property
    def was_asked(self) -> bool:
        return self._record.exists()

    @property
    def record(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._record.read_text())
        return found

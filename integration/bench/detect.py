"""How long `devbay init` reads 20,000 files, whether it says the same twice, and what it opens. No engine.

    python -m integration.bench.detect [FILES]

Each round is a process of its own, as the command is. Every file and folder that it opens is told by an audit
hook of the interpreter: those of the repository, of Python, of devbay and of its own temporary folder (where
a copy of the stack is asked of compose, where that is installed) are expected. Any other fails the run, as do
more than a second (without compose, in the median) and bytes that differ.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

FILES = 20_000
ROUNDS = 5
LIMIT = 1.0
"""Seconds that detection may take."""
MANIFESTS = {
    "compose.yaml": (
        "services:\n  db: {image: 'postgres:17'}\n  web: {build: ., ports: ['80:8000'], depends_on: [db]}\n"
    ),
    "Dockerfile": "FROM node:20\nEXPOSE 8000\nCMD [node, s.js]\n",
    "package.json": '{"name": "big", "workspaces": ["packages/*"], "dependencies": {"knex": "1"}}',
    "knexfile.js": "",
    "pyproject.toml": "[project]\nname = 'big'\ndependencies = ['pytest', 'alembic']\n",
    "go.mod": "module big\n",
    "Gemfile": "gem 'rails'\ngem 'rspec'\n",
    "Cargo.toml": "[dependencies]\naxum = '1'\nsqlx = '1'\n",
    "pom.xml": "<a>flyway spring-boot</a>",
    "Makefile": "test:\n\tpytest\n",
    ".env.example": "A_URL=http://localhost:80\n",
    ".github/workflows/ci.yml": "jobs: {t: {steps: [{run: pytest}]}}\n",
}
ENDS = (".py", ".ts", ".go", ".rs", ".rb", ".sql", "_test.go", ".spec.ts", ".md", ".java")
_CHILD = """
import sys
opened = set()
def told(event, args):
    if event in ("open", "os.listdir", "os.scandir") and isinstance(args[0], (str, bytes)):
        opened.add(args[0] if isinstance(args[0], str) else args[0].decode("utf-8", "surrogateescape"))
import json, time
from pathlib import Path
from devbay.detect.init import init
sys.addaudithook(told)
began = time.perf_counter()
answer = init(Path(sys.argv[1]))
took = time.perf_counter() - began
print(json.dumps({"took": took, "answer": answer.model_dump_json(), "opened": sorted(opened)}))
"""


def make(root: Path, files: int) -> None:
    """A repository of many languages, `files` files in it, none of them empty."""
    for name, text in MANIFESTS.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for number in range(files - len(MANIFESTS)):
        end = ENDS[number % len(ENDS)]
        folder = root / "packages" / f"p{number // 100:03}"
        if number % 100 == 0:
            folder.mkdir(parents=True)
            name = f"p{number // 100}"
            (folder / "package.json").write_text(
                json.dumps({"name": name, "scripts": {"test": "node --test"}})
            )
        else:
            (folder / f"f{number}{end}").write_text(f"text of {number}\n" * 20)


def once(root: Path, work: Path, path: str) -> dict[str, object]:
    """What one process took, answered and opened."""
    env = {"PATH": path, "TMPDIR": str(work), "HOME": str(work), "PYTHONPATH": str(Path(__file__).parents[2])}
    argv = [sys.executable, "-c", _CHILD, str(root)]
    done = subprocess.run(argv, env=env, cwd=work, capture_output=True, text=True, check=True)
    found: dict[str, object] = json.loads(done.stdout)
    return found


def outside(opened: list[str], root: Path, work: Path) -> list[str]:
    """What was opened and is none of the repository's, Python's, devbay's or the child's own."""
    own = [root, work, Path(sys.prefix), Path(sys.base_prefix), Path(__file__).parents[2] / "devbay"]
    own += [Path(os.__file__).parent]
    real = [os.path.realpath(each) for each in own]
    paths = (str(work / path) for path in opened if path != os.devnull)
    return [path for path in paths if not any(os.path.realpath(path).startswith(each) for each in real)]


def main(files: int) -> int:
    """Measure, print, and return an exit code."""
    with tempfile.TemporaryDirectory(prefix="devbay-bench-") as place:
        root, work = Path(place) / "big", Path(place) / "work"
        root.mkdir()
        work.mkdir()
        make(root, files)
        (Path(place) / "secret").write_text("outside")
        (root / "link").symlink_to(Path(place) / "secret")
        wrong = False
        for title, path in (("our own reading", "/nonexistent"), ("beside compose", os.environ["PATH"])):
            rounds = [once(root, work, path) for _ in range(ROUNDS)]
            took = sorted(float(str(each["took"])) for each in rounds)
            answers = {str(each["answer"]) for each in rounds}
            strays = sorted({
                path for each in rounds
                for path in outside(list(each["opened"]), root, work)  # type: ignore[call-overload]
            })  # fmt: skip
            slow = path == "/nonexistent" and took[len(took) // 2] > LIMIT
            wrong = wrong or slow or len(answers) > 1 or bool(strays)
            middle = took[len(took) // 2]
            said = f"{title}: {files} files in {took[0]:.2f}-{took[-1]:.2f} s, median {middle:.2f} s"
            same = "the same bytes" if len(answers) == 1 else f"{len(answers)} different answers"
            sys.stdout.write(f"{said}; {same}; opened outside: {strays or 'nothing'}\n")
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else FILES))

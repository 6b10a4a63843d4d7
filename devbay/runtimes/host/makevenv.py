"""Make a virtual environment: `PYTHON -I makevenv.py FOLDER [WHEEL...]` (standard library, Python 3.6 on).

Its pip is one file, the wheel that comes with the interpreter (or the first WHEEL): a copy of an environment
costs by its number of files, and most services never call pip. `pip install --upgrade pip` replaces it. So
this also works where a distribution left out `ensurepip`.
"""

import shutil
import sys
import venv
from pathlib import Path

DEBIAN = Path("/usr/share/python-wheels")
SCRIPT = """#!{python}
import sys
from pip._internal.cli.main import main
sys.exit(main())
"""


def main(folder: str, *wheels: str) -> None:
    target = Path(folder)
    venv.EnvBuilder(symlinks=True).create(folder)
    found = [*bundled_pip(), *DEBIAN.glob("pip-*.whl"), *map(Path, wheels)]
    if not found:
        return
    version = ".".join(map(str, sys.version_info[:2]))
    wheel = Path(shutil.copy(str(found[0]), str(target / "lib")))
    packages = target / "lib" / f"python{version}" / "site-packages"
    (packages / "pip-in-a-wheel.pth").write_text(f"../../{wheel.name}\n")
    for name in ("pip", "pip3", f"pip{version}"):
        script = target / "bin" / name
        script.write_text(SCRIPT.format(python=target / "bin" / "python"))
        script.chmod(0o755)


def bundled_pip() -> "list[Path]":
    """The wheel of pip that comes with this interpreter, if any does."""
    try:
        import ensurepip
    except ImportError:
        return []
    return sorted(Path(ensurepip.__file__).parent.glob("_bundled/pip-*.whl"))


if __name__ == "__main__":
    main(*sys.argv[1:])

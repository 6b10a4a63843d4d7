"""What `devbay init` writes boots as it is: repositories of many kinds, each in two bays of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from integration import kinds_node, kinds_python
from integration.house import House
from integration.kind import Kind
from integration.repositories import git, repository
from integration.starting import SAID, STARTERS

CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
KINDS = [
    each for module in (kinds_python, kinds_node) for each in vars(module).values() if isinstance(each, Kind)
]
QUICK = (kinds_node.EXPRESS, kinds_python.PROCFILE)
FULL = [pytest.param(each, id=each.name, marks=() if each in QUICK else pytest.mark.full) for each in KINDS]


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    """A home whose installs know this machine's certificates."""
    with House(f'ca_bundle = "{CERTIFICATES}"\n' if CERTIFICATES.exists() else "") as found:
        yield found


@pytest.mark.parametrize("kind", FULL)
def test_what_init_writes_boots_in_two_bays_unedited(kind: Kind, house: House, page: Any):
    path, bays = two_bays(house, kind.name, kind.files)
    for bay in bays:
        assert kind.services <= {each["name"] for each in bay["services"]}
    assert [visit(page, bays[0]["public_url"]) for _ in range(2)] == [1, 2]
    assert visit(page, bays[1]["public_url"]) == 1, "the bays share what they count"
    for task, passed in kind.tasks.items():
        run = house.json("run", "two", task, cwd=path, timeout=300, code=None)
        assert (run["status"], run["parsed"]) == ("passed", True), run
        assert run["counts"]["passed"] == passed, run
    for name in ("one", "two"):
        house.devbay("rm", name, "--force", cwd=path)


@pytest.mark.full
@pytest.mark.parametrize("starter", STARTERS)
def test_a_starter_boots_in_two_bays_unedited(starter: str, house: House, page: Any):
    path, bays = two_bays(house, f"starter-{starter}", STARTERS[starter])
    assert f"the starter {starter}, " in (path / "devbay.yaml").read_text()
    for bay in bays:
        page.goto(bay["public_url"])
        assert SAID in page.inner_text("body")
        house.devbay("rm", bay["name"], "--force", cwd=path)


def two_bays(house: House, name: str, files: dict[str, str]) -> tuple[Path, list[dict[str, Any]]]:
    """A repository of these files and what `devbay init` writes for them, and two bays of it that run."""
    path = repository(house.root / "repositories" / name, files)
    house.repositories.append(path)
    house.devbay("init", str(path))
    git(path, "add", "devbay.yaml")
    git(path, "commit", "-q", "-m", "Say what a bay is")
    bays = [house.json("new", name, cwd=path, timeout=400, code=None) for name in ("one", "two")]
    for bay in bays:
        assert bay["state"] == "running", f"{bay}\n{(path / 'devbay.yaml').read_text()}"
    return path, bays


def visit(page: Any, url: str) -> int:
    """The number that the page at `url` counts."""
    page.goto(url)
    page.wait_for_function("/visit \\d+/.test(document.body.innerText)")
    return int(re.search(r"visit (\d+)", page.inner_text("body"))[1])

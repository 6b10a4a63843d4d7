"""The toolchain of this machine that stands for a service's image, and what to do where there is none."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from devbay.errors import WORK_FAILED, DevbayError
from devbay.runtimes.host.families import FAMILIES, Wanted, beside, wanted
from devbay.runtimes.host.machine import Machine
from devbay.runtimes.host.versions import Installed, kept, on_path, works

_ENGINE = "or start a container engine and make the bay anew"


@dataclass(frozen=True)
class Toolchain:
    """A language of this machine. version: as the program says it; wanted: as the image's tag does.

    bin: folders that go to the front of PATH. program: its interpreter or compiler. origin: a version
    manager's name, or a folder. note: empty where the version is what the tag asks for, else a sentence.
    env: variables by which tools find it.
    """

    family: str
    version: str
    wanted: str
    bin: tuple[Path, ...]
    program: Path
    origin: str
    note: str = ""
    env: tuple[tuple[str, str], ...] = ()

    @property
    def identity(self) -> str:
        """Changes when another program would run what is installed for this one."""
        return " ".join([self.family, self.version, str(self.program), *map(str, self.bin)])


def find(image: str, machine: Machine) -> Toolchain | None:
    """The best match for an image: the version its tag asks for, else a newer minor version of the same
    major one, else the nearest; at equal match the first of PATH, then of the version managers.

    None where the machine has nothing of it, or the image is of no known family: see `refusal`.
    """
    asked = wanted(image)
    if asked is None:
        return None
    if asked.family not in FAMILIES:
        return _system(image, asked)
    found = [(one, _best(one, machine)) for one in (asked, *beside(asked))]
    have = [(one, best) for one, best in found if best is not None]
    if len(have) < len(found):
        return None
    first = have[0][1]
    env = {FAMILIES[one.family].home: str(best.program.parent.parent) for one, best in have}
    env.pop("", None)
    unlike = [_said(one, best) for one, best in have if not _fits(one, best)]
    return Toolchain(
        family=asked.family,
        version=first.version,
        wanted=asked.version,
        bin=tuple(dict.fromkeys(best.program.parent for _, best in have)),
        program=first.program,
        origin=first.origin,
        note=f"{image} is met by {' and '.join(unlike)}" if unlike else "",
        env=tuple(sorted(env.items())),
    )


def here(machine: Machine) -> dict[str, str]:
    """Every language to the version that an image without a tag is met by; empty where there is none."""
    found = {family: _best(Wanted(family), machine) for family in sorted(FAMILIES)}
    return {family: best.version if best else "" for family, best in found.items()}


def refusal(image: str, machine: Machine) -> DevbayError:
    """`image_not_met` for an image that `find` finds nothing for, naming both ways out."""
    asked = wanted(image)
    if asked is None:
        return DevbayError(
            "image_not_met",
            f"{image} is an image that nothing on this machine stands for: without a container engine devbay"
            f" runs languages ({', '.join(sorted(FAMILIES))}), plain systems and the servers it knows",
            next=f"name an image of one of these in devbay.yaml, {_ENGINE}",
            exit_code=WORK_FAILED,
            image=image,
        )
    missing = [one for one in (asked, *beside(asked)) if one.family in FAMILIES and not _best(one, machine)]
    names = " and ".join(f"{FAMILIES[one.family].title} {one.version}".rstrip() for one in missing)
    steps = ", ".join(f"`{_install_hint(one)}`" for one in missing)
    return DevbayError(
        "image_not_met",
        f"{image} needs {names or asked.family} on this machine, and there is none",
        next=f"install it ({steps}), {_ENGINE}",
        exit_code=WORK_FAILED,
        image=image,
    )


def _install_hint(one: Wanted) -> str:
    hint = FAMILIES[one.family].install
    if one.version:
        return hint.format(version=one.version)
    return hint.replace("@{version}", "@latest").replace("{version}", "").rstrip()


def _best(asked: Wanted, machine: Machine) -> Installed | None:
    """The first exact match in search order, else the nearest one that really runs."""
    others: list[Installed] = []
    for one in _candidates(asked, machine):
        if one.numbers[: len(asked.numbers)] == asked.numbers and not _unwanted(asked, one):
            if works(asked.family, one, machine):
                return one
        else:
            others.append(one)
    for one in sorted(others, key=lambda one: distance(asked.numbers, one.numbers)):
        if not _excluded(asked, one) and works(asked.family, one, machine):
            return one
    return None


def _candidates(asked: Wanted, machine: Machine) -> Iterator[Installed]:
    """Those of PATH, then each version manager's, newest first."""
    yield from on_path(asked, machine)
    for layout in FAMILIES[asked.family].layouts:
        yield from kept(asked.family, layout, machine)


def _unwanted(asked: Wanted, one: Installed) -> bool:
    """An exact match that is not what is meant: Node's odd versions are no long-term ones, and a tag that
    gives no version does not mean the Python of 2010.
    """
    if asked.lts and not asked.numbers:
        return one.numbers[0] % 2 == 1
    return _excluded(asked, one)


def _excluded(asked: Wanted, one: Installed) -> bool:
    """Python 2 and 3 are two languages."""
    if asked.family not in ("python", "pypy"):
        return False
    return one.numbers[0] != (asked.numbers[0] if asked.numbers else 3)


def distance(asked: Sequence[int], has: Sequence[int]) -> tuple[int, ...]:
    """How far a version is from the wanted one: less is nearer.

    First newer versions of the same major one, the nearest first; then older ones of it; then other major
    versions, newer ones first at equal distance.
    """
    width = max(len(asked), len(has), 3)
    a, b = (tuple(numbers) + (0,) * (width - len(numbers)) for numbers in (asked, has))
    steps = tuple(abs(x - y) for x, y in zip(a, b, strict=True))
    if a[0] == b[0]:
        return (0, 0 if b >= a else 1, *steps)
    return (1, steps[0], 0 if b > a else 1, *(-number for number in b))


def _fits(asked: Wanted, one: Installed) -> bool:
    return one.numbers[: len(asked.numbers)] == asked.numbers and not _unwanted(asked, one)


def _said(asked: Wanted, one: Installed) -> str:
    return f"{FAMILIES[asked.family].title} {one.version} of {one.origin}"


def _system(image: str, asked: Wanted, release: Path = Path("/etc/os-release")) -> Toolchain:
    """This machine itself, for an image that is only a system."""
    try:
        lines = [line.partition("=") for line in release.read_text().splitlines()]
    except OSError:
        lines = []
    told = {name: " ".join(shlex.split(value)) for name, _, value in lines}
    name = told.get("PRETTY_NAME") or f"{platform.system()} {platform.release()}"
    numbers = tuple(int(word) for word in told.get("VERSION_ID", "").split(".") if word.isdigit())
    codename = told.get("VERSION_CODENAME", "")
    same_version = numbers[: len(asked.numbers)] == asked.numbers
    if not asked.numbers:
        same_version = asked.tag in ("", "latest", "stable") or asked.tag.startswith(codename or "\0")
    same = told.get("ID") == asked.family and same_version
    return Toolchain(
        family=asked.family,
        version=told.get("VERSION_ID", ""),
        wanted=asked.version,
        bin=(),
        program=Path("/bin/sh"),
        origin="this machine",
        note="" if same else f"{image} is met by this machine itself ({name})",
    )

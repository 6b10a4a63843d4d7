"""The tests of one run against those of another: new, fixed and shared failures, and flaky tests. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from devbay.answers import Comparison, Failure

MAX_NAMES = 15
MAX_NAME = 120
MAX_CHARACTERS = 1_200

Key = tuple[str | None, str | None, str]
"""(file, suite, name) of a test; the file where it is known."""


def key(failure: Failure) -> Key:
    """What a failure is known by in other runs; a checker's finding by what it says, since lines move."""
    if failure.scope == "finding":
        return failure.file, failure.message, failure.name
    return failure.file, failure.suite, failure.name


class Tests:
    """A set of tests. A file that one of two reports does not tell keeps nothing apart."""

    __test__ = False

    def __init__(self, keys: Iterable[Key]) -> None:
        self._files: dict[tuple[str | None, str], set[str | None]] = {}
        for file, suite, name in keys:
            self._files.setdefault((suite, name), set()).add(file)

    def __contains__(self, wanted: Key) -> bool:
        file, suite, name = wanted
        files = self._files.get((suite, name))
        return files is not None and (file is None or None in files or file in files)


def comparable(failures: Sequence[Failure]) -> list[Failure]:
    """Failures that another run can have too: not what stopped a run as a whole."""
    return [failure for failure in failures if failure.scope != "run"]


def compare(
    what: str, here: Sequence[Failure], there: Sequence[Failure], passed_here: Iterable[Key], *, whole: bool
) -> Comparison:
    """Compare two runs of a task.

    what: the other run, in words. passed_here: tests known to have passed here. whole: everything ran here,
    so that what is in no list of tests passed.
    """
    ours, theirs, passed = Tests(map(key, here)), Tests(map(key, there)), Tests(passed_here)
    new = [f for f in comparable(here) if key(f) not in theirs]
    shared = [f for f in comparable(here) if key(f) in theirs]
    fixed = [f for f in comparable(there) if key(f) not in ours and (whole or key(f) in passed)]
    fields: dict[str, object] = {"with": what}
    room = MAX_CHARACTERS
    for name, failures in (("new", new), ("fixed", fixed), ("shared", shared)):
        names = list(dict.fromkeys(map(label, failures)))
        shown: list[str] = []
        for each in names[:MAX_NAMES]:
            room -= len(each) + 4
            if room < 0:
                break
            shown.append(each)
        fields[name] = shown
        if len(names) > len(shown):
            fields[f"more_{name}"] = len(names) - len(shown)
    return Comparison.model_validate(fields)


def label(failure: Failure) -> str:
    """`tests/test_a.py: TestA: test_b`, short enough for a list."""
    suite = failure.suite if failure.suite and failure.scope != "finding" else None
    if suite and failure.file and suite.replace(".", "/") in failure.file:
        suite = None
    text = ": ".join(part for part in (failure.file, suite, failure.name) if part)
    return text if len(text) <= MAX_NAME else f"{text[: MAX_NAME - 1]}…"


def with_flaky(failures: Sequence[Failure], passed: Iterable[Key]) -> list[Failure]:
    """The failures, those marked that passed elsewhere on the same commit."""
    known = Tests(passed)
    return [
        failure.model_copy(update={"flaky": True})
        if failure.scope == "test" and key(failure) in known
        else failure
        for failure in failures
    ]

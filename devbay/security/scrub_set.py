"""Which values a bay's scrubber knows, and where they survive a restart of the daemon."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from pathlib import Path
from urllib.parse import unquote

from devbay.errors import DevbayError
from devbay.home import write_private

SHORTEST_INCLUDED = 8
_SAYS_SECRET = re.compile(
    r"secret|token|password|passwd|credential|key(?!board|word|frame|space)|auth(?!or(?!i))", re.I
)
_URL_PASSWORD = re.compile(r"\b[A-Za-z][\w+.-]*://[^\s/?#:@]*:([^\s/?#@]+)@")
_BAY_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")


def include_secrets(
    pairs: Iterable[tuple[str, str]], tracked: Callable[[str], bool], own: Set[str]
) -> dict[str, str]:
    """The values of `KEY=VALUE` include files that are to be scrubbed, by label.

    Those of 8 characters and more whose key says secret, token, password, passwd, key, credential or auth,
    and the password in any URL. Never one for which `tracked(value)` says that it stands in a tracked file,
    nor one in `own`: names, hosts and URLs of devbay's own.
    """
    found: dict[str, str] = {}
    for label, value in _candidates(pairs):
        if len(value) < SHORTEST_INCLUDED or value in own or value in found.values() or tracked(value):
            continue
        name, number = label, 2
        while name in found:
            name, number = f"{label} ({number})", number + 1
        found[name] = value
    return found


def _candidates(pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for key, value in pairs:
        if _SAYS_SECRET.search(key):
            yield key, value
        for match in _URL_PASSWORD.finditer(value):
            yield f"{key} password", match[1]
            if unquote(match[1]) != match[1]:
                yield f"{key} password", unquote(match[1])


class ScrubSets:
    """The sets of all bays, each in a file of mode 0600 in the private folder of the sockets.

    Not in the store: that folder is memory where the system has such a place, and is gone after a restart
    of the machine. The daemon looks secrets up again then.
    """

    def __init__(self, folder: Path) -> None:
        """`folder`: `Home.runtime_dir`."""
        self._folder = folder

    def save(self, bay_id: str, values: Mapping[str, str]) -> None:
        """Remember these values (label to value) beside those known: old logs still hold old values."""
        known = self.load(bay_id)
        merged = dict(known)
        for label, value in values.items():
            if known.get(label, value) != value:
                merged[f"{label} (earlier)"] = known[label]
            merged[label] = value
        if merged != known:
            write_private(self._path(bay_id), json.dumps(merged))

    def load(self, bay_id: str) -> dict[str, str]:
        """Label to value; empty if nothing is known. Raises `bad_scrub_set` if the file is not ours."""
        path = self._path(bay_id)
        try:
            found = json.loads(path.read_text())
        except FileNotFoundError:
            return {}
        except ValueError:  # from None: a JSON error holds the document
            raise _unreadable(path) from None
        if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
            raise _unreadable(path)
        return found

    def forget(self, bay_id: str) -> None:
        """Drop the bay's set."""
        self._path(bay_id).unlink(missing_ok=True)

    def _path(self, bay_id: str) -> Path:
        if not _BAY_ID.fullmatch(bay_id):
            raise DevbayError("bad_name", f"{bay_id[:60]!r} is no bay id", next="use the id from bay_list")
        return self._folder / f"scrub-{bay_id}.json"


def _unreadable(path: Path) -> DevbayError:
    return DevbayError(
        "bad_scrub_set",
        f"{path} does not hold the values to scrub, so nothing of this bay can be shown safely",
        next=f"remove {path} and run devbay up for the bay",
    )

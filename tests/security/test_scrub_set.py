from collections.abc import Callable
from pathlib import Path

import pytest

from devbay.errors import DevbayError
from devbay.security.scrub_set import ScrubSets, include_secrets


def included(
    *pairs: tuple[str, str], tracked: tuple[str, ...] = (), own: tuple[str, ...] = ()
) -> dict[str, str]:
    return include_secrets(pairs, tracked.__contains__, set(own))


@pytest.mark.parametrize(
    "key",
    [
        "SECRET", "JWT_SECRET", "githubToken", "DB_PASSWORD", "MYSQL_PASSWD", "API_KEY", "apikey",
        "AWS_CREDENTIALS", "AUTH", "BASIC_AUTH", "AUTHORIZATION", "SSH_KEY_PATHS",
    ],
)  # fmt: skip
def test_keys_that_say_secret_are_scrubbed(key: str) -> None:
    assert included((key, "0123456789")) == {key: "0123456789"}


@pytest.mark.parametrize(
    "key", ["NODE_ENV", "HOST", "AUTHOR", "GIT_AUTHOR_NAME", "KEYBOARD", "KEYWORDS", "LOG_LEVEL"]
)
def test_other_keys_are_not(key: str) -> None:
    assert included((key, "0123456789")) == {}


def test_short_tracked_and_own_values_are_left() -> None:
    pairs = [
        ("A_KEY", "1234567"),
        ("B_KEY", "in-a-tracked-file"),
        ("C_KEY", "login--shop.localhost"),
        ("D_KEY", "12345678"),
    ]
    assert included(*pairs, tracked=("in-a-tracked-file",), own=("login--shop.localhost",)) == {
        "D_KEY": "12345678"
    }


def test_the_password_of_any_url_is_scrubbed_as_written_and_decoded() -> None:
    found = included(
        ("DATABASE_URL", "postgres://shop:hunter2%2Fhunter@db:5432/shop"), ("HOME_URL", "http://a:3000/@x")
    )
    assert sorted(found.values()) == ["hunter2%2Fhunter", "hunter2/hunter"]
    assert all(label.startswith("DATABASE_URL") for label in found)


def test_a_key_with_two_values_keeps_both() -> None:
    found = included(("A_KEY", "first-value"), ("A_KEY", "second-value"), ("A_KEY", "first-value"))
    assert sorted(found.values()) == ["first-value", "second-value"]


def test_git_is_asked_only_about_candidates() -> None:
    asked: list[str] = []
    include_secrets(
        [("NODE_ENV", "development"), ("A_KEY", "0123456789"), ("B_KEY", "short")], ask(asked), set()
    )
    assert asked == ["0123456789"]


def ask(asked: list[str]) -> Callable[[str], bool]:
    def tracked(value: str) -> bool:
        asked.append(value)
        return False

    return tracked


def test_a_set_survives_a_restart_in_a_private_file(tmp_path: Path) -> None:
    ScrubSets(tmp_path).save("1a2b3c4d", {"db": "hunter22", "ü": "zwölf\n"})
    assert ScrubSets(tmp_path).load("1a2b3c4d") == {"db": "hunter22", "ü": "zwölf\n"}
    (file,) = tmp_path.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    assert ScrubSets(tmp_path).load("other") == {}


def test_what_was_known_stays_known_when_a_value_changes(tmp_path: Path) -> None:
    sets = ScrubSets(tmp_path)
    sets.save("a", {"db": "old-value", "x": "kept"})
    sets.save("a", {"db": "new-value"})
    assert set(sets.load("a").values()) == {"old-value", "new-value", "kept"}
    assert sets.load("a")["db"] == "new-value"


def test_a_destroyed_bays_set_is_gone(tmp_path: Path) -> None:
    sets = ScrubSets(tmp_path)
    sets.save("a", {"db": "hunter22"})
    sets.forget("a")
    sets.forget("a")
    assert sets.load("a") == {}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["{", "[]", '{"a": 1}', "\udcff"])
def test_a_damaged_set_is_an_error_that_shows_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "scrub-a.json").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(DevbayError) as caught:
        ScrubSets(tmp_path).load("a")
    assert caught.value.code == "bad_scrub_set"


@pytest.mark.parametrize("bay", ["../x", "", "a/b", "x" * 65])
def test_an_id_never_leaves_the_folder(tmp_path: Path, bay: str) -> None:
    with pytest.raises(DevbayError):
        ScrubSets(tmp_path).save(bay, {"a": "b"})

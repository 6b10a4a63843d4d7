"""Templates are found in a checkout and in an installed wheel."""

import pytest

from devbay.errors import DevbayError
from devbay.manifest import load
from devbay.templates import PLACES, template


def test_the_demo_of_this_checkout_is_found():
    assert (template("demo") / "devbay.yaml").is_file()


def test_an_installed_wheel_comes_before_a_checkout(tmp_path):
    for place in ("wheel", "checkout"):
        (tmp_path / place / "demo").mkdir(parents=True)
    found = template("demo", (tmp_path / "wheel", tmp_path / "checkout"))
    assert found == tmp_path / "wheel" / "demo"


def test_a_missing_template_names_the_places_that_were_searched(tmp_path):
    with pytest.raises(DevbayError, match="nothing-such") as raised:
        template("nothing-such", (tmp_path,))
    assert str(tmp_path) in raised.value.message


def test_the_wheel_maps_the_templates_to_where_they_are_looked_for():
    assert PLACES[0].name == "_templates"
    assert PLACES[0].parent.name == "devbay"


def test_the_demo_has_a_valid_manifest_without_a_finding():
    loaded = load(template("demo"))
    assert loaded.valid
    assert not loaded.diagnostics

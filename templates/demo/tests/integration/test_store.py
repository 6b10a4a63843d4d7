import pytest

from shop import store


@pytest.fixture
def db():
    """The bay's database; what a test changes is rolled back."""
    connection = store.connect()
    connection.run("start transaction")
    yield connection
    connection.run("rollback")
    connection.close()


def test_the_shop_has_products(db):
    assert [item["name"] for item in store.products(db)] == ["Dock line", "Fender", "Brass cleat"]


def test_an_order_is_kept_with_its_total(db):
    before = len(store.orders(db))
    assert store.order(db, 3, 2) == 2400
    last = store.orders(db)[before]
    assert (last["product"], last["quantity"], last["total"]) == ("Brass cleat", 2, 2400)


def test_an_unknown_product_cannot_be_ordered(db):
    with pytest.raises(KeyError):
        store.order(db, 99, 1)

"""Prepare the database: `python -m shop.migrate`."""

from shop import store

if __name__ == "__main__":
    store.migrate(store.connect())
    print("the shop has", len(store.PRODUCTS), "products")

"""Products and orders in Postgres."""

import os
from urllib.parse import unquote, urlsplit

import pg8000.native

from shop.prices import line_total

SCHEMA = """
create table if not exists product (
    id integer primary key, name text not null, blurb text not null, price integer not null);
create table if not exists purchase (
    id serial primary key, product integer not null references product,
    quantity integer not null check (quantity between 1 and 99), total integer not null);
"""
PRODUCTS = (
    (1, "Dock line", "Braided, ten metres, forgives a bad approach.", 1890),
    (2, "Fender", "Keeps one boat from becoming part of the next.", 2450),
    (3, "Brass cleat", "Holds whatever you tie to it.", 1200),
)


def connect() -> pg8000.native.Connection:
    url = urlsplit(os.environ["DATABASE_URL"])
    return pg8000.native.Connection(
        unquote(url.username or "postgres"),
        host=url.hostname,
        port=url.port or 5432,
        database=url.path.lstrip("/"),
        password=unquote(url.password or ""),
    )


def migrate(db: pg8000.native.Connection) -> None:
    """Make the tables and fill in the products; doing it twice changes nothing."""
    for statement in filter(str.strip, SCHEMA.split(";")):
        db.run(statement)
    for id, name, blurb, price in PRODUCTS:
        db.run(
            "insert into product values (:id, :name, :blurb, :price) on conflict do nothing",
            id=id,
            name=name,
            blurb=blurb,
            price=price,
        )


def products(db: pg8000.native.Connection) -> list[dict]:
    rows = db.run("select id, name, blurb, price from product order by id")
    return [dict(zip(("id", "name", "blurb", "price"), row, strict=True)) for row in rows]


def orders(db: pg8000.native.Connection) -> list[dict]:
    rows = db.run(
        "select purchase.id, product.name, quantity, total from purchase"
        " join product on product.id = purchase.product order by purchase.id"
    )
    return [dict(zip(("id", "product", "quantity", "total"), row, strict=True)) for row in rows]


def order(db: pg8000.native.Connection, product: int, quantity: int) -> int:
    """Buy something; the total in cents. KeyError for an unknown product."""
    found = db.run("select price from product where id = :id", id=product)
    if not found:
        raise KeyError(product)
    total = line_total(found[0][0], quantity)
    db.run(
        "insert into purchase (product, quantity, total) values (:product, :quantity, :total)",
        product=product,
        quantity=quantity,
        total=total,
    )
    return total

"""A small shop: products, orders, and a discount."""

"""What things cost, in cents."""

BULK_QUANTITY = 3
BULK_DISCOUNT_PERCENT = 10


def line_total(price: int, quantity: int) -> int:
    """The price of `quantity` pieces; from three of a kind they are 10 % cheaper."""
    full = price * quantity
    if quantity > BULK_QUANTITY:
        return full * (100 - BULK_DISCOUNT_PERCENT) // 100
    return full


def shown(cents: int) -> str:
    """`1234` as `12.34`."""
    return f"{cents // 100}.{cents % 100:02}"

from shop.prices import line_total, shown


def test_one_piece_costs_its_price():
    assert line_total(500, 1) == 500


def test_three_pieces_are_ten_percent_cheaper():
    assert line_total(500, 3) == 1350


def test_prices_are_shown_with_two_digits():
    assert shown(1205) == "12.05"

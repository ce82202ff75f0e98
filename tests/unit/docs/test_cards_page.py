"""docs/cards.md is what the table of vendors says, row by row."""

from core.cards.vendors import VENDORS
from hack.pages.cards import PAGE, page


def test_the_page_is_the_one_that_is_made_from_the_table() -> None:
    assert PAGE.read_text("utf-8") == page(), "run: python -m hack.pages.cards"


def test_each_vendor_has_an_example_with_its_cards_and_says_where_it_was_looked_up() -> None:
    text = page()
    for vendor in VENDORS:
        section = text.partition(f"## {vendor.name}\n")[2].partition("\n## ")[0]
        assert vendor.examples
        assert vendor.sources
        for card in (card for example in vendor.examples for card in example.cards):
            assert f"| `{card}` |" in section
        assert all(f"- {source}" in section for source in vendor.sources)

"""What somebody may have meant by the name of a card that is not known."""

from functools import lru_cache

from core import spelling
from core.cards import expression
from core.cards.inventory import Inventory


def nearest(card: str, inventory: Inventory) -> str:
    """The known card whose name is most like this one; empty where none is much like it."""
    return _nearest(card, inventory.cards())


def suggestion(cards: str, inventory: Inventory) -> str:
    """What is added to a message that the first alternative of an expression is not known; empty for one that is."""
    if not cards or expression.is_excessive(cards):
        return ""
    card = expression.split(cards)[0]
    near = "" if inventory.resources_of(card) else nearest(card, inventory)
    return f"; did you mean <{near}>?" if near else ""


@lru_cache(maxsize=256)
def _nearest(card: str, known: tuple[str, ...]) -> str:
    return spelling.nearest(card, known)

"""How many of a card one node has: what asks for more in one pod finds no node, however long it waits."""

from collections.abc import Iterable

from core.cards.inventory import Inventory


def could_hold(inventory: Inventory, card: str, milli: int) -> bool:
    """Whether a node has so many thousandths of a card, or a pool may bring one."""
    return inventory.pool_of(card) is not None or inventory.most_on_a_node(card) >= milli


def largest(inventory: Inventory, cards: Iterable[str]) -> tuple[int, str]:
    """The most thousandths that a node has of one of these cards, and of which; 0 where no node has any."""
    return max((inventory.most_on_a_node(card), card) for card in cards)

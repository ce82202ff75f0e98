"""Why a node that shows the product of a card does not carry it: a label is missing beside it, or the resource."""

from collections.abc import Collection

from core.cards.inventory import Inventory
from core.cards.vendors import SHARED_SUFFIX
from core.objects import Node


def passed_over(inventory: Inventory, node: Node, cards: Collection[str]) -> tuple[str, ...]:
    """What is remarked about a node that carries none of these cards, though a label of it names the product of one.

    Empty for any other node; an administrator who mends what is told gets the card.
    """
    notes = inventory.notes(node.name)
    if not notes or not inventory.on_node(node.name).keys().isdisjoint(cards):
        return ()
    products = {card.partition("/")[0] for card in cards}
    shown = {value.removesuffix(SHARED_SUFFIX) for value in node.labels.values()}
    return () if products.isdisjoint(shown) else notes

"""What containers take together, against what cards have together: where that is too much, nothing has to be searched for."""

from collections.abc import Iterable
from typing import NamedTuple

from core.mgpu.ask import Part
from core.mgpu.node import Card, NodeModel
from core.mgpu.shares import FULL_CARD


class Total(NamedTuple):
    """Over some cards. A place is that of one container on one card; a whole card is taken with all its places."""

    core: int
    memory: int
    places: int


class Excess(NamedTuple):
    """The first container that asks, with those before it, for more than there is: its position, and how much that is."""

    position: int
    asked: Total
    there: Total

    def __str__(self) -> str:
        if self.asked.core > self.there.core:
            return f"mgpu-core {self.asked.core}, the node has {self.there.core}"
        if self.asked.memory > self.there.memory:
            return f"mgpu-memory {self.asked.memory}, the node has {self.there.memory}"
        return f"{self.asked.places} places on cards, the node has {self.there.places}"


def free(cards: Iterable[Card], cap: int) -> Total:
    """What is left on the cards that take one more container."""
    core = memory = places = 0
    for card in cards:
        if card.core > 0 and card.instances < cap:
            core += card.core
            memory += card.memory
            places += cap - card.instances
    return Total(core, memory, places)


def idle(model: NodeModel, cap: int) -> Total:
    """What the node has without pods."""
    return Total(FULL_CARD * model.cards, model.memory * model.cards, cap * model.cards)


def excess(parts: Iterable[Part], there: Total, model: NodeModel, cap: int) -> Excess | None:
    """Where the containers pass what there is; None where they do not, which proves no room.

    The sum ends there: its cost is limited by what a node has, however many containers a pod has.
    """
    core = memory = places = 0
    for position, part in enumerate(parts):
        core += part.cards * part.core
        memory += part.cards * (model.memory if part.memory is None else part.memory)
        places += part.cards * (cap if part.full else 1)
        if core > there.core or memory > there.memory or places > there.places:
            return Excess(position, Total(core, memory, places), there)
    return None

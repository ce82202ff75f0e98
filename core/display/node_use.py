"""What is used of a node, as dashboards sum it up: cards that nobody is charged with, and how full its mGPU cards are."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import Final

from core.cards.expression import split
from core.mgpu.node import Card, NodeModel, model_of
from core.mgpu.occupancy import occupancy
from core.mgpu.shares import FULL_CARD
from core.queues.ledger import Ledger

FILLS: Final = ("00", "01-25", "26-50", "51-75", "76-99", "full")
"""In hundredths, and in their order also by their letters; of a card's core or its memory, whichever is taken more."""

_PARTS: Final = 4


@dataclass(frozen=True, slots=True)
class NodeUse:
    """Of one node: thousandths by card that pods use without its name, and the number of mGPU cards by each of `FILLS`."""

    unaccounted: Mapping[str, int] = field(default_factory=dict)
    fills: tuple[int, ...] = (0,) * len(FILLS)


def use_of(ledger: Ledger, name: str) -> NodeUse:
    """What is used of a node; nothing of one that does not exist."""
    node = ledger.nodes.get(name)
    if node is None:
        return NodeUse()
    pods = ledger.pods_on(name)
    stock = ledger.inventory.on_node(name)
    unaccounted: dict[str, int] = {}
    if stock:
        for pod in pods:
            if ledger.devices.wanted(pod):
                continue
            named = {stock[card].resource for card in split(pod.card_name) if card in stock}
            for card, carried in stock.items():
                asked = 0 if carried.resource in named else pod.requests.get(carried.resource, 0)
                if asked:
                    unaccounted[card] = unaccounted.get(card, 0) + asked
    fills = [0] * len(FILLS)
    model = model_of(node)
    if model.serves:
        for share in occupancy(model, pods, ledger.settings.mgpu).state.cards:
            fills[_place(share, model)] += 1
    return NodeUse(unaccounted, tuple(fills))


def _place(card: Card, model: NodeModel) -> int:
    """Where in `FILLS` a card stands: of parts of a card only a full one is the last."""
    taken = Fraction(FULL_CARD - card.core, FULL_CARD)
    if model.memory:
        taken = max(taken, Fraction(model.memory - card.memory, model.memory))
    return len(FILLS) - 1 if taken == 1 else ceil(taken * _PARTS)

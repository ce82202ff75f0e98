"""What is used of a node, as dashboards show it: its cards, those that nobody is charged with, and how full its mGPU cards are."""

from collections.abc import Mapping, Sequence
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
    """Of one node. Cards are in thousandths by name."""

    cards: Mapping[str, int] = field(default_factory=dict)
    """Those that it carries."""
    used: Mapping[str, int] = field(default_factory=dict)
    """Those of them that pods use, with the card's name or without."""
    unaccounted: Mapping[str, int] = field(default_factory=dict)
    """Those that pods use without the name."""
    taken: Sequence[Fraction] = ()
    """Of each mGPU card by its number, which part is taken: of its core or its memory, whichever is more."""

    @property
    def fills(self) -> Sequence[int]:
        """How many mGPU cards there are by each of `FILLS`."""
        found = [0] * len(FILLS)
        for taken in self.taken:
            # Of parts of a card only a full one is the last.
            found[len(FILLS) - 1 if taken == 1 else ceil(taken * _PARTS)] += 1
        return found


def use_of(ledger: Ledger, name: str) -> NodeUse:
    """What is used of a node; nothing of one that does not exist."""
    node = ledger.nodes.get(name)
    if node is None:
        return NodeUse()
    pods = ledger.pods_on(name)
    stock = ledger.inventory.on_node(name)
    used, unaccounted = dict.fromkeys(stock, 0), dict[str, int]()
    for pod in pods if stock else ():
        if ledger.devices.wanted(pod):
            continue
        named = {stock[card].resource for card in split(pod.card_name) if card in stock}
        for card, carried in stock.items():
            asked = pod.requests.get(carried.resource, 0)
            used[card] += asked
            if asked and carried.resource not in named:
                unaccounted[card] = unaccounted.get(card, 0) + asked
    model = model_of(node)
    shares = occupancy(model, pods, ledger.settings.mgpu).state.cards if model.serves else ()
    return NodeUse(
        {card: carried.milli for card, carried in stock.items()},
        used,
        unaccounted,
        tuple(_taken(share, model) for share in shares),
    )


def _taken(card: Card, model: NodeModel) -> Fraction:
    taken = Fraction(FULL_CARD - card.core, FULL_CARD)
    return max(taken, Fraction(model.memory - card.memory, model.memory)) if model.memory else taken

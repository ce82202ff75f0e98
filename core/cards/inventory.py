"""The cards of all nodes, kept up to date node by node: which resource a card is, and where it is.

The cost of a change is that of one node, however many there are.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, Self

from core import spelling
from core.cards.alarms import Alarm
from core.cards.discovery import CardStock, Labels, NodeCards, discover
from core.cards.expression import is_excessive, resources_by_name, split, stands_for_share
from core.cards.product import Product
from core.cards.vendor import Vendor, generic
from core.cards.vendors import VENDORS, table_of
from core.names import MGPU_RESOURCES
from core.objects import Node
from core.settings import Settings
from core.settings.model import PoolSettings

_NOTHING: Final = NodeCards({})
_UNKNOWN: Final = frozenset[str]()
_NO_POOLS: Final[Mapping[str, PoolSettings]] = {}


def _of_shares(pool: PoolSettings) -> bool:
    return pool.resource in MGPU_RESOURCES


class Inventory:
    """What the nodes carry, plus what the settings say about products (`overrides`, product -> resource).

    `table` is by which rows cards are found, `pools` make cards known that no node carries yet.
    """

    def __init__(
        self,
        overrides: Mapping[str, str],
        table: Sequence[Vendor] = VENDORS,
        pools: Mapping[str, PoolSettings] = _NO_POOLS,
    ) -> None:
        self._overrides = dict(overrides)
        self._pools = {card: pool for card, pool in pools.items() if not _of_shares(pool)}
        self.share_pools = {card: pool for card, pool in pools.items() if _of_shares(pool)}
        """The node pools that bring mGPU shares, by the card that they are of."""
        self._table = tuple(table)
        self._nodes: dict[str, NodeCards] = {}
        self._holders: dict[str, set[str]] = {}
        self._users: dict[str, dict[str, int]] = {}
        self._totals: dict[str, int] = {}
        self._resources: dict[str, frozenset[str]] = {}
        self._sorted: dict[str, tuple[str, ...]] = {}
        self._most: dict[str, int] = {}
        self._served: dict[str, tuple[str, ...]] | None = None
        self._shared: dict[str, Counter[tuple[str, str]]] = {}
        """By which label and value nodes with mGPU shares name a product, by that product."""
        self._shared_cards = Counter[str]()

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """An empty one by the settings."""
        return cls(settings.cards.resources, table_of(settings.discovery), settings.cards.pools)

    def put(self, node: Node) -> frozenset[str]:
        """Takes in a node in its present state. Returns the cards for which other resources are known now."""
        return self._replace(node.name, self.discovered(node))

    def discovered(self, node: Node) -> NodeCards:
        """The cards of a node in this state, whether or not it was taken in."""
        return discover(node, self._overrides, self._table)

    def row_of(self, label: str) -> Vendor | None:
        """The row of the table of vendors by which a product label is read; None where none reads it."""
        return next((row for row in self._table if label in row.products), None) or generic(label)

    def drop(self, name: str) -> frozenset[str]:
        """Takes out a node; one that is not there is no error. Returns the cards for which other resources are known now."""
        changed = self._replace(name, _NOTHING)
        self._nodes.pop(name, None)
        return changed

    def resources_of(self, card: str) -> frozenset[str]:
        """The resources that may stand for a card; empty for an unknown one.

        An override decides alone, then what the nodes show and what the card's pool will; of a share that neither has, what
        follows from its name.
        """
        if card in self._overrides:
            return frozenset((self._overrides[card],))
        found = self._resources.get(card, _UNKNOWN)
        if card in self._pools:
            found |= {self._pools[card].resource}
        return found or (resources_by_name(card) if "/" in card else _UNKNOWN)

    def pool_of(self, card: str) -> PoolSettings | None:
        """The node pool that brings a card; None where none is known."""
        return self._pools.get(card)

    def resource_of(self, card: str) -> str | None:
        """The canonical resource of a card, the smallest name; None for an unknown card."""
        return min(self.resources_of(card), default=None)

    def cards_of(self, resource: str) -> tuple[str, ...]:
        """The known cards that a resource may stand for, sorted."""
        return self._by_resource().get(resource, ())

    def _by_resource(self) -> Mapping[str, tuple[str, ...]]:
        if self._served is None:
            served: dict[str, list[str]] = {}
            for card in self.cards():
                for each in self.resources_of(card):
                    served.setdefault(each, []).append(card)
            self._served = {each: tuple(cards) for each, cards in served.items()}
        return self._served

    def cards_among(self, amounts: Mapping[str, int]) -> dict[str, tuple[str, ...]]:
        """The resources that are asked for and stand for cards, in order, with the known cards that each may stand for."""
        asked: dict[str, tuple[str, ...]] = {}
        served = self._by_resource() if self._served is None else self._served
        for resource in sorted(amounts):
            if amounts[resource] > 0:
                cards = served.get(resource, ())
                if cards or ("/" in resource and stands_for_share(resource)):
                    asked[resource] = cards
        return asked

    def cards(self) -> tuple[str, ...]:
        """All cards that a node carries or the settings name, sorted."""
        return tuple(sorted(self._holders.keys() | self._overrides.keys() | self._pools.keys()))

    def on_node(self, name: str) -> Mapping[str, CardStock]:
        """The cards of a node; empty for an unknown node."""
        return self._nodes.get(name, _NOTHING).cards

    def labels_on(self, name: str) -> Mapping[str, Labels]:
        """The labels by which each card of a node is told."""
        return self._nodes.get(name, _NOTHING).labels

    def product_on(self, name: str) -> Product | None:
        """The product that the labels of a node name; None for none, and for an unknown node."""
        return self._nodes.get(name, _NOTHING).product

    def shared_products(self) -> Collection[str]:
        """The products that nodes with mGPU shares name."""
        return self._shared.keys()

    def shared_cards(self, product: str) -> int:
        """How many cards of a product nodes give out in mGPU shares."""
        return self._shared_cards[product]

    def labels_of_shared(self, product: str) -> Collection[tuple[str, str]]:
        """By which labels, with which values, those nodes name this product."""
        return self._shared.get(product, Counter[tuple[str, str]]()).keys()

    def alarms(self, name: str) -> tuple[Alarm, ...]:
        """What on a node costs somebody cards."""
        return self._nodes.get(name, _NOTHING).alarms

    def notes(self, name: str) -> tuple[str, ...]:
        """Remarks about the labels and resources of a node, for the log."""
        return self._nodes.get(name, _NOTHING).notes

    def nodes_with(self, card: str) -> tuple[str, ...]:
        """The names of the nodes that carry a card, sorted."""
        if card not in self._sorted:
            holders = self._holders.get(card)
            if holders is None:
                return ()
            self._sorted[card] = tuple(sorted(holders))
        return self._sorted[card]

    def most_on_a_node(self, card: str) -> int:
        """The thousandths of a card on the node that has the most of it, whatever its state; 0 where none has any."""
        if card not in self._holders:
            return 0
        if card not in self._most:
            self._most[card] = max(self._nodes[name].cards[card].milli for name in self._holders[card])
        return self._most[card]

    def could_hold(self, card: str, milli: int) -> bool:
        """Whether a node has so many thousandths of a card, or a pool may bring one: else a pod waits for it in vain."""
        return self.pool_of(card) is not None or self.most_on_a_node(card) >= milli

    def largest(self, cards: Iterable[str]) -> tuple[int, str]:
        """The most thousandths that a node has of one of these cards, and of which; 0 where no node has any."""
        return max((self.most_on_a_node(card), card) for card in cards)

    def nearest(self, card: str) -> str:
        """The known card whose name is most like this one; empty where none is much like it."""
        return _nearest(card, self.cards())

    def totals(self) -> Mapping[str, int]:
        """Card -> thousandths over all nodes, whatever their state."""
        return dict(self._totals)

    @property
    def conflicts(self) -> Mapping[str, frozenset[str]]:
        """The cards for which nodes show different resources."""
        return {card: found for card, found in self._resources.items() if len(found) > 1}

    def conflict_notes(self) -> tuple[str, ...]:
        """A line for each of these cards, for the log; a pod may ask for any of the resources."""
        return tuple(
            f"nodes show the card {card} under different resources: {', '.join(sorted(found))}"
            for card, found in sorted(self.conflicts.items())
        )

    def _replace(self, name: str, new: NodeCards) -> frozenset[str]:
        old = self._nodes.get(name, _NOTHING)
        self._nodes[name] = new
        self._count_shared(old, -1)
        self._count_shared(new, 1)
        changed = {
            card for card in old.cards.keys() | new.cards.keys() if old.cards.get(card) != new.cards.get(card)
        }
        for card in changed:
            self._count(name, card, old.cards.get(card), -1)
            self._count(name, card, new.cards.get(card), 1)
        before = {card: self.resources_of(card) for card in changed}
        for card in changed:
            self._settle(card)
            self._served = None
        return frozenset(card for card in changed if self.resources_of(card) != before[card])

    def _count_shared(self, node: NodeCards, sign: int) -> None:
        if node.product is None or node.shared is None:
            return
        name, told = node.product.name, (node.product.label, node.product.value)
        self._shared_cards[name] += sign * node.shared
        labels = self._shared.setdefault(name, Counter())
        labels[told] += sign
        if not labels[told]:
            del labels[told]
        if not labels:
            del self._shared[name], self._shared_cards[name]

    def _count(self, name: str, card: str, stock: CardStock | None, sign: int) -> None:
        if stock is None:
            return
        users = self._users.setdefault(card, {})
        users[stock.resource] = users.get(stock.resource, 0) + sign
        self._totals[card] = self._totals.get(card, 0) + sign * stock.milli
        holders = self._holders.setdefault(card, set())
        if sign > 0:
            holders.add(name)
        else:
            holders.discard(name)

    def _settle(self, card: str) -> None:
        """Forgets a card that no node carries any more, and what was derived from the old state."""
        self._sorted.pop(card, None)
        self._most.pop(card, None)
        if not self._holders[card]:
            for table in (self._holders, self._users, self._totals, self._resources):
                table.pop(card, None)
            return
        self._resources[card] = frozenset(
            resource for resource, nodes in self._users[card].items() if nodes > 0
        )


def suggestion(cards: str, inventory: Inventory) -> str:
    """What is added to a message that the first alternative of an expression is not known; empty for one that is."""
    if not cards or is_excessive(cards):
        return ""
    card = split(cards)[0]
    near = "" if inventory.resources_of(card) else inventory.nearest(card)
    return f"; did you mean <{near}>?" if near else ""


@lru_cache(maxsize=256)
def _nearest(card: str, known: tuple[str, ...]) -> str:
    return spelling.nearest(card, known)

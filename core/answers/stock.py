"""What the nodes have of the cards that a pod asks for."""

from dataclasses import dataclass
from typing import Final

from core.answers.words import amount
from core.cards.ask import CardAsk
from core.queues.entry import Entry
from core.queues.ledger import Ledger
from core.steps import Pace, Steps, finish

_STEP: Final = 100
"""Nodes and pods on them that are looked at in half a millisecond."""


@dataclass(frozen=True, slots=True)
class Stock:
    """One card, in thousandths of it, over all nodes that are ready and take pods, and those that are not or do not."""

    card: str
    nodes: int
    total: int
    free: int
    largest: int
    """The most that one node has, were it empty."""
    most_free: int
    """The most that one node has free."""
    best_node: str
    reserved: int
    """What pods without a node may take of that any moment."""
    closed: int
    """Cards on nodes that are not ready or take no pods; not among the others."""


def stock_of(ledger: Ledger, entry: Entry) -> list[Stock]:
    """The stock of each card that would do, whatever else the pod asks of its node."""
    return finish(stock_in_steps(ledger, entry))


def stock_in_steps(ledger: Ledger, entry: Entry) -> Steps[list[Stock]]:
    """The same, with pauses."""
    asked = entry.demand.card
    found = list[Stock]()
    for card in () if asked is None else asked.alternatives:
        found += [(yield from _stock(ledger, card))]
    return found


def _stock(ledger: Ledger, card: str) -> Steps[Stock]:
    total = free = largest = most = closed = 0
    best = ""
    names = tuple(ledger.inventory.nodes_with(card))
    pace = Pace(_STEP)
    for name in names:
        pods = tuple(ledger.pods_on(name))
        if pace.due(1 + len(pods)):
            yield
        node, carried = ledger.nodes.get(name), ledger.inventory.on_node(name).get(card)
        if node is None or carried is None:
            continue  # gone meanwhile
        if node.unschedulable or not node.ready:
            closed += carried.milli
            continue
        used = sum(pod.requests.get(carried.resource, 0) for pod in pods)
        left = max(0, carried.milli - used)
        total += carried.milli
        largest = max(largest, carried.milli)
        free += left
        if left > most:
            most, best = left, name
    return Stock(card, len(names), total, free, largest, most, best, ledger.reserved(card), closed)


@dataclass(frozen=True, slots=True)
class Beyond:
    """That no node that there is could ever hold a pod: why, and what would help."""

    why: str
    remedy: str


class Reach:
    """What nodes could hold, were they empty and open. Each card's nodes are gone through once, and each distinct ask is judged once.

    True for as long as no node changes.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._most: dict[str, int] = {}
        self._found: dict[tuple[str, int], Beyond | None] = {}

    def beyond(self, entry: Entry) -> Beyond | None:
        """What is said where no node that there is could ever hold what a pod asks for; None where one could, and once it has one."""
        asked = entry.demand.card
        if asked is None or entry.pod.bound:
            return None
        ask = asked.expression, asked.milli
        if ask not in self._found:
            self._found[ask] = self._beyond(asked)
        return self._found[ask]

    def could_hold(self, card: str, milli: int) -> bool:
        """Whether a node has so much of a card, or a pool may bring one."""
        return self._ledger.inventory.pool_of(card) is not None or self._largest(card) >= milli

    def _largest(self, card: str) -> int:
        if card not in self._most:
            inventory = self._ledger.inventory
            carried = (inventory.on_node(name)[card].milli for name in inventory.nodes_with(card))
            self._most[card] = max(carried, default=0)
        return self._most[card]

    def _beyond(self, asked: CardAsk) -> Beyond | None:
        if any(self.could_hold(card, asked.milli) for card in asked.alternatives):
            return None
        have, card = max((self._largest(card), card) for card in asked.alternatives)
        wanted, most = amount(card, asked.milli), amount(card, have)
        vain = "let in now, the pod would find no node"
        if not have:
            return Beyond(f"no node has {asked.expression}", f"add a node that has {wanted}; {vain}")
        which = "" if card == asked.expression else f" {card}"
        return Beyond(
            f"no node has {wanted} {asked.expression}: the largest has {most}{which}",
            f"ask for at most {most} {card} in one pod, or add a node that has {wanted}; {vain}",
        )


def beyond_nodes(ledger: Ledger, entry: Entry) -> Beyond | None:
    """The same of one pod; for many a `Reach` is asked."""
    return Reach(ledger).beyond(entry)

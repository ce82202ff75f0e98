"""What the nodes have of the cards that a pod asks for."""

from dataclasses import dataclass
from typing import Final

from core.queues.entry import Entry
from core.queues.ledger import Ledger
from core.steps import Pace, Steps

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


def stock_of(ledger: Ledger, entry: Entry) -> Steps[list[Stock]]:
    """The stock of each card that would do, whatever else the pod asks of its node."""
    asked = entry.demand.card
    found = list[Stock]()
    pace = Pace(_STEP)
    for card in () if asked is None else asked.alternatives:
        found += [(yield from _stock(ledger, card, pace))]
    return found


def _stock(ledger: Ledger, card: str, pace: Pace) -> Steps[Stock]:
    total = free = largest = most = closed = 0
    best = ""
    names = tuple(ledger.inventory.nodes_with(card))
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

"""What the nodes have of the cards that a pod asks for."""

from dataclasses import dataclass

from core.answers.words import amount
from core.queues.entry import Entry
from core.queues.ledger import Ledger


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
    asked = entry.demand.card
    return [] if asked is None else [_stock(ledger, card) for card in asked.alternatives]


def _stock(ledger: Ledger, card: str) -> Stock:
    total = free = largest = most = closed = 0
    best = ""
    names = ledger.inventory.nodes_with(card)
    for name in names:
        node, carried = ledger.nodes[name], ledger.inventory.on_node(name)[card]
        if node.unschedulable or not node.ready:
            closed += carried.milli
            continue
        used = sum(pod.requests.get(carried.resource, 0) for pod in ledger.pods_on(name))
        left = max(0, carried.milli - used)
        total += carried.milli
        largest = max(largest, carried.milli)
        free += left
        if left > most:
            most, best = left, name
    return Stock(card, len(names), total, free, largest, most, best, ledger.reserved(card), closed)


def beyond_nodes(ledger: Ledger, entry: Entry) -> str:
    """What is said where no node that there is could ever hold what a pod asks for; empty where one could."""
    asked, found = entry.demand.card, stock_of(ledger, entry)
    if asked is None or not found or any(one.largest >= asked.milli or one.closed for one in found):
        return ""
    largest = max(found, key=lambda one: one.largest)
    return (
        f"no node has {amount(largest.card, asked.milli)} {asked.expression}: the largest has "
        f"{amount(largest.card, largest.largest)} {largest.card}; let in, the pod would find no node"
    )

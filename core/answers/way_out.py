"""The way out that is told with a reason to whom nothing that was tried would help: what is true of this pod."""

from typing import Final

from core import reasons
from core.cards.expression import is_excessive, split
from core.plan.decision import Hold
from core.queues.entry import Entry
from core.queues.ledger import Ledger

_NOWHERE: Final = frozenset({reasons.GET_TASK_REQUEST_RESOURCE_FAILED, reasons.NO_FREE_CARD})


def way_out(ledger: Ledger, entry: Entry, hold: Hold | None) -> str:
    """By the catalogue, unless the pod itself tells more than its reason; empty for one that does not wait."""
    if hold is None:
        return ""
    if hold.why.code != reasons.GET_TASK_REQUEST_RESOURCE_FAILED or hold.behind is not None:
        return hold.why.remedy
    cards = entry.pod.card_name
    if not cards or is_excessive(cards):
        return "make the pod anew, without what the message names"
    resources = frozenset[str]().union(*map(ledger.inventory.resources_of, split(cards)))
    if not resources:
        return f"name a card that the nodes carry (`cardquota cards` lists them), or wait for a node with {cards}"
    if resources.isdisjoint((*entry.pod.limits, *entry.pod.requests)):
        return f"make the pod anew, with limits for {min(resources)}"
    return "make the pod anew, without what the message names"


def besides(ledger: Ledger, entry: Entry, hold: Hold | None) -> str:
    """What else helps who names a card that is nowhere, and has quota for it: that card, which no change of objects makes."""
    if hold is None or hold.behind is not None or is_excessive(entry.pod.card_name):
        return ""
    limits, cards = ledger.limits.get(entry.queue), split(entry.pod.card_name)
    missing = [card for card in cards if limits is not None and limits.cards.get(card, 0) > 0]
    if hold.why.code not in _NOWHERE or not missing or any(map(ledger.inventory.nodes_with, cards)):
        return ""
    return (
        f"a node with {missing[0]}, for which queue {entry.queue} has quota; `cardquota cards` lists what the nodes show, and "
        "with cards.pools pods are let in for nodes that are still to come"
    )

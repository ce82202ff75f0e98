"""The way out that is told with a reason to whom nothing that was tried would help: what is true of this pod."""

from core import reasons
from core.cards.expression import is_excessive, split
from core.plan.decision import Hold
from core.queues.entry import Entry
from core.queues.ledger import Ledger


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

"""The first admission of a Volcano Job: what it declares as a whole has to fit before any of its pods is lifted."""

from core.plan.units import Unit
from core.queues.check import Balance, group_balance
from core.queues.group_request import declared_request
from core.queues.ledger import Ledger
from core.queues.usage import card_resources
from core.refusal import Refusal


def declared_shortfall(ledger: Ledger, unit: Unit, balance: Balance) -> Refusal | None:
    """Why the group cannot be let in; None when it can, has been already, or declares nothing.

    Once one of its pods is lifted or bound the pods count, and the declaration is ignored.
    """
    group, progress = unit.group, unit.progress
    if group is None or progress is None or progress.admitted or not group.card_request:
        return None
    if not unit.entries[0].allowed:
        # Whatever is left of the queue is none of its business; each of its pods is told why.
        return None
    settings = ledger.settings
    request = declared_request(group, balance.queue, card_resources(ledger.inventory), settings)
    if request is None or isinstance(request, Refusal):
        return request
    return group_balance(ledger, balance).shortfall(request)

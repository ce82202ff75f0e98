"""The first admission of a Volcano Job: what it declares as a whole has to fit before any of its pods is lifted."""

from core.plan.units import Unit
from core.queues.check import Balance
from core.queues.enqueue import GroupBalance, declared_request
from core.queues.ledger import Ledger
from core.queues.shortfall import Shortfall
from core.queues.usage import card_resources


def declared_shortfall(ledger: Ledger, unit: Unit, balance: Balance) -> Shortfall | None:
    """Why the group cannot be let in; None when it can, has been already, or declares nothing.

    Once one of its pods is lifted or bound the pods count, and the declaration is ignored.
    """
    group, progress = unit.group, unit.progress
    if group is None or progress is None or progress.admitted or not group.card_request:
        return None
    settings = ledger.settings
    request = declared_request(group, balance.queue, card_resources(ledger.inventory), settings)
    if request is None or isinstance(request, Shortfall):
        return request
    account = ledger.accounts[balance.queue]
    group_balance = GroupBalance(
        queue=balance.queue,
        limits=balance.limits,
        cpu_memory=balance.cpu_memory,
        used={card: account.used(card) for card in account.allocated.keys() | account.reserved.keys()},
        cpu_memory_used=balance.cpu_memory_used,
        uniform=settings.cards.multi_card_job == "uniform",
    )
    return group_balance.shortfall(request)

"""The first admission of a Volcano Job: what it declares as a whole has to fit before any of its pods is lifted."""

from typing import Final

from core.plan.units import Unit
from core.queues.amounts import CPU_AND_MEMORY, Amounts
from core.queues.check import Balance
from core.queues.enqueue import GroupBalance, declared_request
from core.queues.ledger import Ledger
from core.queues.shortfall import Shortfall
from core.queues.usage import card_resources

_NOTHING: Final[Amounts] = {}


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
    return group_balance(ledger, balance).shortfall(request)


def group_balance(ledger: Ledger, balance: Balance, promised: Amounts = _NOTHING) -> GroupBalance:
    """What is left of a queue for a group as a whole; `promised` to other groups counts as used."""
    account = ledger.accounts.get(balance.queue)
    booked = account.allocated.keys() | account.reserved.keys() if account is not None else frozenset[str]()
    cards = {key for key in promised if key not in CPU_AND_MEMORY}
    return GroupBalance(
        queue=balance.queue,
        limits=balance.limits,
        cpu_memory=balance.cpu_memory,
        used={key: balance.used(key) + promised.get(key, 0) for key in booked | cards},
        cpu_memory_used=lambda key: balance.cpu_memory_used(key) + promised.get(key, 0),
        uniform=ledger.settings.cards.multi_card_job == "uniform",
    )

"""Queues that use more than their quota: nobody is evicted for it, so somebody has to be told."""

from dataclasses import dataclass

from core.queues.account import Account
from core.queues.amounts import is_card
from core.queues.limits import Limits


@dataclass(frozen=True, slots=True)
class Overuse:
    """A card, an mGPU resource or devices of which more is allocated and reserved than the queue may use, in thousandths."""

    key: str
    used: int
    quota: int


def overuse(limits: Limits, account: Account) -> tuple[Overuse, ...]:
    """What a queue uses beyond its quota, in the order of the keys.

    A card that is not listed has a quota of nothing. What is booked with the choice of its card still open counts for
    none of them yet.
    """
    found = []
    for key in sorted({*account.allocated, *account.reserved}):
        quota = limits.cards.get(key, 0) if is_card(key) else limits.shares.get(key)
        if quota is not None and account.used(key) > quota:
            found.append(Overuse(key, account.used(key), quota))
    return tuple(found)

"""Queues that use more than their quota: nobody is evicted for it, so somebody has to be told."""

from dataclasses import dataclass

from core.queues.account import NOTHING, Sums
from core.queues.amounts import is_card
from core.queues.limits import Limits


@dataclass(frozen=True, slots=True)
class Overuse:
    """A card, an mGPU resource or devices of which more is allocated and reserved than the queue may use, in thousandths."""

    key: str
    used: int
    quota: int


def overuse(limits: Limits, account: Sums, below: Sums = NOTHING) -> tuple[Overuse, ...]:
    """What a queue uses beyond its quota, in the order of the keys.

    A card that is not listed has a quota of nothing, but for the pods `below` the queue: these it does not limit. What is
    booked with the choice of its card still open counts for none of them yet.
    """
    found = []
    for key in sorted({*account.allocated, *account.reserved, *below.allocated, *below.reserved}):
        quota = (limits.cards if is_card(key) else limits.shares).get(key)
        used = account.used(key) + (below.used(key) if quota is not None else 0)
        if quota is None and is_card(key):
            quota = 0
        if quota is not None and used > quota:
            found.append(Overuse(key, used, quota))
    return tuple(found)

"""A pod in the books of the queues, as its usage over time looks at it."""

from typing import Final

from core.names import MGPU_RESOURCES
from core.objects import Pod
from core.queues.attribution import owned_by_job
from core.queues.entry import Entry
from core.queues.ledger import Ledger
from core.stage import Stage
from core.usage.course import Charge, Sight
from core.usage.sums import Series

OFFLINE: Final = "offline"
ONLINE: Final = "online"

_SECOND: Final = 1_000_000


def sight_of(ledger: Ledger, uid: str, known: Charge, now: int) -> Sight | None:
    """The pod as it is now, None where nothing is to be said of it. `now`, in seconds since 1970, stands for an end that nobody has noted.

    `known` is what it was counted for until now.
    """
    entry, pod = ledger.entry(uid), ledger.observed(uid)
    if entry is None:
        return None if not known else _ended(ledger, pod, known, now)
    shown = pod or entry.pod
    # A bind under way has no time yet.
    scheduled = shown.scheduled if entry.stage is Stage.ALLOCATED else 0
    return Sight(charge_of(entry), shown.created // _SECOND, scheduled // _SECOND, None)


def sight_of_ended(ledger: Ledger, pod: Pod, now: int) -> Sight | None:
    """A pod that had ended before anybody here saw it; None for one of which nobody knows what it used and when."""
    if not (pod.terminal and pod.scheduled and pod.ended):
        return None
    return _ended(ledger, pod, charge_of(ledger.entry_before_end(pod)), now)


def charge_of(entry: Entry) -> Charge:
    """The cards that a pod is charged with. Shares of mGPU cards are none: they have no card's name."""
    kind = OFFLINE if owned_by_job(entry.pod) else ONLINE
    return tuple(
        (Series(entry.queue, card, entry.pod.namespace, kind), milli)
        for card, milli in entry.charged.items()
        if card not in MGPU_RESOURCES
    )


def _ended(ledger: Ledger, pod: Pod | None, charge: Charge, now: int) -> Sight | None:
    if pod is None:
        return Sight(charge, 0, 0, now)
    ends = []
    if pod.terminal:
        ends.append(pod.ended // _SECOND or now)
    if pod.deleting and (ledger.stages.gave_back(pod) or not pod.bound):
        # It is at the deletion that its quota is given back, not at the end of its grace.
        ends.append(pod.deadline // _SECOND - pod.grace_s)
    if not ends:
        # It is in no book for a while and may come back.
        return None
    created, scheduled = pod.created // _SECOND, pod.scheduled // _SECOND
    return Sight(charge, created, scheduled, min(now, *ends))

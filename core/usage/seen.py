"""A pod in the books of the queues, as its usage over time looks at it."""

from collections.abc import Mapping
from typing import Final

from core.dra.amounts import DeviceKey
from core.names import MGPU_CORE, MGPU_RESOURCES
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
_HUNDREDTHS: Final = 100


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
    return Sight(charge_of(ledger, entry), shown.created // _SECOND, scheduled // _SECOND, None)


def sight_of_ended(ledger: Ledger, pod: Pod, now: int) -> Sight | None:
    """A pod that had ended before anybody here saw it; None for one of which nobody knows what it used and when."""
    if not (pod.terminal and pod.scheduled and pod.ended):
        return None
    return _ended(ledger, pod, charge_of(ledger, ledger.entry_before_end(pod)), now)


def charge_of(ledger: Ledger, entry: Entry) -> Charge:
    """What a pod is counted for: its cards, its shares of mGPU cards in cards, and the devices of its claims."""
    kind = OFFLINE if owned_by_job(entry.pod) else ONLINE
    charged, devices = _in_cards(entry.charged), ledger.devices.counted(entry.pod)
    if devices:
        charged = {**charged, **devices}
    return tuple(
        [(Series(entry.queue, key, entry.pod.namespace, kind), milli) for key, milli in charged.items()]
    )


def quota_of(ledger: Ledger, queue: str) -> dict[str, int]:
    """The quota of a queue by the same keys, in thousandths; nothing of one that is gone."""
    limits = ledger.limits.get(queue)
    if limits is None:
        return {}
    numbers = {
        key: milli
        for key, milli in ledger.devices.quota(queue).items()
        if (device := DeviceKey.parse(key)) is not None and not device.dimension
    }
    return {**limits.cards, **_in_cards(limits.shares), **numbers}


def concerns(ledger: Ledger, pod: Pod) -> bool:
    """Whether anything of a pod is counted."""
    return pod.asks or ledger.devices.wanted(pod)


def _in_cards(charged: Mapping[str, int]) -> Mapping[str, int]:
    """Thousandths of cards: shares by their hundredths of a card, whatever memory goes with them."""
    if not any(key in charged for key in MGPU_RESOURCES):
        return charged
    cards = {key: milli for key, milli in charged.items() if key not in MGPU_RESOURCES}
    core = charged.get(MGPU_CORE, 0) // _HUNDREDTHS
    return {**cards, MGPU_CORE: core} if core else cards


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

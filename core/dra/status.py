"""What `status.allocated` of a queue, and the metrics of it, show of its devices.

Whoever makes a claim makes up the classes and capacities in it. Were all of them shown, a single pod could make the status of a
queue so large that the API server refuses it whole, and pods one after the other series without end.
"""

from collections.abc import Callable, Sequence
from heapq import nsmallest
from typing import Final

from core.dra.amounts import Amounts, DeviceKey, render
from core.dra.carriers import DeviceLimits
from core.dra.links import is_card_key
from core.objects import Queue

MOST_KEYS: Final = 256
"""So many keys of devices are shown at most: about 100 KB with the longest names."""


def published(
    queue: Queue, allocated: Amounts, limits: Sequence[DeviceLimits], known: Callable[[str], bool]
) -> dict[str, str]:
    """The keys of `status.allocated` that we answer for; what another manager owns there is left to it."""
    ours = {key: amount for key, amount in allocated.items() if key.resource not in queue.foreign_allocated}
    return {key.resource: render(amount) for key, amount in shown(ours, limits, known).items()}


def shown(amounts: Amounts, limits: Sequence[DeviceLimits], known: Callable[[str], bool]) -> Amounts:
    """What is shown of what a queue uses, the most important first.

    `limits` are those of the queue and of the queues above it, from the queue up. A class that is not `known` is shown where one of
    them lists it: pods may run on with the devices of one that has gone.
    """
    keys = (key for key in amounts if _is_shown(key, limits, known))
    return {key: amounts[key] for key in nsmallest(MOST_KEYS, keys, key=lambda key: _rank(key, limits))}


def _is_shown(key: DeviceKey, limits: Sequence[DeviceLimits], known: Callable[[str], bool]) -> bool:
    return (
        is_card_key(key)
        or known(key.device_class)
        or any(key.device_class in level.classes for level in limits)
    )


def _rank(key: DeviceKey, limits: Sequence[DeviceLimits]) -> tuple[bool, int, bool, DeviceKey]:
    """Cards, then what the queue lists, then what queues above list, then all else; devices before what is made up for them."""
    listed = next((height for height, level in enumerate(limits) if key in level.bounds), len(limits))
    return not is_card_key(key), listed, key.dimension != "", key

"""How many devices a queue may use, from whatever is stored in it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from core.dra.amounts import DeviceKey
from core.dra.carriers import CAPABILITY, carriers_of, device_keys
from core.objects import Queue


@dataclass(frozen=True, slots=True)
class DeviceLimits:
    """Upper limits in nano-units. A class that is not listed is not limited."""

    bounds: Mapping[DeviceKey, int] = field(default_factory=dict)
    classes: frozenset[str] = frozenset()
    """The classes that are listed, those that cannot be read among them."""
    closed: frozenset[str] = frozenset()
    """Classes of which nothing may be used, since their limit cannot be read."""
    unreadable: bool = False
    """Whether that goes for every class."""
    malformed: str = ""
    """What cannot be read; empty when everything can."""

    def closes(self, device_class: str) -> bool:
        """Whether nothing of a class may be used because its limit cannot be read."""
        return self.unreadable or device_class in self.closed


NO_LIMITS: Final = DeviceLimits()
_TOLD: Final = 3


def pruned(queue: Queue) -> bool:
    """Whether a quota was sent that the API server did not store, and nothing stands in its place."""
    stored = queue.spec_dra is not None or bool(queue.dra_quota or device_keys(queue.capability))
    return queue.sent_dra and not stored


def device_limits_of(queue: Queue) -> DeviceLimits:
    """The limits of a stored queue; of places that differ the smaller limit counts. Never raises."""
    carriers = carriers_of(queue)
    bounds: dict[DeviceKey, int] = {}
    for carrier in carriers:
        for key, bound in carrier.bounds[CAPABILITY].items():
            bounds[key] = min(bounds.get(key, bound.amount), bound.amount)
    malformed = [violation for carrier in carriers for violation in carrier.malformed]
    closed = frozenset(name for carrier in carriers for name in carrier.closed)
    return DeviceLimits(
        bounds=bounds,
        classes=closed.union(*(carrier.classes for carrier in carriers)),
        closed=closed,
        unreadable=any(carrier.unreadable for carrier in carriers),
        malformed="; ".join(map(str, malformed[:_TOLD])),
    )

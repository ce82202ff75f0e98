"""Devices that are limited or can be had in two ways, of which neither knows of the other.

By a card's name, and by a claim for a DeviceClass: neither quota counts the other. Which devices a class gives out, its
expressions decide, and nobody sees that from outside. That it is about the products of the vendor whose resource stands for a
card can be told from its name, its driver or its extended resource.

By a card quota, and by the capability of a queue, which counts by resources.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from core.cards.inventory import Inventory
from core.dra.amounts import DeviceKey
from core.dra.carriers import DeviceLimits
from core.dra.extended import DeviceClasses
from core.objects import DeviceClass
from core.quantity import render_milli
from core.queues.narrowed import Narrowed

_NAMED: Final = 3


def twofold(
    cards: Iterable[str],
    inventory: Inventory,
    classes: DeviceClasses,
    equivalents: Mapping[str, Collection[str]],
) -> Iterator[tuple[str, str]]:
    """(card, DeviceClass) of these cards that may be the same devices, unless `equivalents` say of which card the class is.

    Cards without a node are left out.
    """
    settled = {name for named in equivalents.values() for name in named}
    for card in cards:
        if inventory.nodes_with(card):
            vendors = {resource.partition("/")[0] for resource in inventory.resources_of(card)}
            for each in classes.values():
                if each.name not in settled and any(_is_about(each, vendor) for vendor in vendors):
                    yield card, each.name


def _is_about(device_class: DeviceClass, vendor: str) -> bool:
    domains = (device_class.name, *device_class.drivers, device_class.extended.partition("/")[0])
    return any(domain == vendor or domain.endswith(f".{vendor}") for domain in domains)


def told(device_class: str, limits: DeviceLimits) -> str:
    """What a queue says of a class: empty where it lets no pod use it, so that nothing is counted apart."""
    bound = limits.bounds.get(DeviceKey(device_class))
    if bound == 0 or limits.closes(device_class):
        return ""
    return f"DeviceClass {device_class} ({'no limit' if bound is None else f'limit {render_milli(bound // 10**6)}'})"


def contradiction(found: Narrowed) -> str:
    """What both say, and which of them holds."""
    cards = [f"{card} {count}" for card, count in found.cards.items()]
    more = f" and {len(cards) - _NAMED} more" if len(cards) > _NAMED else ""
    promised = f"{found.promised} card{'' if found.promised == 1 else 's'}"
    return (
        f"allows {render_milli(found.milli)} of {found.resource}, and the card quota has {promised} of it "
        f"({', '.join(cards[:_NAMED])}{more}): the smaller holds, so Volcano's quota keeps pods without a node that have their "
        "card quota"
    )

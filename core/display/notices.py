"""What is wrong with a queue itself, in words for an event on it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from core import reasons
from core.display.twofold import contradiction, told, twofold
from core.dra.carriers import NO_LIMITS, pruned
from core.objects import Queue
from core.quantity import render_milli
from core.queues.access import access_of
from core.queues.account import NOTHING
from core.queues.ledger import Ledger
from core.queues.narrowed import narrowed
from core.queues.numbers import go_float
from core.queues.overuse import Overuse, overuse

_PAIRS: Final = 5
_PRUNED: Final = (
    "spec.dra was applied and is not stored, since the definition of Queue lacked it; the queue has no device quota. "
    "Apply it again, or use the annotation volcano.sh/dra.quota, which no definition can lose"
)


@dataclass(frozen=True, slots=True)
class QueueNotice:
    """Something to be said about a queue; `news` is the part of it that makes it worth saying again when it changes."""

    reason: str
    message: str
    news: str


def queue_notices(ledger: Ledger, name: str) -> list[QueueNotice]:
    """What there is to say about a queue now; nothing about one that does not exist."""
    limits = ledger.limits.get(name)
    if limits is None:
        return []
    notices = [*_unreadable(limits.malformed, ledger.devices.malformed(name))]
    notices += _unreadable_access(ledger.queues[name])
    # From a quota that cannot be read it follows that all that runs there is beyond it; one reason is enough.
    below = NOTHING if ledger.subtrees is None else ledger.subtrees.below(name)
    own = () if limits.malformed else overuse(limits, ledger.accounts.get(name, NOTHING), below)
    # Those that are also had by claims stand with the devices.
    cards = tuple(one for one in own if one.key not in ledger.devices.linked)
    devices = () if ledger.devices.malformed(name) else ledger.devices.over(name)
    if cards or devices:
        notices.append(_exceeded(name, cards, devices))
    if ledger.settings.features.dra and pruned(ledger.queues[name]):
        notices.append(QueueNotice(reasons.DEVICE_QUOTA_PRUNED, _PRUNED, ""))
    notices += _counted_twice(ledger, name)
    notices += _narrowed(ledger, name)
    return notices


def _counted_twice(ledger: Ledger, name: str) -> Iterator[QueueNotice]:
    """Cards of the queue whose devices its pods may have by claims as well, beyond its card quota."""
    if not (ledger.settings.features.dra and ledger.devices.book.classes):
        return
    limits = ledger.devices.book.limits.get(name, NO_LIMITS)
    cards = sorted(card for card, quota in ledger.limits[name].cards.items() if quota)
    found = [
        (card, said)
        for card, device_class in twofold(
            cards, ledger.inventory, ledger.devices.book.classes, ledger.devices.book.links.classes
        )
        if (said := told(device_class, limits))
    ]
    if found:
        pairs = [f"<{card}> and {said}" for card, said in found]
        more = f" and {len(pairs) - _PAIRS} more pairs" if len(pairs) > _PAIRS else ""
        text = f"{', '.join(pairs[:_PAIRS])}{more} may be the same devices; claims are not counted by the card quota"
        yield QueueNotice(reasons.DEVICES_COUNTED_TWICE, f"Queue <{name}>: {text}", ", ".join(pairs))


def _narrowed(ledger: Ledger, name: str) -> Iterator[QueueNotice]:
    """A capability for the resource of cards that is smaller than their quota."""
    if ledger.settings.features.cards:
        for found in narrowed(ledger.queues[name], ledger.inventory.resources_of):
            text = f"Queue <{name}>: spec.capability {contradiction(found)}"
            yield QueueNotice(reasons.CAPABILITY_BELOW_QUOTA, text, text)


def _unreadable(cards: str, devices: str) -> Iterator[QueueNotice]:
    if cards:
        yield QueueNotice(
            reasons.CARD_QUOTA_MALFORMED, f"card quota cannot be read, the queue has no cards: {cards}", cards
        )
    if devices:
        text = f"device quota cannot be read, the DeviceClasses that it may be about are closed: {devices}"
        yield QueueNotice(reasons.DEVICE_QUOTA_MALFORMED, text, devices)


def _unreadable_access(queue: Queue) -> Iterator[QueueNotice]:
    problems = [
        f"{annotation} cannot be read, it admits nobody: {why}"
        for annotation, why in access_of(queue).problems
    ]
    if problems:
        text = "; ".join(problems)
        yield QueueNotice(reasons.QUEUE_ACCESS_MALFORMED, text, text)


def _exceeded(queue: str, cards: Sequence[Overuse], devices: Sequence[Overuse]) -> QueueNotice:
    """Told when a quota is cut, not again with every pod that ends afterwards."""
    told = [
        f"<{one.key}> used <{go_float(one.used)}>, but capability is <{go_float(one.quota)}>" for one in cards
    ]
    told += [f"{one.key} used {render_milli(one.used)}, limit {render_milli(one.quota)}" for one in devices]
    message = f"Queue <{queue}> uses more than its quota: {'; '.join(told)}; nothing is evicted, nothing more is lifted"
    cuts = ", ".join(f"{one.key}={one.quota}" for one in (*cards, *devices))
    return QueueNotice(reasons.QUOTA_EXCEEDED, message, cuts)

"""Where a pod stands in line: in the order in which the leader considers those who wait in a queue."""

from collections.abc import Mapping
from dataclasses import dataclass

from core.plan.decision import Hold
from core.plan.units import Unit, units_of
from core.queues.amounts import total
from core.queues.entry import Entry
from core.queues.ledger import Ledger
from core.steps import finish


@dataclass(frozen=True, slots=True)
class Waiting:
    """Who waits in one place: a pod alone, or the waiting members of a PodGroup together."""

    object: str
    """`Pod namespace/name` or `PodGroup namespace/name`."""
    pods: int
    asks: Mapping[str, int]
    """All of them together, in thousandths by key, as they are charged."""
    reason: str
    """The code of what holds them."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the line of a queue, counted from 1."""

    number: int
    length: int
    before: tuple[Waiting, ...]
    fifo: bool
    """Whether the first one blocks the queue; else whoever fits goes."""


def place_of(ledger: Ledger, entry: Entry, holds: Mapping[str, Hold]) -> Place | None:
    """The place of a waiting pod; `holds` is what each pod is told, by UID. None for one that does not wait."""
    units = finish(units_of(ledger, entry.queue))
    queue = ledger.queues.get(entry.queue)
    for number, unit in enumerate(units):
        if any(one.pod.uid == entry.pod.uid for one in unit.entries):
            before = tuple(_waiting(one, holds) for one in units[:number])
            return Place(number + 1, len(units), before, fifo=queue is not None and queue.fifo)
    return None


def unit_of(ledger: Ledger, entry: Entry) -> Unit | None:
    """Those that are looked at together with a waiting pod; None for one that does not wait."""
    for unit in finish(units_of(ledger, entry.queue)):
        if any(one.pod.uid == entry.pod.uid for one in unit.entries):
            return unit
    return None


def _waiting(unit: Unit, holds: Mapping[str, Hold]) -> Waiting:
    first = unit.entries[0].pod
    reasons = [holds[one.pod.uid].why.code for one in unit.entries if one.pod.uid in holds]
    return Waiting(
        object=f"Pod {first.key}" if unit.group is None else f"PodGroup {unit.group.key}",
        pods=len(unit.entries),
        asks=total(entry.charged for entry in unit.entries),
        reason=reasons[0] if reasons else "",
    )

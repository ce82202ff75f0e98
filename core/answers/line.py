"""Where a pod stands in line: in the order in which the leader considers those who wait in a queue."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.answers.shortage import asked_of_quota
from core.plan.decision import Hold
from core.plan.units import Unit
from core.queues.entry import Entry
from core.queues.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Waiting:
    """Who waits in one place: a pod alone, or the waiting members of a PodGroup or gang together."""

    object: str
    """`Pod namespace/name`, `PodGroup namespace/name` or `gang namespace/name`."""
    pods: int
    asks: Mapping[str, int]
    """What all of them together add to their queue, in thousandths by key, as they are counted: cards, shares and devices."""
    reason: str
    """The code of what holds them."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the line of a queue, counted from 1."""

    number: int
    length: int
    before: tuple[Waiting, ...]
    """All of them, or the first ones where only so many were asked for."""
    fifo: bool
    """Whether the first one blocks the queue; else whoever fits goes."""


def place_of(
    ledger: Ledger, units: Sequence[Unit], entry: Entry, holds: Mapping[str, Hold], most: int | None = None
) -> Place | None:
    """The place of a waiting pod in the line of its queue; None for one that does not wait.

    `holds` is what each pod is told, by UID; of those before it the first `most` are told.
    """
    queue = ledger.queues.get(entry.queue)
    for number, unit in enumerate(units):
        if _has(unit, entry):
            told = number if most is None else min(number, most)
            before = tuple(_waiting(ledger, one, holds) for one in units[:told])
            return Place(number + 1, len(units), before, fifo=queue is not None and queue.fifo)
    return None


def unit_of(units: Sequence[Unit], entry: Entry) -> Unit | None:
    """Those of a line that are looked at together with a waiting pod; None for one that does not wait."""
    return next((unit for unit in units if _has(unit, entry)), None)


def _has(unit: Unit, entry: Entry) -> bool:
    return any(one.pod.uid == entry.pod.uid for one in unit.entries)


def _waiting(ledger: Ledger, unit: Unit, holds: Mapping[str, Hold]) -> Waiting:
    first = unit.entries[0].pod
    reasons = [holds[one.pod.uid].why.code for one in unit.entries if one.pod.uid in holds]
    return Waiting(
        object=f"Pod {first.key}" if unit.group is None else unit.group.title,
        pods=len(unit.entries),
        asks=asked_of_quota(ledger, unit.entries),
        reason=reasons[0] if reasons else "",
    )

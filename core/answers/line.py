"""Where a pod stands in line: in the order in which the leader considers those who wait in a queue."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from core.answers.shortage import asked_of_quota
from core.plan.decision import Hold
from core.plan.units import Unit
from core.queues.entry import Entry
from core.queues.ledger import Ledger
from core.steps import Pace, Steps, first_of

_IN_A_STEP: Final = 1000
"""Pods at which one look is taken in half a millisecond."""


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
) -> Steps[tuple[Place | None, Unit | None]]:
    """The place of a waiting pod in the line of its queue, and those that are looked at together with it; None for one that does not wait.

    `holds` is what each pod is told, by UID; of those before it the first `most` are told.
    """
    queue = ledger.queues.get(entry.queue)
    number = yield from _number(units, entry.pod.uid)
    if number is None:
        return None, None
    before: list[Waiting] = []
    for unit in units[: number if most is None else min(number, most)]:
        before.append((yield from _waiting(ledger, unit, holds)))
        yield
    place = Place(number + 1, len(units), tuple(before), fifo=queue is not None and queue.fifo)
    return place, units[number]


def _number(units: Sequence[Unit], uid: str) -> Steps[int | None]:
    """Which of a line a pod is in, from 0."""
    pace = Pace(_IN_A_STEP)
    for number, unit in enumerate(units):
        for one in unit.entries:
            if pace.due():
                yield
            if one.pod.uid == uid:
                return number
    return None


def _waiting(ledger: Ledger, unit: Unit, holds: Mapping[str, Hold]) -> Steps[Waiting]:
    first = unit.entries[0].pod
    told = yield from first_of(unit.entries, lambda one: one.pod.uid in holds, _IN_A_STEP)
    hold = holds.get(told.pod.uid) if told is not None else None
    return Waiting(
        object=f"Pod {first.key}" if unit.group is None else unit.group.title,
        pods=len(unit.entries),
        asks=(yield from asked_of_quota(ledger, unit.entries)),
        reason=hold.why.code if hold is not None else "",
    )

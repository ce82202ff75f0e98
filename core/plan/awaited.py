"""By what, besides quota that is given back in their queue, waiting pods may be helped."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final, Self

from core import reasons
from core.queues.entry import Entry
from core.queues.ledger import Ledger
from core.steps import Pace, Steps

_IN_ONE_STEP: Final = 250
"""Pods, and cards that they accept, that are gone through in about half a millisecond."""

_FOR_ROOM: Final = {reasons.NO_FREE_CARD, reasons.AFFINITY_EXCLUDES_CARDS, reasons.MIXED_CARDS}
_FOR_CPU_MEMORY: Final = {reasons.INSUFFICIENT_CPU_QUOTA, reasons.INSUFFICIENT_MEMORY_QUOTA}


@dataclass(frozen=True, slots=True)
class Awaited:
    """The cards that pods of one queue accept, and whether any of them asks for shares that count against a card."""

    queue: str
    cards: AbstractSet[str]
    shares: bool

    @classmethod
    def by(cls, entry: Entry) -> Self:
        """What a pod waits for."""
        return cls(entry.queue, entry.demand.cards, entry.demand.share_milli > 0)

    @classmethod
    def by_all(cls, entries: Sequence[Entry]) -> Steps[Self]:
        """What these wait for, any of them; there is one at least."""
        cards: set[str] = set()
        shares, pace = False, Pace(_IN_ONE_STEP)
        for entry in entries:
            if pace.due(1 + len(entry.demand.cards)):
                yield
            cards |= entry.demand.cards
            shares = shares or entry.demand.share_milli > 0
        return cls(entries[0].queue, cards, shares)


def note(ledger: Ledger, awaited: Awaited, obstacles: AbstractSet[str]) -> None:
    """Remembers that pods wait for this, which have found these obstacles.

    In one piece with finding the last of them: what comes free before is told to nobody.
    """
    # Whoever has too little quota for the card of one node may have enough for that of another one.
    if awaited.shares or not obstacles.isdisjoint(_FOR_ROOM):
        ledger.wakeups.await_room(awaited.queue, awaited.cards)
    if not obstacles.isdisjoint(_FOR_CPU_MEMORY):
        ledger.wakeups.await_cpu_memory(awaited.queue)

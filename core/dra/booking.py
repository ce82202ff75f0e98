"""One pod in the book of devices, and what a change of the book has done."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from core.dra.wants import Wants
from core.hierarchy import Chain
from core.objects import Pod
from core.stage import Stage

Charge = tuple[str, str]
"""A queue, and a claim that it is charged with."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What a change has done: the queues of which something else is shown now, and those in which a waiting pod may fit now."""

    touched: frozenset[str] = frozenset()
    dirty: frozenset[str] = frozenset()


NO_EFFECT: Final = Effect()


@dataclass(frozen=True, slots=True)
class Booking:
    """One pod in the book, with the queues and the amounts that it was booked with."""

    pod: Pod
    stage: Stage
    queue: str
    chain: Chain
    wants: Wants

    @property
    def granted(self) -> bool:
        """Whether the pod has what it wants by right: bound, or let in."""
        return self.stage is Stage.ALLOCATED or (self.stage is Stage.RESERVED and self.pod.let_in)


def held(bookings: Iterable[Booking]) -> set[Charge]:
    """Where which claims are charged for pods that do not wait."""
    return {
        (queue, claim)
        for booking in bookings
        if booking.stage is not Stage.WAITING
        for queue in booking.chain.queues
        for claim in booking.wants.claims
    }

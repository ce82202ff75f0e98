"""One pod in the book of devices, and what a change of the book has done."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from core.dra.amounts import Amounts
from core.dra.links import OF_CARD
from core.dra.wants import Wants
from core.hierarchy import Chain
from core.objects import Pod
from core.stage import Stage

Charge = tuple[str, str, bool]
"""A queue, a claim that it is charged with, and whether quota was asked for that."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What a change has done: the queues of which something else is shown now, and those in which a waiting pod may fit now."""

    touched: frozenset[str] = frozenset()
    dirty: frozenset[str] = frozenset()

    def with_all(self, others: Iterable["Effect"]) -> "Effect":
        """What this change and others have done together."""
        found = (self, *others)
        return Effect(
            frozenset().union(*(effect.touched for effect in found)),
            frozenset().union(*(effect.dirty for effect in found)),
        )


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

    def asked_for(self, claim: str) -> bool:
        """Whether quota was asked for a claim of this pod when it was let in, or bound: whoever shares it has it for nothing.

        A claim that came past the gate, on a pod with a node for instance, is charged all the same, and pays for nobody else.
        """
        return self.granted and claim.removeprefix(OF_CARD) not in self.wants.unasked


def kind_of(pod: Pod, claims: Mapping[str, Amounts]) -> Hashable:
    """What decides about these claims of a pod.

    A claim that is named is the very one; of a claim that is made for the pod alone only the cost matters.
    """
    named = {f"{pod.namespace}/{claim}" for _, claim, _ in pod.claims if claim}
    return frozenset(
        Counter(
            (key if key.removeprefix(OF_CARD) in named else "", frozenset(cost.items()))
            for key, cost in claims.items()
        ).items()
    )


def held(bookings: Iterable[Booking]) -> set[Charge]:
    """Where which claims are charged for pods that do not wait."""
    return {
        (queue, claim, booking.asked_for(claim))
        for booking in bookings
        if booking.stage is not Stage.WAITING
        for queue in booking.chain.queues
        for claim in booking.wants.claims
    }

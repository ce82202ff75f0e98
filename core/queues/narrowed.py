"""A card quota beside `spec.capability` for the resource of its cards: Volcano counts by the second one, after the lift.

Its `capacity` plugin (`proportion` as well) counts pods by resources, whatever card they are; here they are counted by cards. Both
hold, so of two that differ the smaller one does. A capability that is above the quota limits nothing that the quota does not.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from core.objects import Queue
from core.queues.limits import cards_of

ResourcesOf = Callable[[str], frozenset[str]]


@dataclass(frozen=True, slots=True)
class Narrowed:
    """A resource of which `spec.capability` has less, `milli`, than the card quota promises: `cards`, in whole cards."""

    resource: str
    milli: int
    cards: Mapping[str, int]

    @property
    def promised(self) -> int:
        """The cards of the quota that are pieces of this resource."""
        return sum(self.cards.values())


def narrowed(queue: Queue, resources_of: ResourcesOf) -> Iterator[Narrowed]:
    """The resources whose capability contradicts the card quota of a queue, in order.

    A card that nobody knows, or that is known under several resources, is left out: nobody can say by which one it will be counted.
    """
    if not queue.card_quota or not queue.capability:
        return
    promised: dict[str, dict[str, int]] = {}
    for card, count in sorted(cards_of(queue).items()):
        resources = resources_of(card)
        if count and len(resources) == 1:
            promised.setdefault(next(iter(resources)), {})[card] = count
    for resource in sorted(promised.keys() & queue.capability.keys()):
        found = Narrowed(resource, queue.capability[resource], promised[resource])
        if found.milli < found.promised * 1000:
            yield found

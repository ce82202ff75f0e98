"""Kueue's published shape: which pods come when to how many queues, and the least time that they can take."""

import heapq
from dataclasses import dataclass
from statistics import mean
from typing import Final

QUEUES: Final = 6
"""Of one cohort."""
COHORTS: Final = 5
QUOTA: Final = 20
"""Cards of each queue."""


@dataclass(frozen=True, slots=True)
class Class:
    """Pods alike of each queue: how many at full size, cards of one, how long it runs, how often one comes, its priority."""

    name: str
    pods: int
    cards: int
    runs_s: float
    every_s: float
    priority: int


CLASSES: Final = (
    Class("small", 350, 1, 0.2, 0.1, 50),
    Class("medium", 100, 5, 0.5, 0.5, 100),
    Class("large", 50, 20, 1.0, 1.2, 200),
)


@dataclass(frozen=True, slots=True, order=True)
class Birth:
    """A pod to be created, `at_s` seconds after the beginning."""

    at_s: float
    queue: int
    size: int
    number: int

    @property
    def kind(self) -> Class:
        """Which pods it is like."""
        return CLASSES[self.size]

    @property
    def name(self) -> str:
        """The name of the pod."""
        return f"{self.kind.name}-{self.queue}-{self.number}"


def births(share: float, cohorts: int = 1) -> list[Birth]:
    """All pods in the order of their creation."""
    return sorted(
        Birth(number * kind.every_s, queue, size, number)
        for queue in range(cohorts * QUEUES)
        for size, kind in enumerate(CLASSES)
        for number in range(max(1, round(kind.pods * share)))
    )


def ideal(born: list[Birth]) -> tuple[float, dict[str, float]]:
    """The end of the last pod, and the mean time to admission by class, were nothing but quota to be waited for.

    By priority, and cards are kept free for the first in line: no order has the last pod end earlier.
    """
    ends: list[float] = []
    waits: dict[str, list[float]] = {kind.name: [] for kind in CLASSES}
    for queue in sorted({birth.queue for birth in born}):
        coming = [birth for birth in born if birth.queue == queue]
        waiting: list[Birth] = []
        running: list[tuple[float, int]] = []
        free = QUOTA
        while coming or waiting or running:
            now = min([birth.at_s for birth in coming[:1]] + [end for end, _ in running[:1]])
            while running and running[0][0] <= now:
                free += heapq.heappop(running)[1]
            while coming and coming[0].at_s <= now:
                waiting.append(coming.pop(0))
            waiting.sort(key=lambda birth: (-birth.kind.priority, birth.at_s))
            while waiting and waiting[0].kind.cards <= free:
                birth = waiting.pop(0)
                free -= birth.kind.cards
                heapq.heappush(running, (now + birth.kind.runs_s, birth.kind.cards))
                waits[birth.kind.name].append(now - birth.at_s)
                ends.append(now + birth.kind.runs_s)
    return max(ends), {name: mean(found or [0.0]) for name, found in waits.items()}

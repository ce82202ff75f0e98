"""What pods themselves show of the last hour: who came, who got a node, who has ended."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappush, heappushpop
from typing import Final

from core.objects import Pod
from core.queues.ledger import Ledger
from core.steps import Pace, Steps

HOUR_US: Final = 3_600_000_000
LATEST: Final = 30
"""So many are kept of each namespace, the latest: a page shows no more."""
_STEP: Final = 250

Moment = tuple[int, str, str, str]
"""When in microseconds since 1970, what, the pod, its queue."""


@dataclass(slots=True)
class Recent:
    """How often what happened, and the latest of it (as a heap, the oldest first)."""

    counts: Counter[str] = field(default_factory=Counter)
    latest: list[Moment] = field(default_factory=list)

    def add(self, moment: Moment) -> None:
        """Counts one, and remembers it if it is among the latest."""
        self.counts[moment[1]] += 1
        if len(self.latest) < LATEST:
            heappush(self.latest, moment)
        else:
            heappushpop(self.latest, moment)


def recent(ledger: Ledger, pods: Sequence[Pod], now: int) -> Steps[dict[str, Recent]]:
    """By namespace, and under no name of all together, of the pods that ask for something of ours; `now` in microseconds since 1970."""
    found: dict[str, Recent] = {}
    pace = Pace(_STEP)
    for pod in pods:
        if pace.due():
            yield
        for at, what in _moments(pod):
            if now - HOUR_US <= at <= now and pod.asks:
                queue = ledger.attribution(pod).queue
                for namespace in (pod.namespace, ""):
                    found.setdefault(namespace, Recent()).add((at, what, pod.key, queue))
    return found


def _moments(pod: Pod) -> Iterator[tuple[int, str]]:
    yield pod.created, "came"
    yield pod.scheduled, "started"
    yield pod.ended, "ended"

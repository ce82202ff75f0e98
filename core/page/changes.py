"""The last hour of pods: who came, who got a node, who has ended, who is gone."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappush, heapreplace
from itertools import count
from typing import Final

from core.objects import Pod
from core.page.witness import HOUR_US, Gone
from core.steps import Pace, Steps

LATEST: Final = 30
"""So many are kept of each namespace, the latest: a page shows no more."""
_STEP: Final = 250
_CHANGED: Final = 6
"""What a pod that has changed costs, in others."""

Moment = tuple[int, str, str, int, Pod | Gone]
"""When in microseconds since 1970, what, the key of the pod, a number that no other moment has, the pod."""


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
        elif moment[0] > self.latest[0][0]:
            heapreplace(self.latest, moment)


def recent(pods: Sequence[Pod], now: int, gone: Sequence[Gone] = ()) -> Steps[dict[str, Recent]]:
    """By namespace, and under no name of all together, of the pods that ask for something of ours, and of those that are `gone`.

    `now` is in microseconds since 1970.
    """
    everybody = Recent()
    found = {"": everybody}
    since = now - HOUR_US
    pace = Pace(_STEP)
    number = count()
    everyone: tuple[Pod | Gone, ...] = (*pods, *gone)
    for pod in everyone:
        changed = isinstance(pod, Gone) or (max(pod.created, pod.scheduled, pod.ended) >= since and pod.asks)
        if pace.due(_CHANGED if changed else 1):
            yield
        if not changed:
            continue
        of = found.get(pod.namespace)
        if of is None:
            of = found[pod.namespace] = Recent()
        for what, at in _moments(pod):
            if since <= at <= now:
                moment = (at, what, pod.key, next(number), pod)
                of.add(moment)
                everybody.add(moment)
    return found


def _moments(pod: Pod | Gone) -> Iterator[tuple[str, int]]:
    yield "came", pod.created
    yield "started", pod.scheduled
    yield "ended", pod.ended
    if isinstance(pod, Gone):
        yield "gone", pod.at

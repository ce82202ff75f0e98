"""What pods themselves show of the last hour: who came, who got a node, who has ended."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappush, heapreplace
from typing import Final

from core.objects import Pod
from core.steps import Pace, Steps

HOUR_US: Final = 3_600_000_000
LATEST: Final = 30
"""So many are kept of each namespace, the latest: a page shows no more."""
_STEP: Final = 250
_CHANGED: Final = 6
"""What a pod that has changed costs, in others."""

Moment = tuple[int, str, str, Pod]
"""When in microseconds since 1970, what, the key of the pod (no two have the same three), the pod."""


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


def recent(pods: Sequence[Pod], now: int) -> Steps[dict[str, Recent]]:
    """By namespace, and under no name of all together, of the pods that ask for something of ours; `now` in microseconds since 1970."""
    everybody = Recent()
    found = {"": everybody}
    since = now - HOUR_US
    pace = Pace(_STEP)
    for pod in pods:
        changed = max(pod.created, pod.scheduled, pod.ended) >= since and pod.asks
        if pace.due(_CHANGED if changed else 1):
            yield
        if not changed:
            continue
        of = found.get(pod.namespace)
        if of is None:
            of = found[pod.namespace] = Recent()
        for what, at in (("came", pod.created), ("started", pod.scheduled), ("ended", pod.ended)):
            if since <= at <= now:
                moment = (at, what, pod.key, pod)
                of.add(moment)
                everybody.add(moment)
    return found

"""The last hour: who came, who got a node, who has ended; and what nobody could read off the objects any more.

The latter are pods that are gone, and quotas as they were. It is kept for an hour.

Only in memory, and of what this process has seen itself: `since` says from when on it knows.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappush, heapreplace
from itertools import count
from typing import Final, Generic, Protocol, TypeVar

from core.objects import Pod, Queue
from core.steps import Pace, Steps

HOUR_US: Final = 3_600_000_000
PODS: Final = 5000
QUOTAS: Final = 500
"""So many are remembered; where there were more in an hour, what is known begins later."""
LATEST: Final = 30
"""So many are kept of each namespace, the latest: a page shows no more."""
_STEP: Final = 250
_CHANGED: Final = 6
"""What a pod that has changed costs, in others."""


class _Dated(Protocol):
    @property
    def at(self) -> int: ...


T = TypeVar("T", bound=_Dated)


@dataclass(frozen=True, slots=True)
class Gone:
    """A pod that is no more, since `at`. Moments in microseconds since 1970, 0 for what never came."""

    at: int
    key: str
    namespace: str
    queue: str
    created: int
    scheduled: int
    ended: int


@dataclass(frozen=True, slots=True)
class Requota:
    """Another quota of a queue, since `at`: what it was and is of each key that changed, in thousandths; None for no quota."""

    at: int
    queue: str
    keys: tuple[tuple[str, int | None, int | None], ...]


class Ring(Generic[T]):
    """The latest of what was seen, all of the last hour since `since`."""

    def __init__(self, most: int, since: int) -> None:
        self.since = since
        self._seen = deque[T](maxlen=most)

    def add(self, seen: T) -> None:
        """Remembers one, and forgets the oldest where there are too many."""
        if len(self._seen) == self._seen.maxlen:
            self.since = max(self.since, self._seen[0].at + 1)
        self._seen.append(seen)

    def of_hour(self, now: int) -> tuple[T, ...]:
        """Those of the hour before `now`; older ones are forgotten."""
        while self._seen and self._seen[0].at < now - HOUR_US:
            self._seen.popleft()
        return tuple(self._seen)


class Witness:
    """Follows pods and queues by their changes. `now` is in microseconds since 1970.

    `quota_of` says what a queue may use now, `queue_of` what a pod charges; `listed` whether everything has been seen once.
    """

    def __init__(
        self,
        now: Callable[[], int],
        quota_of: Callable[[str], Mapping[str, int]],
        queue_of: Callable[[Pod], str],
        listed: Callable[[], bool],
    ) -> None:
        self._now, self._quota_of, self._queue_of, self._listed = now, quota_of, queue_of, listed
        began = now()
        self.pods = Ring[Gone](PODS, began)
        self.quotas = Ring[Requota](QUOTAS, began)
        self._quota: dict[str, Mapping[str, int]] = {}

    def see_pod(self, old: Pod | None, new: Pod | None) -> None:
        """A change of a pod, as informers tell it: None for what was or is not there."""
        if old is None and not self._listed():
            # Who was deleted before the first list was complete is in none.
            self.pods.since = self._now()
        if old is not None and new is None and old.asks:
            queue = self._queue_of(old)
            self.pods.add(
                Gone(self._now(), old.key, old.namespace, queue, old.created, old.scheduled, old.ended)
            )

    def see_queue(self, old: Queue | None, new: Queue | None) -> None:
        """The same of a queue. Whoever books it has done so already."""
        if new is not None:
            name, after = new.name, self._quota_of(new.name)
            # One that is older than what is known here had a quota before, too: this one, as far as anybody knows.
            before = self._quota.get(name, {} if new.created > self.quotas.since else after)
            self._quota[name] = after
        elif old is not None:
            name, after = old.name, {}
            before = self._quota.pop(name, after)
        else:
            return
        if before != after:
            keys = sorted(key for key in {*before, *after} if before.get(key) != after.get(key))
            changed = tuple((key, before.get(key), after.get(key)) for key in keys)
            self.quotas.add(Requota(self._now(), name, changed))


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

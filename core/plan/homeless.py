"""The lifted pods with mGPU shares that are expected on no node, in their order: who is to be looked at, and who waits for room."""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush

from core.mgpu.destination import booked_on
from core.plan.wish import Wish
from core.queues.entry import Entry, ShareKey

Rank = tuple[bool, tuple[int, int, str]]


def _rank(entry: Entry) -> Rank:
    """What was promised goes before what is only counted."""
    return not booked_on(entry.pod), entry.order


class Ranked:
    """Pods by rank. To come, to leave and to be first costs next to nothing, however many there are."""

    __slots__ = ("_heap", "_ranks")

    def __init__(self) -> None:
        self._ranks: dict[ShareKey, Rank] = {}
        self._heap: list[tuple[Rank, ShareKey]] = []
        """Those that have left are in it until they would be first, or make up most of it."""

    def __len__(self) -> int:
        """How many there are."""
        return len(self._ranks)

    def __iter__(self) -> Iterator[ShareKey]:
        """All of them, in no order."""
        return iter(self._ranks)

    def __contains__(self, key: ShareKey) -> bool:
        """Whether this one is there."""
        return key in self._ranks

    def put(self, key: ShareKey, rank: Rank) -> None:
        """Takes one in; one that is there keeps its place unless its rank is another one now."""
        if self._ranks.get(key) != rank:
            self._ranks[key] = rank
            heappush(self._heap, (rank, key))

    def drop(self, key: ShareKey) -> None:
        """Takes one out, if it is there."""
        if self._ranks.pop(key, None) is not None and len(self._heap) > 2 * len(self._ranks) + 8:
            self._heap = [(rank, key) for key, rank in self._ranks.items()]
            heapify(self._heap)

    def first(self) -> tuple[Rank, ShareKey]:
        """The first of them; to be asked only while there is one."""
        while self._ranks.get(self._heap[0][1]) != self._heap[0][0]:
            heappop(self._heap)
        return self._heap[0]


class Homeless:
    """Pods that are to be looked at in their order, and pods that wait, by their wish, until there is room for it.

    Of those that wait with one wish the first alone is looked at when room was freed: where it finds none the others find none.
    """

    def __init__(self) -> None:
        self._line = Ranked()
        self._waiting: dict[Wish, Ranked] = {}
        self._wishes: dict[ShareKey, Wish] = {}

    def __bool__(self) -> bool:
        """Whether one is to be looked at."""
        return len(self._line) > 0

    def __contains__(self, key: ShareKey) -> bool:
        """Whether this one is to be looked at."""
        return key in self._line

    def __iter__(self) -> Iterator[ShareKey]:
        """All of them, those that wait too."""
        yield from self._line
        yield from self._wishes

    def next(self) -> ShareKey:
        """Whom to look at; to be asked only while there is one. It stays the next one until it is done, dropped or waits."""
        return self._line.first()[1]

    def done(self, key: ShareKey) -> None:
        """The pod has been looked at."""
        self._line.drop(key)

    def put(self, entry: Entry) -> None:
        """Has a pod looked at in its turn."""
        self.drop(entry.share_key)
        self._line.put(entry.share_key, _rank(entry))

    def wait(self, entry: Entry, wish: Wish) -> None:
        """The pod has been looked at, and there is no room for its wish."""
        self.drop(entry.share_key)
        self._wishes[entry.share_key] = wish
        self._waiting.setdefault(wish, Ranked()).put(entry.share_key, _rank(entry))

    def drop(self, key: ShareKey) -> None:
        """The pod needs not be looked at any more."""
        self._line.drop(key)
        wish = self._wishes.pop(key, None)
        if wish is not None:
            alike = self._waiting[wish]
            alike.drop(key)
            if not alike:
                del self._waiting[wish]

    def retry(self) -> None:
        """Room was freed: has the first one of each wish looked at."""
        for wish in tuple(self._waiting):
            self.retry_wish(wish)

    def retry_wish(self, wish: Wish) -> None:
        """There was room for one with this wish: has the next one looked at."""
        alike = self._waiting.get(wish)
        if alike is not None:
            rank, key = alike.first()
            self.drop(key)
            self._line.put(key, rank)

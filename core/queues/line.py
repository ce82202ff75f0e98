"""The waiting pods of one queue, in line."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Hashable, Iterator
from heapq import heappush
from typing import Final

from core.queues.entry import Entry
from core.sharded import in_parts, without_values
from core.steps import Steps, batched

Place = tuple[int, int, str, str]
"""Priority, age and name, as `Entry.order` has them, and the UID."""

Head = tuple[Place, int, Hashable, int]
"""A place with a wish, which may be of any type: the number between them decides where a place is there twice.

Last how many have that wish, this one with them.
"""

_IN_ONE_STEP: Final = 250
"""Places that are gone through in about half a millisecond."""


class Line:
    """Pods by their place, all together and for each wish. A change costs next to nothing, however many wait.

    `pods` has them by UID, `by_wish` the places of those that ask for the same. `grouped` is how many belong to a PodGroup.
    What goes through all of it goes in steps, or a piece at a time.
    """

    __slots__ = ("_new", "_places", "by_wish", "grouped", "pods")

    def __init__(self) -> None:
        self.pods: dict[str, Entry] = {}
        self.by_wish: dict[Hashable, list[Place]] = {}
        self.grouped = 0
        self._places: list[Place] = []
        self._new: dict[str, None] = {}

    def put(self, entry: Entry) -> None:
        """Takes in a pod that is not in line."""
        place = _place(entry)
        self.pods[entry.pod.uid] = entry
        self.pods = in_parts(self.pods)
        insort(self._places, place)
        insort(self.by_wish.setdefault(entry.wish, []), place)
        self.grouped += entry.pod.group_key != ""
        self._new[entry.pod.uid] = None
        self._new = in_parts(self._new)

    def drop(self, entry: Entry) -> None:
        """Takes out a pod as it was taken in."""
        place, wish = _place(entry), entry.wish
        del self.pods[entry.pod.uid]
        del self._places[bisect_left(self._places, place)]
        places = self.by_wish[wish]
        del places[bisect_left(places, place)]
        if not places:
            del self.by_wish[wish]
        if self.grouped:
            self.grouped -= entry.pod.group_key != ""
        self._new.pop(entry.pod.uid, None)

    def entries(self) -> Steps[list[Entry]]:
        """All pods by their place, but those that go meanwhile. Who comes meanwhile is left out as well."""
        found: list[Entry] = []
        for places in batched(tuple(self._places), _IN_ONE_STEP):
            if found:
                yield
            found += [entry for place in places if (entry := self.pods.get(place[-1])) is not None]
        return found

    def heads(self) -> Steps[list[Head]]:
        """The first place of each wish, in a heap."""
        found: list[Head] = []
        for number, wish in enumerate(tuple(self.by_wish), 1):
            places = self.by_wish.get(wish)
            if places:
                heappush(found, (places[0], number, wish, len(places)))
            if number % _IN_ONE_STEP == 0:
                yield
        return found

    def entry(self, place: Place, wish: Hashable) -> Entry | None:
        """Who stands at a place with a wish; None when nobody does any more."""
        entry = self.pods.get(place[-1])
        return entry if entry is not None and entry.wish == wish else None

    def after(self, place: Place, wish: Hashable) -> Place | None:
        """The next place of somebody with that wish."""
        places = self.by_wish.get(wish, ())
        following = bisect_right(places, place)
        return places[following] if following < len(places) else None

    # -- who has not been told anything yet -------------------------------------------------------------------

    def tell_all(self) -> None:
        """Everybody is to be told anew."""
        self._new = without_values(self.pods)

    def told(self, uid: str) -> None:
        """The pod has been told what becomes of it; until it comes back, changed, it is no news."""
        self._new.pop(uid, None)

    def untold(self) -> Iterator[Entry | None]:
        """Those who came, or came back, and were told nothing since, by their places; None wherever it may be paused.

        Pods may come and go meanwhile. Who comes to a place that has been passed is left for the next time.
        """
        last: Place | None = None
        while len(self._new) > _IN_ONE_STEP:
            # Sorting so many of them would take longer than going through all that wait.
            start = 0 if last is None else bisect_right(self._places, last)
            places = self._places[start : start + _IN_ONE_STEP]
            if not places:
                return
            last = places[-1]
            yield from self._new_at(places)
            yield None
        few = sorted(_place(self.pods[uid]) for uid in self._new)
        yield from self._new_at(few if last is None else few[bisect_right(few, last) :])

    def _new_at(self, places: list[Place]) -> Iterator[Entry]:
        for place in places:
            if place[-1] in self._new:
                yield self.pods[place[-1]]


def _place(entry: Entry) -> Place:
    return (*entry.order, entry.pod.uid)

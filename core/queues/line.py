"""The waiting pods of one queue, in line."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Hashable, Iterable

from core.queues.entry import Entry

Place = tuple[int, int, str, str]
"""Priority, age and name, as `Entry.order` has them, and the UID."""


class Line:
    """Pods by their place, all together and for each wish. A change costs next to nothing, however many wait.

    `pods` has them by UID, `by_wish` the places of those that ask for the same. `grouped` is how many belong to a PodGroup.
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
        insort(self._places, place)
        insort(self.by_wish.setdefault(entry.wish, []), place)
        self.grouped += entry.pod.group_name != ""
        self._new[entry.pod.uid] = None

    def drop(self, entry: Entry) -> None:
        """Takes out a pod as it was taken in."""
        place, wish = _place(entry), entry.wish
        del self.pods[entry.pod.uid]
        del self._places[bisect_left(self._places, place)]
        places = self.by_wish[wish]
        del places[bisect_left(places, place)]
        if not places:
            del self.by_wish[wish]
        self.grouped -= entry.pod.group_name != ""
        self._new.pop(entry.pod.uid, None)

    def entries(self) -> list[Entry]:
        """All pods by their place."""
        return [self.pods[place[-1]] for place in self._places]

    def uids(self) -> list[str]:
        """All UIDs by the places of their pods."""
        return [place[-1] for place in self._places]

    def in_order(self, uids: Collection[str]) -> list[str]:
        """Those of these that are in line, by their places."""
        if len(uids) == len(self._places):
            return [uid for uid in self.uids() if uid in uids]
        return [place[-1] for place in sorted(_place(self.pods[uid]) for uid in uids if uid in self.pods)]

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

    def take_new(self) -> dict[str, None]:
        """The pods that came, or came back, since this was asked."""
        new, self._new = self._new, {}
        return new

    def put_new(self, uids: Iterable[str]) -> None:
        """Says that nothing came of these."""
        self._new.update({uid: None for uid in uids if uid in self.pods})


def _place(entry: Entry) -> Place:
    return (*entry.order, entry.pod.uid)

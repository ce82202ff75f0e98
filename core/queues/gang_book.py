"""The gangs that pods name by their annotations: what a PodGroup says elsewhere is here put together from the members."""

from collections import Counter
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Final

from core.objects import Gang, Group, Pod
from core.objects.group import annotated

_SPARE: Final = 16


class Said:
    """Numbers that members say, and how many say each; the least and the largest of them are at hand.

    A change costs the logarithm of how many different ones there are, on the average of many: whoever writes pods may have each
    say another one, and take those away that say the largest.
    """

    __slots__ = ("_least", "_most", "counted")

    def __init__(self) -> None:
        self.counted: Counter[int] = Counter()
        self._least: list[int] = []
        """Heaps, in which some may stand that nobody says any more."""
        self._most: list[int] = []

    @property
    def least(self) -> int:
        """The least of them; there must be one."""
        while self._least[0] not in self.counted:
            heappop(self._least)
        return self._least[0]

    @property
    def most(self) -> int:
        """The largest of them; there must be one."""
        while -self._most[0] not in self.counted:
            heappop(self._most)
        return -self._most[0]

    def count(self, value: int, sign: int) -> None:
        """One more says this, or one fewer with `sign` -1."""
        self.counted[value] += sign
        if not self.counted[value]:
            del self.counted[value]
        elif sign > 0 and self.counted[value] == 1:
            heappush(self._least, value)
            heappush(self._most, -value)
            self._tidy()

    def _tidy(self) -> None:
        """One that comes and goes leaves an entry each time, unless it is the first."""
        if max(len(self._least), len(self._most)) > 2 * len(self.counted) + _SPARE:
            self._least, self._most = list(self.counted), [-value for value in self.counted]
            heapify(self._least)
            heapify(self._most)


@dataclass(slots=True)
class _Members:
    """What the members of one gang say that have not ended."""

    sizes: Said = field(default_factory=Said)
    created: Said = field(default_factory=Said)


class GangBook:
    """All of these gangs, brought up to date pod by pod; a change of a member costs about the same in a large gang as in a small one."""

    def __init__(self) -> None:
        self._of: dict[str, tuple[str, Gang, int]] = {}
        """What each member says: namespace, gang, and when it was created."""
        self._members: dict[str, _Members] = {}
        self._groups: dict[str, Group] = {}

    def put(self, pod: Pod) -> dict[str, Group | None]:
        """Takes in a pod. Returns the gangs that are others now, by key; None of one that is no more.

        A member that has ended says nothing any more about those that are still to start.
        """
        gang = None if pod.terminal or pod.gang is None or pod.gang.problem else pod.gang
        old = self._of.get(pod.uid)
        if gang is None:
            return {} if old is None else self.drop(pod.uid)
        new = pod.namespace, gang, pod.created
        if new == old:
            return {}
        changed = self._count(old, -1) if old is not None else {}
        self._of[pod.uid] = new
        return changed | self._count(new, 1)

    def drop(self, uid: str) -> dict[str, Group | None]:
        """Takes out a pod; unknown UIDs are fine. Returns the gangs that are others now."""
        old = self._of.pop(uid, None)
        return {} if old is None else self._count(old, -1)

    def _count(self, said: tuple[str, Gang, int], sign: int) -> dict[str, Group | None]:
        namespace, gang, created = said
        members = self._members.setdefault(gang.key, _Members())
        members.sizes.count(gang.size, sign)
        members.created.count(created, sign)
        was = self._groups.pop(gang.key, None)
        if not members.sizes.counted:
            del self._members[gang.key]
            return {gang.key: None}
        sizes = members.sizes.least, members.sizes.most
        now = annotated(namespace, gang, sizes, members.created.least)
        self._groups[gang.key] = now
        return {} if now == was else {gang.key: now}

"""The gangs that pods name by their annotations: what a PodGroup says elsewhere is here put together from the members."""

from collections import Counter
from dataclasses import dataclass, field

from core.objects import Gang, Group, Pod
from core.objects.group import annotated


@dataclass(slots=True)
class _Members:
    """What the members that have not ended say of one gang, and how many say so."""

    sizes: Counter[int] = field(default_factory=Counter)
    created: Counter[int] = field(default_factory=Counter)

    def add(self, size: int, created: int, sign: int) -> None:
        for counter, value in ((self.sizes, size), (self.created, created)):
            counter[value] += sign
            if not counter[value]:
                del counter[value]


class GangBook:
    """All of these gangs, brought up to date pod by pod; a change costs as much as a gang has different ages and sizes."""

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
        members.add(gang.size, created, sign)
        was = self._groups.pop(gang.key, None)
        if not members.sizes:
            del self._members[gang.key]
            return {gang.key: None}
        now = annotated(namespace, gang, members.sizes.keys(), min(members.created))
        self._groups[gang.key] = now
        return {} if now == was else {gang.key: now}

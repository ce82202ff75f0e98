"""The gangs that pods name by their annotations: what a PodGroup says elsewhere is here put together from the members."""

from collections import Counter
from dataclasses import dataclass, field

from core.objects import Gang, Group, Pod
from core.objects.group import annotated


@dataclass(slots=True)
class _Said:
    """Numbers that members say, and how many say each; the least and the largest of them are at hand."""

    least: int = 0
    most: int = 0
    counted: Counter[int] = field(default_factory=Counter)

    def count(self, value: int, sign: int) -> None:
        """Costs as much as there are different ones only where the last one to say the least, or the most, is gone."""
        self.counted[value] += sign
        if not self.counted[value]:
            del self.counted[value]
            if self.counted and value in (self.least, self.most):
                self.least, self.most = min(self.counted), max(self.counted)
        elif len(self.counted) == 1:
            self.least = self.most = value
        else:
            self.least, self.most = min(self.least, value), max(self.most, value)


@dataclass(slots=True)
class _Members:
    """What the members of one gang say that have not ended."""

    sizes: _Said = field(default_factory=_Said)
    created: _Said = field(default_factory=_Said)


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

"""Who starts with whom, pod by pod: the members of PodGroups, and the gangs that come, change and go with what their members name."""

from collections.abc import Callable, Mapping

from core.objects import Group, Pod
from core.queues.gang_book import GangBook
from core.queues.group_book import GroupBook
from core.queues.sources import QueueSources


class Membership:
    """`changed` is told the key of each group or gang of which fewer or more members may be missing now."""

    def __init__(self, groups: GroupBook, sources: QueueSources, changed: Callable[[str], None]) -> None:
        self._gangs = GangBook()
        self._groups = groups
        self._sources = sources
        self._changed = changed

    def put(self, pod: Pod) -> None:
        """Takes in a pod as it counts."""
        self._gangs_are(self._gangs.put(pod))
        if self._groups.put_pod(pod):
            self._changed(pod.group_key)

    def drop(self, uid: str, pod: Pod | None) -> None:
        """Takes out a pod that is gone; `pod` as it counted, None where it was not known."""
        if pod is not None and self._groups.drop_pod(uid):
            self._changed(pod.group_key)
        self._gangs_are(self._gangs.drop(uid))

    def _gangs_are(self, changed: Mapping[str, Group | None]) -> None:
        """Takes in what members say of their gangs now: the same as if a PodGroup came, changed or went."""
        for key, gang in changed.items():
            if gang is None:
                self._groups.drop_group(key)
            else:
                self._groups.put_group(gang)
            self._sources.put_gang(key, gang)
            self._changed(key)

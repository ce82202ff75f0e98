"""What is known ahead of the watch, by a read or by the answer to a write: an older state of a pod is not put over it."""

from collections.abc import Mapping
from typing import Any

from core.objects import Pod
from core.objects import raw as parts


class Readings:
    """Pods of which more is known than the watch has shown; as many as that, and no more."""

    def __init__(self) -> None:
        self._read: dict[str, Pod] = {}
        self._gone: set[str] = set()

    def outdates(self, found: Pod, shown: Pod | None) -> bool:
        """Whether what was read is later than what the watch shows now.

        Versions say so of another pod of the name as well: one that the watch has shown to be gone is never told of again, and
        who books it then has it booked for ever.
        """
        return shown is not None and _version(found) > _version(shown)

    def latest(self, shown: Pod) -> Pod:
        """The latest state that is known of a pod that the watch shows like this."""
        return self._read.get(shown.uid, shown)

    def known(self, raw: Mapping[str, Any]) -> Pod | None:
        """The pod that was read in this very state, so that it need not be made of it again."""
        if not self._read:
            return None
        read = self._read.get(parts.text(parts.mapping(raw, "metadata"), "uid"))
        return read if read is not None and is_state_of(read, raw) else None

    def put(self, found: Pod) -> None:
        """Takes note of a state that was read."""
        self._read[found.uid] = found

    def put_gone(self, uid: str) -> None:
        """Takes note that a pod does not exist any more which the watch still shows."""
        self._gone.add(uid)

    def admit(self, observed: Pod) -> bool:
        """Whether what the watch shows is news: neither older than what was read, nor that very state."""
        if observed.uid in self._gone:
            return False
        read = self._read.get(observed.uid)
        if read is None:
            return True
        if _version(observed) < _version(read):
            return False
        del self._read[observed.uid]
        return observed != read

    def drop(self, uid: str) -> None:
        """The watch shows that the pod is gone."""
        self._read.pop(uid, None)
        self._gone.discard(uid)


def is_state_of(pod: Pod, raw: Mapping[str, Any]) -> bool:
    """Whether a pod was made of this state: no two states of an object have the same version."""
    metadata = parts.mapping(raw, "metadata")
    version = parts.text(metadata, "resourceVersion")
    return version != "" and (version, parts.text(metadata, "uid")) == (pod.resource_version, pod.uid)


def _version(pod: Pod) -> int:
    """Versions of objects of one kind are numbers that grow (Kubernetes has promised so since 1.35, and kept to it before)."""
    return int(pod.resource_version) if pod.resource_version.isdecimal() else 0

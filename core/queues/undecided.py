"""The pods whose queue is still what others say: those that a change of a PodGroup, a Volcano Job or a namespace may send elsewhere."""

from collections.abc import Collection
from typing import Final

from core.index import Index
from core.objects import Pod, group_key
from core.queues.attribution import owned_by_job

_GROUP: Final = "podgroup "
_JOB: Final = "job "
_NAMESPACE: Final = "namespace "


class Undecided:
    """By the objects that they refer to. Pods whose queue is on record or fixed are not among them: nothing moves those any more.

    So whoever changes such an object all the time has nobody booked anew who holds what somebody granted him.
    """

    def __init__(self) -> None:
        self._by_object = Index()

    def put(self, pod: Pod) -> None:
        """Follows a pod from now on."""
        group, job = pod_group_key(pod), job_key(pod)
        self._by_object.put(
            pod.uid,
            _GROUP + group if group is not None else None,
            _JOB + job if job is not None else None,
            _NAMESPACE + pod.namespace,
        )

    def drop(self, uid: str) -> None:
        """Forgets a pod: its queue is decided, or it is in no book."""
        self._by_object.put(uid)

    def of_group(self, key: str) -> Collection[str]:
        """The UIDs of those that name this PodGroup of Volcano, whether or not they start with it."""
        return self._by_object.get(_GROUP + key)

    def of_job(self, key: str) -> Collection[str]:
        """The UIDs of those that the Volcano Job of this key controls."""
        return self._by_object.get(_JOB + key)

    def of_namespace(self, name: str) -> Collection[str]:
        """The UIDs of those in a namespace."""
        return self._by_object.get(_NAMESPACE + name)


def pod_group_key(pod: Pod) -> str | None:
    """The key of the PodGroup of Volcano that a pod names; None for none."""
    return group_key.volcano(pod.namespace, pod.group_name) if pod.group_name else None


def job_key(pod: Pod) -> str | None:
    """The key of the Volcano Job that controls a pod; None for none."""
    return f"{pod.namespace}/{pod.owner.name}" if pod.owner is not None and owned_by_job(pod) else None

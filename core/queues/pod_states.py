"""Every pod as the cluster has it, and over that as a decision under way has left it."""

from collections.abc import Collection
from dataclasses import replace

from core import names
from core.mgpu.destination import nominated_for
from core.objects import Pod
from core.queues.begun import Begun
from core.sharded import Sharded
from core.stage import Stages


class PodStates:
    """Both states by UID."""

    def __init__(self, stages: Stages) -> None:
        self.observed = Sharded[Pod]()
        self.begun = Begun(stages)
        self.assumed: dict[str, Pod] = {}
        """Only where the watch has not shown the outcome of the decision."""
        self.moving: dict[str, str] = {}
        """For which node a pod is to be nominated instead of the one on record; until the watch shows that, or its end."""

    def pod(self, uid: str) -> Pod | None:
        """A pod as assumed, else as observed."""
        return self.assumed.get(uid) or self._moved(self.observed.get(uid))

    def pods(self, uids: Collection[str]) -> list[Pod]:
        """Those of these pods that are known, in the same order."""
        return [pod for uid in uids if (pod := self.pod(uid)) is not None]

    def see(self, pod: Pod) -> Pod:
        """Takes in a pod as observed. Returns it as it counts: as assumed, unless that is overtaken now."""
        self.begun.put(self.observed.get(pod.uid), pod)
        self.observed.add(pod.uid, pod)
        if pod.uid in self.moving and (_ended_or_bound(pod) or nominated_for(pod) == self.moving[pod.uid]):
            del self.moving[pod.uid]
        assumed = self.assumed.get(pod.uid)
        if assumed is not None and not _overtaken(assumed, pod):
            return assumed
        self.assumed.pop(pod.uid, None)
        return self._moved(pod) or pod

    def drop(self, uid: str) -> Pod | None:
        """Takes out a pod that is gone. Returns it as it counted."""
        pod = self.pod(uid)
        self.begun.put(self.observed.pop(uid, None), None)
        self.assumed.pop(uid, None)
        self.moving.pop(uid, None)
        return pod

    def _moved(self, observed: Pod | None) -> Pod | None:
        """A pod with its room on the node for which it is to be nominated."""
        node = self.moving.get(observed.uid) if observed is not None else None
        if observed is None or node is None:
            return observed
        return replace(observed, annotations={**observed.annotations, names.NOMINATED_ANNOTATION: node})


def _overtaken(assumed: Pod, observed: Pod) -> bool:
    """Whether the watch shows what was assumed (a lift or a bind), or the pod's end, which comes before either."""
    return _ended_or_bound(observed) or not (observed.gated or assumed.bound)


def _ended_or_bound(pod: Pod) -> bool:
    return pod.bound or pod.deleting or pod.terminal

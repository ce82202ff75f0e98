"""Every pod as the cluster has it, and over that as a decision under way has left it."""

from collections.abc import Collection

from core.objects import Pod


class PodStates:
    """Both states by UID."""

    def __init__(self) -> None:
        self.observed: dict[str, Pod] = {}
        self.assumed: dict[str, Pod] = {}
        """Only where the watch has not shown the outcome of the decision."""

    def pod(self, uid: str) -> Pod | None:
        """A pod as assumed, else as observed."""
        return self.assumed.get(uid) or self.observed.get(uid)

    def pods(self, uids: Collection[str]) -> list[Pod]:
        """Those of these pods that are known, in the same order."""
        return [pod for uid in uids if (pod := self.pod(uid)) is not None]

    def see(self, pod: Pod) -> Pod:
        """Takes in a pod as observed. Returns it as it counts: as assumed, unless that is overtaken now."""
        self.observed[pod.uid] = pod
        assumed = self.assumed.get(pod.uid)
        if assumed is None or not _overtaken(assumed, pod):
            return assumed or pod
        del self.assumed[pod.uid]
        return pod

    def drop(self, uid: str) -> Pod | None:
        """Takes out a pod that is gone. Returns it as it counted."""
        pod = self.pod(uid)
        self.observed.pop(uid, None)
        self.assumed.pop(uid, None)
        return pod


def _overtaken(assumed: Pod, observed: Pod) -> bool:
    """Whether the watch shows what was assumed (a lift or a bind), or the pod's end, which comes before either."""
    if observed.bound or observed.deleting or observed.terminal:
        return True
    return not observed.gated and not assumed.bound

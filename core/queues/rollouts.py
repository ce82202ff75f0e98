"""Rollouts that wait for themselves: the new pods need quota that the old ones give back only once the new ones run."""

from typing import Final

from core import reasons
from core.cards.expression import split
from core.index import Index
from core.objects import Pod
from core.queues.entry import Entry
from core.queues.ledger import Ledger
from core.stage import Stage

_HOLDING: Final = (Stage.RESERVED, Stage.ALLOCATED)


class Rollouts:
    """The ReplicaSets of each Deployment that hold quota, by their pods. A change and a question cost what they touch.

    A question is about one pod and looks at the ReplicaSets of its Deployment, not at their pods: they have one template,
    so any of them speaks for all.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._sets = Index()
        """ReplicaSets by Deployment."""
        self._pods = Index()
        """UIDs of pods that hold quota, by ReplicaSet."""

    def put_pod(self, pod: Pod) -> None:
        """Takes in a pod as observed."""
        if not pod.deployment or self._ledger.stages.of(pod) not in _HOLDING:
            self.drop_pod(pod.uid)
            return
        replica_set = _replica_set(pod)
        self._pods.put(pod.uid, replica_set)
        self._sets.put(replica_set, f"{pod.namespace}/{pod.deployment}")

    def drop_pod(self, uid: str) -> None:
        """Takes out a pod; one that is not there is no error."""
        for replica_set in self._pods.values(uid):
            self._pods.put(uid)
            if not self._pods.get(replica_set):
                self._sets.put(replica_set)

    def obstacle(self, pod: Pod, reason: str) -> str:
        """What to say about a pod that waits for a reason; empty unless an older ReplicaSet of its Deployment is why."""
        if not pod.deployment or reason != reasons.INSUFFICIENT_SCALAR_QUOTA:
            return ""
        waiting, own = self._ledger.entry(pod.uid), _replica_set(pod)
        deployment = f"{pod.namespace}/{pod.deployment}"
        for replica_set in self._sets.get(deployment):
            holder = self._ledger.entry(next(iter(self._pods.get(replica_set))))
            if replica_set == own or waiting is None or holder is None or not _in_the_way(holder, waiting):
                continue
            wanted = pod.card_name or ", ".join(sorted(waiting.charged))
            return (
                f"Queue <{waiting.queue}>: Deployment {deployment} rolls out, and the quota of <{wanted}> that this pod "
                f"waits for is held by pods of its older ReplicaSet {replica_set.partition('/')[2]}; set maxSurge 0 and "
                "maxUnavailable 1, or raise the quota"
            )
        return ""


def _replica_set(pod: Pod) -> str:
    assert pod.owner is not None
    return f"{pod.namespace}/{pod.owner.name}"


def _in_the_way(holder: Entry, waiting: Entry) -> bool:
    wanted = {key for charged in waiting.charged for key in split(charged)}
    held = {key for charged in holder.charged for key in split(charged)}
    older = holder.pod.created <= waiting.pod.created
    return older and holder.queue == waiting.queue and not wanted.isdisjoint(held)

"""What the leader would decide if something were different: tried on the books, and taken back.

The same passes in the same order decide that decide in the cluster, so what is answered here is what would happen there.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from core.objects import Group, Node, Pod, Queue
from core.plan.decision import Hold
from core.plan.lift import Planner
from core.plan.offline import decisions
from core.queues.ledger import Ledger
from core.steps import finish

TRIES: Final = 400
"""So many things are tried for one question; each costs a pass over all that waits."""


@dataclass(frozen=True, slots=True)
class Change:
    """Objects as they would be: queues and groups that are changed or new, pods and nodes that are changed, and pods that are gone."""

    queues: Mapping[str, Queue]
    groups: Mapping[str, Group]
    pods: Mapping[str, Pod]
    gone: frozenset[str] = frozenset()
    """By UID, as `pods` are."""
    nodes: Mapping[str, Node] = field(default_factory=dict)

    @classmethod
    def none(cls) -> "Change":
        """Everything as it is."""
        return cls({}, {}, {})

    def queue(self, queue: Queue) -> "Change":
        """With this queue as well."""
        return replace(self, queues={**self.queues, queue.name: queue})

    def group(self, group: Group) -> "Change":
        """With this PodGroup as well."""
        return replace(self, groups={**self.groups, group.key: group})

    def pod(self, *pods: Pod) -> "Change":
        """With these pods, waiting ones, as well."""
        return replace(self, pods={**self.pods, **{pod.uid: pod for pod in pods}})

    def without(self, *uids: str) -> "Change":
        """Without these pods."""
        return replace(self, gone=self.gone | frozenset(uids))

    def node(self, *nodes: Node) -> "Change":
        """With these nodes, which are there, as well."""
        return replace(self, nodes={**self.nodes, **{node.name: node for node in nodes}})


class SpentError(Exception):
    """More was tried than one question is worth."""


class WhatIf:
    """Tries changes on a ledger in which nothing is assumed. Not to be used while anybody else decides on it."""

    def __init__(self, ledger: Ledger, tries: int = TRIES) -> None:
        self.ledger = ledger
        self.left = tries
        """How many may still be tried."""
        self._planner = Planner(ledger)
        finish(ledger.settle())

    @contextmanager
    def made(self, change: Change) -> Iterator[None]:
        """The books with the change, and with everything as it was afterwards."""
        ledger = self.ledger
        queues = {name: ledger.queues.get(name) for name in change.queues}
        groups = {key: ledger.group(key) for key in change.groups}
        pods = {uid: ledger.as_stored(uid) for uid in (*change.pods, *change.gone)}
        nodes = [ledger.nodes[name] for name in change.nodes]
        try:
            for node in change.nodes.values():
                ledger.put_node(node)
            for queue in change.queues.values():
                ledger.put_queue(queue)
            for group in change.groups.values():
                ledger.put_group(group)
            for uid, pod in change.pods.items():
                if uid not in change.gone:
                    ledger.put_pod(pod)
            for uid in change.gone:
                ledger.drop_pod(uid)
            finish(ledger.settle())
            yield
        finally:
            ledger.forget_all()
            for old_node in nodes:
                ledger.put_node(old_node)
            for name, old_queue in queues.items():
                if old_queue is None:
                    ledger.drop_queue(name)
                else:
                    ledger.put_queue(old_queue)
            for key, old_group in groups.items():
                if old_group is None:
                    ledger.drop_group(key)
                else:
                    ledger.put_group(old_group)
            for old_pod in pods.values():
                if old_pod is not None:
                    ledger.put_pod(old_pod)
            finish(ledger.settle())

    def decide(self) -> dict[str, Hold]:
        """Lifts everybody who can be on the books as they are, and says why each other one waits, by UID."""
        holds: dict[str, Hold] = {}
        for decision in decisions(self.ledger, self._planner):
            holds.pop(decision.pod.uid, None)
            if isinstance(decision, Hold):
                holds[decision.pod.uid] = decision
        return holds

    def holds(self, change: Change) -> dict[str, Hold]:
        """Why each of those waits who would still wait after the change, by UID. Raises SpentError."""
        if self.left <= 0:
            raise SpentError
        self.left -= 1
        with self.made(change):
            return self.decide()

    def hold(self, change: Change, uid: str) -> Hold | None:
        """Why a waiting pod would still wait after the change; None when it would be lifted. Raises SpentError."""
        return self.holds(change).get(uid)

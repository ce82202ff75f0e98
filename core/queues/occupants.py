"""Who is physically on which node, and whether that has changed since somebody looked."""

from collections.abc import Callable, Collection
from itertools import takewhile
from typing import Final

from core.index import Index
from core.objects import Pod

_GONE_KEPT: Final = 1000


def occupies(pod: Pod) -> bool:
    """Whether the pod takes devices of a node, once it has one."""
    return pod.asks or any("/" in name for name in pod.requests)


def on_its_node(pod: Pod) -> bool:
    """Whether the pod takes up its node, as schedulers count: it is bound and has not ended, be it in the course of deletion."""
    return pod.bound and not pod.terminal


class Occupants:
    """The pods on each node: bound and not ended, terminating ones too, for their containers may still run.

    Whoever derives something from a node and its pods keeps `version` beside it and is right until that differs. Pods that
    take no devices are kept beside them; they change the version of those nodes alone that are `shared`.
    """

    def __init__(self, shared: Callable[[str], bool] = lambda _: False) -> None:
        self._shared = shared
        self._pods = Index()
        self._beside = Index()
        self._versions: dict[str, int] = {}
        """In the order of their numbers."""
        self._nodes: set[str] = set()
        self._gone: set[str] = set()
        """Nodes with a version that are not there, and have nobody on them: pods may name some that never were."""
        self.epoch = 0
        """Another one whenever nodes that have gone are not told of any more: who follows them begins anew."""
        self.changes = 0
        """Grows with every change of any node and of the pods on it."""

    def on(self, node: str) -> Collection[str]:
        """The UIDs of the pods on a node, in the order in which they came."""
        return self._pods.get(node)

    def version(self, node: str) -> int:
        """A number that differs after every change of the node or of a pod on it."""
        return self._versions.get(node, 0)

    def changed_since(self, changes: int) -> list[str]:
        """The nodes that changed, came or went since `changes` was that number; costs as much as there are of them."""
        return [*takewhile(lambda node: self._versions[node] > changes, reversed(self._versions))]

    def put(self, pod: Pod) -> str:
        """Takes in a pod, wherever it is now. Returns the node that it left, empty when it left none."""
        was_on = self._pods.values(pod.uid)
        if not was_on and not pod.bound:
            return ""
        self._beside.put(pod.uid)
        # The node that a pod leaves changes too: a bind that was assumed and taken back must give its room back.
        nodes = {*was_on, pod.node_name} - {""}
        self._touch(nodes)
        left = self._pods.put(pod.uid, pod.node_name if on_its_node(pod) else None)
        self._forget_later(nodes)
        return was_on[0] if left else ""

    def beside(self, node: str) -> Collection[str]:
        """The UIDs of the pods on a node that take no devices, in the order in which they came."""
        return self._beside.get(node)

    def put_beside(self, pod: Pod) -> str:
        """Takes in a pod that takes no devices. Returns the shared node that it left, empty when it left none."""
        node = pod.node_name if on_its_node(pod) else None
        return self._moved_beside(pod.uid, node)

    def _moved_beside(self, uid: str, node: str | None) -> str:
        was_on = self._beside.values(uid)
        if not was_on and node is None:
            return ""
        left = self._beside.put(uid, node)
        if self._beside.values(uid) == was_on:
            return ""
        self._touch([each for each in {*was_on, node} if each and self._shared(each)])
        return was_on[0] if left and self._shared(was_on[0]) else ""

    def drop(self, uid: str) -> str:
        """Takes out a pod that is gone. Returns the node that it left, empty when it left none."""
        was_on = self._pods.values(uid)
        self._touch(was_on)
        left = self._pods.put(uid)
        self._forget_later(was_on)
        return was_on[0] if left else self._moved_beside(uid, None)

    def node_changed(self, node: str) -> None:
        """Notes that a node has come or changed."""
        self._nodes.add(node)
        self._gone.discard(node)
        self._touch((node,))

    def node_gone(self, node: str) -> None:
        """Notes that a node has gone. Its version is kept for those who follow, until a great many have gone."""
        self._nodes.discard(node)
        self._touch((node,))
        self._forget_later((node,))

    def _forget_later(self, nodes: Collection[str]) -> None:
        """Has those of the nodes forgotten that are not there and have nobody on them, once they are a great many."""
        for node in nodes:
            if node in self._nodes or self._pods.get(node):
                self._gone.discard(node)
            else:
                self._gone.add(node)
        if len(self._gone) > _GONE_KEPT:
            self._forget_gone()

    def _forget_gone(self) -> None:
        self.epoch += 1
        for node in self._gone:
            self._versions.pop(node, None)
        self._gone.clear()

    def _touch(self, nodes: Collection[str]) -> None:
        for node in nodes:
            self.changes += 1
            self._versions.pop(node, None)
            self._versions[node] = self.changes

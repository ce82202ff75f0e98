"""What the pods of a node leave of it by the sum of their requests, as schedulers count: CPU, memory, places for pods, devices."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from core import names
from core.objects import Node, Pod
from core.objects.pod import LOWEST_PRIORITY
from core.objects.taints import Tolerations, untolerated

_PODS: Final = "pods"
_ONE: Final = 1000

EVERYBODY: Final = LOWEST_PRIORITY
"""The lowest priority: all pods of a node count."""

Amounts = tuple[tuple[str, int], ...]
"""Resource and thousandths of it, by name."""


def requests_of(pod: Pod) -> Amounts:
    """What the pod takes of a node; itself is one of the pods that the node has places for."""
    asked = {key: milli for key, milli in pod.requests.items() if milli}
    return tuple(sorted((asked | {_PODS: _ONE}).items()))


class NodeLoad:
    """A node with the pods that are on it and those that are expected.

    Of mGPU shares too the sums are compared: which cards a pod has, if it has any, no scheduler looks at.
    A scheduler may displace pods of a lower priority; who is expected always counts. Of what the node does not say about itself
    it may have enough: a state file may lack it, and a device may be served by a claim.
    """

    __slots__ = ("_expected", "_free", "_node", "_pods")

    def __init__(self, node: Node, pods: Callable[[], Iterable[Pod]]) -> None:
        """`pods` are those on the node; asked for when somebody wants to know, as often as there are priorities."""
        self._node = node
        self._pods = pods
        self._expected: dict[str, int] = {}
        self._free: dict[int, Mapping[str, int]] = {}

    def expect(self, pod: Pod) -> None:
        """Counts one more pod that is on its way here."""
        for key, milli in (*pod.requests.items(), (_PODS, _ONE)):
            self._expected[key] = self._expected.get(key, 0) + milli

    def expect_no_more(self, pod: Pod) -> None:
        """Takes back that one was expected."""
        for key, milli in (*pod.requests.items(), (_PODS, _ONE)):
            self._expected[key] -= milli

    def expect_nobody(self) -> None:
        """Nobody is on the way here any more."""
        self._expected.clear()

    def lack(self, requests: Amounts, priority: int, tolerations: Tolerations) -> str:
        """Why a scheduler would not place such a pod here; empty where nothing is seen that speaks against it.

        Of the pods on the node those count that have this priority or a higher one.
        """
        taint = untolerated(self._node.taints, tolerations) if self._node.taints else None
        if taint is not None:
            return f"it has the taint {taint}, which the pod does not tolerate"
        short = self.short_of(requests, priority)
        return f"it {short}" if short else ""

    def short_of(self, requests: Amounts, priority: int) -> str:
        """In words, the first resource by name of which the node has too little for such a pod; empty where it has enough of all.

        Of the pods on the node those count that have this priority or a higher one.
        """
        free = self._free.get(priority)
        if free is None:
            free = self._free[priority] = self._left(priority)
        for key, milli in requests:
            left = free.get(key)
            if left is not None and milli > left - self._expected.get(key, 0):
                return _not_enough(key)
        return ""

    def shows(self, requests: Amounts) -> bool:
        """Whether the node shows every device that is asked for; CPU and the like all nodes have, and shares are up to its cards."""
        devices = (key for key, _ in requests if "/" in key and key not in names.MGPU_RESOURCES)
        return all(key in self._node.allocatable for key in devices)

    def _left(self, priority: int) -> Mapping[str, int]:
        left = dict(self._node.allocatable)
        for pod in self._pods():
            if pod.priority >= priority:
                for key, milli in pod.requests.items():
                    if key in left:
                        left[key] -= milli
                if _PODS in left:
                    left[_PODS] -= _ONE
        return left


def _not_enough(key: str) -> str:
    """Of shares the cards may have enough at the same time: where one is gone, or a pod is on none, for instance."""
    by = " by the sum of its pods' requests that schedulers go by" if key in names.MGPU_RESOURCES else ""
    return f"has not enough {key} left{by}"

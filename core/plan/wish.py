"""What a pod with mGPU shares wants of its node: pods of one wish have room on the same nodes."""

from typing import NamedTuple, Self

from core.mgpu.ask import MgpuAsk
from core.objects import Pod
from core.objects.node_rules import NodeRules
from core.objects.taints import Tolerations
from core.plan.node_load import Amounts, requests_of

WishBesides = tuple[NodeRules, Amounts, int, Tolerations, tuple[str, ...], frozenset[str]]
"""All of a wish but the shares."""


class Wish(NamedTuple):
    """Shares, and all else that decides about a node: the pod's own rules, what it takes in sum, whom it may displace."""

    ask: MgpuAsk
    rules: NodeRules
    requests: Amounts
    priority: int
    """Pods of a lower one it may displace."""
    tolerations: Tolerations
    within: tuple[str, ...] = ()
    """The only nodes that will do, if any are named."""
    closed: frozenset[str] = frozenset()
    """Products whose nodes will not do: the queue has too little left of these cards."""

    @classmethod
    def of(
        cls,
        pod: Pod,
        ask: MgpuAsk,
        within: tuple[str, ...] = (),
        closed: frozenset[str] = frozenset(),
    ) -> Self:
        """The wish of a pod that asks for this."""
        return cls(
            ask, pod.node_rules, requests_of(pod), pod.displaces_below, pod.tolerations, within, closed
        )

    @property
    def besides(self) -> WishBesides:
        """What a pod wants of its node besides the shares."""
        return self[1:]

"""Physical stock: whether some node has the cards free that a pod's quota would allow it."""

from collections.abc import Sequence

from core.affinity import admits
from core.objects import Node, Pod
from core.queues.ledger import Ledger


class CardStock:
    """What is free in the cluster; what is assumed counts as reserved.

    Free cards are kept node by node and counted anew only where the node or what is on it has changed. Pods that may
    run anywhere share what is found out about a card, until any node changes.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._seen = (-1, -1)
        self._carriers: dict[str, list[Node]] = {}
        self._anywhere: dict[str, tuple[int, int]] = {}
        self._free: dict[str, tuple[int, dict[str, int]]] = {}

    def admitted_nodes(self, pod: Pod, card: str) -> Sequence[Node]:
        """The nodes that carry the card and that the pod's own node rules admit, whatever their state."""
        self._refresh()
        if card not in self._carriers:
            names = self._ledger.inventory.nodes_with(card)
            found = (self._ledger.nodes.get(name) for name in names)
            self._carriers[card] = [node for node in found if node is not None]
        carriers = self._carriers[card]
        if not pod.node_selector and not pod.affinity:
            return carriers
        return [node for node in carriers if admits(pod, node)]

    def available(self, nodes: Sequence[Node], card: str, milli: int) -> bool:
        """Whether one of these nodes has `milli` of the card free, and all together have it beyond what is reserved.

        `nodes` as `admitted_nodes` gave them. Only ready and schedulable nodes count.
        """
        self._refresh()
        if nodes is not self._carriers.get(card):
            most, total = self._counted(nodes, card)
        elif card in self._anywhere:
            most, total = self._anywhere[card]
        else:
            most, total = self._anywhere[card] = self._counted(nodes, card)
        if most < milli:
            return False
        return total - self._ledger.reserved(card) >= milli

    def _refresh(self) -> None:
        """Forgets what a change of any node may have made wrong; single nodes have versions of their own."""
        ledger = self._ledger
        now = ledger.nodes_version, ledger.occupants.changes
        if self._seen == now:
            return
        self._seen = now
        self._carriers.clear()
        self._anywhere.clear()
        if len(self._free) > 2 * len(ledger.nodes):
            self._free.clear()

    def _counted(self, nodes: Sequence[Node], card: str) -> tuple[int, int]:
        """The most that one node has free, below 0 without any node, and the sum."""
        free = [self._free_on(node, card) for node in nodes if node.ready and not node.unschedulable]
        return max(free, default=-1), sum(free)

    def _free_on(self, node: Node, card: str) -> int:
        ledger = self._ledger
        version = ledger.occupants.version(node.name)
        known = self._free.get(node.name)
        if known is None or known[0] != version:
            known = self._free[node.name] = (version, {})
        free = known[1]
        if card not in free:
            resource = ledger.inventory.on_node(node.name)[card].resource
            used = sum(pod.requests.get(resource, 0) for pod in ledger.pods_on(node.name))
            free[card] = max(0, node.allocatable.get(resource, 0) - used)
        return free[card]

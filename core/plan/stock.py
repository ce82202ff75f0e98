"""Physical stock: whether some node has the cards free that a pod's quota would allow it."""

from collections.abc import Iterable

from core.objects import Node, Pod
from core.plan.affinity import admits
from core.queues.ledger import Ledger


class CardStock:
    """Free cards on nodes, for one pass over the ledger; what is assumed during the pass counts as reserved."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._free: dict[tuple[str, str], int] = {}

    def admitted_nodes(self, pod: Pod, card: str) -> list[Node]:
        """The nodes that carry the card and that the pod's own node rules admit, whatever their state."""
        nodes = (self._ledger.nodes.get(name) for name in sorted(self._ledger.inventory.nodes_with(card)))
        return [node for node in nodes if node is not None and admits(pod, node)]

    def available(self, nodes: Iterable[Node], card: str, milli: int) -> bool:
        """Whether one of these nodes has `milli` of the card free, and all together have it beyond what is reserved.

        Only ready and schedulable nodes count.
        """
        free = [self._free_on(node, card) for node in nodes if node.ready and not node.unschedulable]
        if not free or max(free) < milli:
            return False
        reserved = sum(account.reserved.get(card, 0) for account in self._ledger.accounts.values())
        return sum(free) - reserved >= milli

    def _free_on(self, node: Node, card: str) -> int:
        key = (node.name, card)
        if key not in self._free:
            resource = self._ledger.inventory.on_node(node.name)[card].resource
            used = sum(pod.requests.get(resource, 0) for pod in self._ledger.pods_on(node.name))
            self._free[key] = max(0, node.allocatable.get(resource, 0) - used)
        return self._free[key]

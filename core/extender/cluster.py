"""Nodes as the caches know them, with the pods that are there."""

from collections.abc import Container, Iterable

from core.crossquota.book import GuestBook
from core.crossquota.guest import keys
from core.crossquota.quota import node_quota
from core.extender.pipeline import Question, Standing
from core.mgpu.arrangement import left_beside
from core.mgpu.ask import MgpuAsk
from core.mgpu.node import NodeModel, NodeState, model_of
from core.mgpu.occupancy import occupancy
from core.objects import Node, Pod
from core.queues.ledger import Ledger
from core.queues.promises import on_the_way_to


class Cluster:
    """Answers what a question needs to know of a node; what is free of mGPU is kept until the node or its pods change."""

    def __init__(self, ledger: Ledger, guests: GuestBook) -> None:
        self.ledger = ledger
        self.settings = ledger.settings
        self.labels_kept = keys(ledger.settings.cross_quota.label_selector)
        """The labels that a pod has to be projected with."""
        self._guests = guests
        self._shares: dict[str, tuple[int, NodeModel, NodeState]] = {}

    def node(self, name: str) -> Node | None:
        """A node by its name, None for one that is not known here."""
        return self.ledger.nodes.get(name)

    def standing(self, node: Node, asked: Question) -> Standing:
        """A node as it was given, with the pods that are known to be on it.

        `node` may be younger than the one in the caches: a scheduler sends what it sees itself.
        """
        own = node is self.ledger.nodes.get(node.name)
        quota = None
        if asked.guest is not None:
            quota = self._guests.quota(node.name) if own else node_quota(node, self.settings)
        return Standing(
            quota=quota,
            used=self._guests.used(node.name, but=asked.uid) if quota is not None else None,
            shares=self._shares_on(node, asked) if asked.shares is not None else None,
            cards=self.cards_of(node) if asked.cards else (),
        )

    def cards_of(self, node: Node) -> Container[str]:
        """The names of the node's cards."""
        if node is self.ledger.nodes.get(node.name):
            return self.ledger.inventory.on_node(node.name)
        return self.ledger.inventory.discovered(node).cards

    def beside_promises(
        self, node: str, model: NodeModel, state: NodeState, asked: Question, counted: Iterable[str] = ()
    ) -> NodeState:
        """What is left for the pod when those have their cards who are on their way to the node, save the ones that were `counted`.

        A pod that was led there itself has its own room, and the bind sees to it that all find their cards. Members of its task
        give way to it, see `gives_way`.
        """
        ask = asked.shares
        if not isinstance(ask, MgpuAsk) or node in asked.booked_on or not self.ledger.led_to(node):
            return state
        expected = on_the_way_to(self.ledger, node, asked.uid, asked.task).unyielding()
        others = expected.without({asked.uid, *counted})
        return left_beside(ask, others, model, state, self.settings)

    def _shares_on(self, node: Node, asked: Question) -> tuple[NodeModel, NodeState]:
        model, state = self._bound_on(node, asked.uid)
        return model, self.beside_promises(node.name, model, state, asked)

    def _bound_on(self, node: Node, uid: str) -> tuple[NodeModel, NodeState]:
        model = model_of(node)
        if model.serves and uid in self.ledger.occupants.on(node.name):
            others = [pod for pod in self.ledger.pods_on(node.name) if pod.uid != uid]
            return model, self.free(model, others)
        version, known = self.ledger.occupants.version(node.name), self._shares.get(node.name)
        if known is None or known[:2] != (version, model):
            if len(self._shares) > 2 * len(self.ledger.nodes):
                self._shares.clear()
            pods = self.ledger.pods_on(node.name) if model.serves else ()
            known = self._shares[node.name] = (version, model, self.free(model, pods))
        return model, known[2]

    def free(self, model: NodeModel, pods: Iterable[Pod]) -> NodeState:
        """What these pods leave of a node's cards."""
        return occupancy(model, pods, self.settings.mgpu).state

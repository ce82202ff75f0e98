"""The nodes, which cards they carry, and who is there."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from core.cards.discovery import CardStock
from core.cards.inventory import Inventory
from core.names import MGPU_CORE, MGPU_RESOURCES
from core.objects import Node
from core.queues.occupants import Occupants
from core.settings import Settings


@dataclass(frozen=True, slots=True)
class NodeChange:
    """What a node that came, changed or went has changed."""

    remapped: Collection[str]
    """The cards that are another resource now."""
    recarded: bool
    """Whether the node carries other cards, or other numbers of them, or names another product."""
    room: Collection[str]
    """The cards and mGPU resources for which there may be room now."""


class Premises:
    """All nodes by name."""

    def __init__(self, settings: Settings) -> None:
        self.nodes: dict[str, Node] = {}
        self.inventory = Inventory.of(settings)
        self.occupants = Occupants(self._shared)

    def put(self, node: Node) -> NodeChange:
        """Takes in a node."""
        before = self._carried(node.name)
        self.nodes[node.name] = node
        remapped = self.inventory.put(node)
        self.occupants.node_changed(node.name)
        return NodeChange(
            remapped, before != self._carried(node.name), {*before[0], *self.room_on(node.name)}
        )

    def drop(self, name: str) -> NodeChange | None:
        """Takes out a node; None for one that nobody knew."""
        before = self._carried(name)
        if self.nodes.pop(name, None) is None:
            return None
        remapped = self.inventory.drop(name)
        self.occupants.node_gone(name)
        return NodeChange(remapped, before != self._carried(name), {*before[0]})

    def _carried(self, node: str) -> tuple[Mapping[str, CardStock], str]:
        """The cards of a node, and the product that it names."""
        product = self.inventory.product_on(node)
        return self.inventory.on_node(node), "" if product is None else product.name

    def _shared(self, node: str) -> bool:
        """Whether the node offers shares of its cards, so that it matters what else it has left."""
        return node in self.nodes and MGPU_CORE in self.nodes[node].allocatable

    def room_on(self, node: str) -> Collection[str]:
        """The cards and mGPU resources that a node carries."""
        carried = self.nodes[node].allocatable if node in self.nodes else ()
        return {*self.inventory.on_node(node), *(key for key in MGPU_RESOURCES if key in carried)}

"""The node labels that a lifted pod is narrowed to, so that it lands on the card it was given and on no other."""

from collections.abc import Sequence

from core import names
from core.affinity import Conjunction, Expression, NodeRequirement
from core.cards.expression import resource_by_name
from core.objects import Node
from core.queues.ledger import Ledger


class CardPlacement:
    """Card -> what it requires of a node, kept until a node changes."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._version = -1
        self._known: dict[str, NodeRequirement] = {}

    def requirement(self, card: str) -> NodeRequirement:
        """What nodes of this card have in common, and others have not; nothing for a card that no node carries now.

        A MIG slice needs the product alone, its resource selects the rest. All MPS shares have one resource, so the
        number of slices and the memory of the card have to match as well.
        """
        if self._version != self._ledger.nodes_version:
            self._known.clear()
            self._version = self._ledger.nodes_version
        if card not in self._known:
            found = (self._ledger.nodes.get(name) for name in self._ledger.inventory.nodes_with(card))
            common = _common(card, [node for node in found if node is not None])
            self._known[card] = NodeRequirement.all_of(*common)
        return self._known[card]


def _common(card: str, nodes: Sequence[Node]) -> Conjunction:
    product = card.partition("/")[0]
    keys = sorted(
        {
            key
            for node in nodes
            for key, value in node.labels.items()
            if value == product and key.endswith(".product")
        }
    )
    if not keys:
        return ()
    wanted = [Expression(keys[0], "In", (product,))]
    if resource_by_name(card) == names.MPS_RESOURCE:
        memory = keys[0].removesuffix("product") + "memory"
        wanted += [
            Expression(label, "In", values)
            for label in (names.MPS_REPLICAS_LABEL, memory)
            if (values := tuple(sorted({node.labels[label] for node in nodes if label in node.labels})))
        ]
    return tuple(wanted)

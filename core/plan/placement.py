"""The node labels that a lifted pod is narrowed to, so that it lands on the card it was given and on no other."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from core import names
from core.affinity import Conjunction, Expression, NodeRequirement
from core.cards.expression import resource_by_name
from core.plan.changed import ChangedNodes
from core.plan.recent import Recent
from core.queues.ledger import Ledger
from core.steps import Pace, Steps, finish

_READ_IN_A_STEP: Final = 100
_KEPT: Final = 100_000
"""Nodes that are remembered for some card."""

_PRODUCT: Final = ".product"
_MEMORY: Final = ".memory"

_Told = frozenset[tuple[str, str]]
"""The labels of a node that bear on a card."""


class _Labels:
    """What the nodes of one card tell about it."""

    def __init__(self, ledger: Ledger, card: str) -> None:
        self.requirement: NodeRequirement | None = None
        """What follows from it, None while that is not known."""
        self._told: dict[str, _Told] = {}
        self._nodes: Counter[_Told] = Counter()
        self.changed = ChangedNodes(ledger, self._told.keys(), ledger.inventory.nodes_with(card))

    def __len__(self) -> int:
        return len(self._told)

    def put(self, name: str, told: _Told | None) -> None:
        """Takes note of what a node tells now; None for one that does not carry the card."""
        before = self._told.pop(name, None)
        if told is not None:
            self._told[name] = told
        if told == before:
            return
        if told is not None:
            self._nodes[told] += 1
            if self._nodes[told] == 1:
                self.requirement = None
        if before is not None:
            self._nodes[before] -= 1
            if not self._nodes[before]:
                del self._nodes[before]
                self.requirement = None

    def all(self) -> set[tuple[str, str]]:
        """What any node tells."""
        return set().union(*self._nodes)


class CardPlacement:
    """Card -> what it requires of a node. A change of a node costs that node alone."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._labels: Recent[str, _Labels] = Recent(self._labels_of, _KEPT)
        self._read = Pace(_READ_IN_A_STEP)

    @property
    def read(self) -> int:
        """How often the labels of a node have been looked at so far: what all this has cost."""
        return self._read.done

    def requirement(self, card: str) -> NodeRequirement:
        """What nodes of this card have in common, and others have not; nothing for a card that no node carries now.

        A MIG slice needs the product alone, its resource selects the rest. All MPS shares have one resource, so the
        number of slices and the memory of the card have to match as well.
        """
        labels = self._labels[card]
        known = None if labels.changed else labels.requirement
        return known if known is not None else finish(self.find(card))

    def find(self, card: str) -> Steps[NodeRequirement]:
        """`requirement`, in steps."""
        labels = self._labels[card]
        while labels.changed:
            name = labels.changed.next()
            if self._read.due():
                yield
            labels.changed.done(name)
            labels.put(name, self._told(name, card))
        if labels.requirement is None:
            labels.requirement = NodeRequirement.all_of(*_common(card, labels.all()))
        return labels.requirement

    def _labels_of(self, card: str) -> _Labels:
        return _Labels(self._ledger, card)

    def _told(self, name: str, card: str) -> _Told | None:
        node = self._ledger.nodes.get(name)
        if node is None or card not in self._ledger.inventory.on_node(name):
            return None
        product = card.partition("/")[0]
        found = {
            (key, value) for key, value in node.labels.items() if value == product and key.endswith(_PRODUCT)
        }
        if resource_by_name(card) == names.MPS_RESOURCE:
            found |= {
                (key, value)
                for key, value in node.labels.items()
                if key == names.MPS_REPLICAS_LABEL or key.endswith(_MEMORY)
            }
        return frozenset(found)


def _common(card: str, told: Iterable[tuple[str, str]]) -> Conjunction:
    product = card.partition("/")[0]
    labels = sorted(told)
    keys = [key for key, value in labels if value == product and key.endswith(_PRODUCT)]
    if not keys:
        return ()
    wanted = [Expression(keys[0], "In", (product,))]
    if resource_by_name(card) == names.MPS_RESOURCE:
        memory = keys[0].removesuffix("product") + "memory"
        wanted += [
            Expression(label, "In", values)
            for label in (names.MPS_REPLICAS_LABEL, memory)
            if (values := tuple(value for key, value in labels if key == label))
        ]
    return tuple(wanted)

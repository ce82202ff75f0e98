"""The node labels that a lifted pod is narrowed to, so that it lands on the card it was given and on no other."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from core.affinity import Conjunction, Expression, NodeRequirement
from core.cards.discovery import Labels
from core.plan.changed import ChangedNodes
from core.plan.pools import pool_requirement
from core.plan.recent import Recent
from core.queues.ledger import Ledger
from core.steps import Pace, Steps, finish

_READ_IN_A_STEP: Final = 100
_KEPT: Final = 100_000
"""Nodes that are remembered for some card."""


class _Labels:
    """What the nodes of one card tell about it."""

    def __init__(self, ledger: Ledger, card: str) -> None:
        self.requirement: NodeRequirement | None = None
        """What follows from it, None while that is not known."""
        self._told: dict[str, Labels] = {}
        self._nodes: Counter[Labels] = Counter()
        self.changed = ChangedNodes(ledger, self._told.keys(), ledger.inventory.nodes_with(card))

    def __len__(self) -> int:
        return len(self._told)

    def put(self, name: str, told: Labels | None) -> None:
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

    def all(self) -> Iterable[Labels]:
        """What any node tells."""
        return self._nodes.keys()


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
        """What nodes of this card have in common, and others have not.

        While no node carries it, the labels of its pool; nothing for a card that has none.

        Most cards need the product alone, their resource selects the rest. Shares of one resource are told apart by the labels
        that their names are made of. Nodes that name the product by different labels are alternatives.
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
            labels.requirement = _required(labels.all()) if len(labels) else self._of_pool(card)
        return labels.requirement

    def _of_pool(self, card: str) -> NodeRequirement:
        pool = self._ledger.inventory.pool_of(card)
        return NodeRequirement() if pool is None else NodeRequirement.all_of(*pool_requirement(pool))

    def _labels_of(self, card: str) -> _Labels:
        return _Labels(self._ledger, card)

    def _told(self, name: str, card: str) -> Labels | None:
        return self._ledger.inventory.labels_on(name).get(card)


def _required(told: Iterable[Labels]) -> NodeRequirement:
    """An alternative for each way in which nodes tell the card: by which label of the product, and by which absent ones."""
    ways: dict[tuple[str, tuple[str, ...]], list[Labels]] = {}
    for labels in sorted(told):
        absent = tuple(key for key, value in labels if not value)
        ways.setdefault((labels[0][0], absent), []).append(labels)
    alternatives = tuple(_common(ways[way]) for way in sorted(ways))
    return NodeRequirement(alternatives, alternatives[0] if alternatives else ())


def _common(told: Sequence[Labels]) -> Conjunction:
    """What those have in common that tell the card in one way: a label that some of them lack says nothing of the card."""
    keys = [key for key, _ in told[0] if all(key in dict(labels) for labels in told)]
    values = {key: tuple(sorted({dict(labels)[key] for labels in told})) for key in keys}
    return tuple(
        Expression(key, "DoesNotExist") if values[key] == ("",) else Expression(key, "In", values[key])
        for key in keys
    )

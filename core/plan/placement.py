"""The node labels that a lifted pod is narrowed to, so that it lands on the card it was given and on no other."""

from collections.abc import Iterable
from dataclasses import dataclass

from core import names
from core.cards.expression import resource_by_name
from core.mgpu.ask import POLICIES, MgpuAsk
from core.mgpu.binding import narrowing as mgpu_narrowing
from core.objects import Node
from core.plan.affinity import Expression
from core.queues.ledger import Ledger


class CardPlacement:
    """Card -> node selector requirements, kept until a node changes."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._version = -1
        self._known: dict[str, tuple[Expression, ...]] = {}

    def expressions(self, card: str) -> tuple[Expression, ...]:
        """What nodes of this card have in common, and others have not; empty for a card that no node carries now.

        A MIG slice needs the product alone, its resource selects the rest. All MPS shares have one resource, so the
        number of slices and the memory of the card have to match as well.
        """
        if self._version != self._ledger.nodes_version:
            self._known.clear()
            self._version = self._ledger.nodes_version
        if card not in self._known:
            found = (self._ledger.nodes.get(name) for name in self._ledger.inventory.nodes_with(card))
            self._known[card] = _common(card, [node for node in found if node is not None])
        return self._known[card]


def _common(card: str, nodes: Iterable[Node]) -> tuple[Expression, ...]:
    product = card.partition("/")[0]
    nodes = list(nodes)
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


@dataclass(frozen=True, slots=True)
class ShareRequirement:
    """What an mGPU pod requires of its node's labels: one of `alternatives`, or `conjunction`, which implies one."""

    alternatives: tuple[tuple[Expression, ...], ...] = ()
    conjunction: tuple[Expression, ...] = ()


def share_requirement(ask: MgpuAsk | None) -> ShareRequirement:
    """The node type and, where it matters, the compute policy."""
    if ask is None:
        return ShareRequirement()
    alternatives = tuple(
        tuple(
            Expression(each["key"], each["operator"], tuple(each.get("values", ()))) for each in alternative
        )
        for alternative in mgpu_narrowing(ask)
    )
    if len(alternatives) == 1:
        return ShareRequirement(alternatives, alternatives[0])
    # A node without the policy label serves fixed-share. "None of the other policies" says both in one expression; it
    # lets through labels that nobody defined, which the binding hook then refuses.
    others = tuple(policy for policy in POLICIES if policy != ask.policy)
    kind = alternatives[0][0]
    return ShareRequirement(alternatives, (kind, Expression(names.MGPU_POLICY_KEY, "NotIn", others)))

"""A node as mGPU sees it: equal cards, what is free on each, and the labels by which the scheduler finds it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from core import names
from core.affinity import Expression, NodeRequirement
from core.mgpu.ask import FIXED_SHARE, POLICIES, MgpuAsk, Part
from core.mgpu.shares import FULL_CARD
from core.objects.node import Node

NODE_TYPE: Final = "mgpu"
CARDS_MAX: Final = 1024
"""Cards of one node that are looked at. No machine has as many; a larger figure is a mistake and must cost nothing."""


class Card(NamedTuple):
    """What is free on one card (core in hundredths of it, memory in MiB), and how many containers are on it."""

    core: int
    memory: int
    instances: int


@dataclass(frozen=True, slots=True)
class NodeModel:
    """What does not change with the pods. Nodes alike have equal models, so results can be shared among them.

    `memory` is MiB per card; remainders of both resources are left out. `kind` and `policy` are the labels, the
    policy's default filled in.
    """

    kind: str
    policy: str
    cards: int
    memory: int

    @property
    def serves(self) -> bool:
        """Whether the node serves mGPU shares at all. It does not while its device plugin reports no cards."""
        return self.kind == NODE_TYPE and self.cards >= 1


@dataclass(frozen=True, slots=True)
class NodeState:
    """What is free on each card, by card number. Hashable; never below 0 or above the card."""

    cards: tuple[Card, ...]

    def idle(self, model: NodeModel) -> list[int]:
        """The numbers of the untouched cards, ascending."""
        untouched = idle_card(model)
        return [number for number, card in enumerate(self.cards) if card == untouched]


def model_of(node: Node) -> NodeModel:
    """The model of a node; of a node without mGPU resources, one with 0 cards."""
    cards = node.allocatable.get(names.MGPU_CORE, 0) // 1000 // FULL_CARD
    memory = node.allocatable.get(names.MGPU_MEMORY, 0) // 1000
    return NodeModel(
        kind=node.labels.get(names.MGPU_NODE_TYPE_LABEL, ""),
        policy=node.labels.get(names.MGPU_POLICY_KEY, FIXED_SHARE),
        cards=min(max(cards, 0), CARDS_MAX),
        memory=max(memory // cards, 0) if cards > 0 else 0,
    )


def idle_card(model: NodeModel) -> Card:
    """A card that nobody uses."""
    return Card(FULL_CARD, model.memory, 0)


def idle_state(model: NodeModel) -> NodeState:
    """The node without pods."""
    return NodeState((idle_card(model),) * model.cards)


def canonical(state: NodeState) -> NodeState:
    """The cards in one order: which number a card has changes neither fit nor score, so equal nodes share answers."""
    return NodeState(tuple(sorted(state.cards)))


class Usage:
    """Sums of what is taken per card, in any order of booking; clamped only when the state is read off."""

    __slots__ = ("_core", "_instances", "_memory", "_model")

    def __init__(self, model: NodeModel) -> None:
        """Nothing is taken."""
        self._model = model
        self._core = [0] * model.cards
        self._memory = [0] * model.cards
        self._instances = [0] * model.cards

    def book(self, part: Part, numbers: Iterable[int]) -> None:
        """One container on these cards, each number once; numbers that the node does not have raise IndexError."""
        for number in numbers:
            self._core[number] += FULL_CARD if part.full else part.core
            self._memory[number] += self._model.memory if part.memory is None else part.memory
            self._instances[number] += 1

    def state(self) -> NodeState:
        """What is left; a card that is booked beyond its size has nothing left."""
        return NodeState(
            tuple(
                Card(max(FULL_CARD - core, 0), max(self._model.memory - memory, 0), instances)
                for core, memory, instances in zip(self._core, self._memory, self._instances, strict=True)
            )
        )

    def overbooked(self) -> list[int]:
        """The numbers of the cards on which more is booked than there is."""
        return [
            number
            for number, (core, memory) in enumerate(zip(self._core, self._memory, strict=True))
            if core > FULL_CARD or memory > self._model.memory
        ]


def after(
    state: NodeState, model: NodeModel, ask: MgpuAsk, indexes: Mapping[str, Iterable[int]]
) -> NodeState:
    """The state with one more pod on it, placed as `indexes` says (container name -> card numbers)."""
    cards = list(state.cards)
    for part in ask.parts:
        for number in indexes[part.container]:
            card = cards[number]
            core = FULL_CARD if part.full else part.core
            memory = model.memory if part.memory is None else part.memory
            cards[number] = Card(max(card.core - core, 0), max(card.memory - memory, 0), card.instances + 1)
    return NodeState(tuple(cards))


def node_requirement(ask: MgpuAsk) -> NodeRequirement:
    """The labels that a pod requires, so that the scheduler looks only where it can be served.

    The node type always and, unless the pod takes whole cards of any node, the compute policy.

    A node without the policy label serves fixed-share, hence a second alternative there. "None of the other policies"
    says both in one expression; it lets through labels that nobody defined, which the binding hook then refuses.
    """
    kind = Expression(names.MGPU_NODE_TYPE_LABEL, "In", (NODE_TYPE,))
    if ask.any_policy:
        return NodeRequirement.all_of(kind)
    labelled = Expression(names.MGPU_POLICY_KEY, "In", (ask.policy,))
    if ask.policy != FIXED_SHARE:
        return NodeRequirement.all_of(kind, labelled)
    unlabelled = Expression(names.MGPU_POLICY_KEY, "DoesNotExist")
    others = tuple(policy for policy in POLICIES if policy != ask.policy)
    return NodeRequirement(
        ((kind, labelled), (kind, unlabelled)), (kind, Expression(names.MGPU_POLICY_KEY, "NotIn", others))
    )

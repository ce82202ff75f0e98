"""Scores: of a placement against others on the same node, and of nodes against each other."""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Final, Literal

from core.mgpu.ask import MgpuAsk
from core.mgpu.node import NodeModel, NodeState, after
from core.mgpu.shares import FULL_CARD

Policy = Literal["binpack", "spread"]

NODE_SCORE_MAX: Final = 100


def combination(state: NodeState, model: NodeModel, *, policy: Policy, weight: int) -> Fraction:
    """How good the state after a placement is, 0..1, exact; comparable only among placements of one pod on one node.

    The weighted mean of the squared free parts of the cards: it grows when the free room lies together. Spread takes
    its complement. `weight` is that of core in per cent.
    """
    count = len(state.cards)
    if count == 0:
        return Fraction(0)
    core = sum(card.core**2 for card in state.cards)
    memory = sum(card.memory**2 for card in state.cards)
    free = Fraction(weight * core, FULL_CARD**2)
    if model.memory:
        free += Fraction((100 - weight) * memory, model.memory**2)
    value = free / (100 * count)
    return value if policy == "binpack" else 1 - value


def node_score(
    ask: MgpuAsk,
    model: NodeModel,
    state: NodeState,
    indexes: Mapping[str, Iterable[int]],
    *,
    policy: Policy,
    weight: int,
) -> Fraction:
    """How much the node is preferred for a pod that would be placed so, 0..100, exact.

    The combination score cannot say: it is near 1 on every empty node. This one is the mean of two loads, that of
    the cards the pod uses and that of the whole node, both after the placement; spread prefers the unloaded.
    """
    end = after(state, model, ask, indexes)
    loads = [_load(card.core, card.memory, model, weight) for card in end.cards]
    used = {number for cards in indexes.values() for number in cards}
    touched = sum((loads[number] for number in used), Fraction(0)) / len(used)
    mean = sum(loads, Fraction(0)) / len(loads)
    score = NODE_SCORE_MAX * (touched + mean) / 2
    return score if policy == "binpack" else NODE_SCORE_MAX - score


def _load(core: int, memory: int, model: NodeModel, weight: int) -> Fraction:
    """How full a card is, 0..1, from what is free on it."""
    load = Fraction(weight * (FULL_CARD - core), FULL_CARD)
    if model.memory:
        load += Fraction((100 - weight) * (model.memory - memory), model.memory)
    return load / 100

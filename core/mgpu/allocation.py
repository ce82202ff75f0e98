"""Which cards of one node each container of a pod gets, and how good that is: against other placements there, and other nodes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from fractions import Fraction
from typing import Final, Literal, TypeVar

from core.mgpu.ask import MgpuAsk, Part
from core.mgpu.node import Card, NodeModel, NodeState, after
from core.mgpu.purse import Purse
from core.mgpu.shares import FULL_CARD
from core.mgpu.task import Outcome, task_of
from core.mgpu.totals import excess, free
from core.settings import MgpuSettings

PLACEMENT_BUDGET: Final = 1500
"""Search steps for the placement that is written down. Enough for a proof on 8 cards; about 20 ms at the worst."""
SCORE_BUDGET: Final = 300
"""Search steps where many nodes are only compared."""
FIT_BUDGET: Final = 1000
"""Search steps for the question whether there is room at all, nearly always answered by the first few."""
_EVEN: Final = 50
"""Weight of core where only the fit counts, whatever the settings say: so the answers are shared."""
Policy = Literal["binpack", "spread"]
T = TypeVar("T")
NODE_SCORE_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class Placement:
    """Container name -> its cards, ascending; the exact score of the policy (0..1); whether it is proved to be best."""

    indexes: Mapping[str, tuple[int, ...]]
    value: Fraction
    optimal: bool


class Doubt(Enum):
    """Why no arrangement was found."""

    NO_ROOM = auto()
    """There is none."""
    UNDECIDED = auto()
    """What was tried led nowhere; something else may."""


def allocate(
    ask: MgpuAsk,
    model: NodeModel,
    state: NodeState,
    *,
    policy: Policy,
    weight: int,
    cap: int,
    budget: int = PLACEMENT_BUDGET,
) -> Placement | None:
    """The best placement of the whole pod, or None when it does not fit.

    `weight` is that of core in per cent, `cap` the greatest number of containers on one card. Labels are not looked
    at. Among equal scores the containers, in their order, get the lowest numbers of equal cards. When the budget is
    used up the best placement found so far is returned, not `optimal`; a pod that `feasible` says fits always gets one.
    """
    return _found(_allocated(ask, model, state, (policy, weight, cap), budget, None))


def preferred(
    ask: MgpuAsk,
    model: NodeModel,
    state: NodeState,
    settings: MgpuSettings,
    *,
    budget: int = PLACEMENT_BUDGET,
    purse: Purse | None = None,
) -> Placement | Doubt:
    """`allocate` by the settings' policy, weight and limit of containers, or why there is none; out of a purse where there is one."""
    rules = settings.policy, settings.weight_of_core, settings.max_containers_per_card
    return _allocated(ask, model, state, rules, budget, purse)


def _found(answer: T | Doubt) -> T | None:
    """For those who need not know why there is none."""
    return None if isinstance(answer, Doubt) else answer


def _allocated(
    ask: MgpuAsk,
    model: NodeModel,
    state: NodeState,
    rules: tuple[Policy, int, int],
    budget: int,
    purse: Purse | None,
) -> Placement | Doubt:
    policy, weight, cap = rules
    task = task_of(ask, model, state, cap)
    if task is None:
        return Doubt.NO_ROOM
    outcome = task.search(policy, weight, budget, purse)
    optimal, indexes = outcome.solution.complete, outcome.numbered()
    if indexes is None:
        found = Doubt.NO_ROOM if optimal else _any(ask, model, state, cap, purse)
        if isinstance(found, Doubt):
            return found
        indexes = found
    placed = {part.container: indexes[position] for position, part in enumerate(ask.parts)}
    value = combination(after(state, model, ask, placed), model, policy=policy, weight=weight)
    return Placement(placed, value, optimal)


def feasible(
    ask: MgpuAsk,
    model: NodeModel,
    state: NodeState,
    *,
    cap: int,
    budget: int = FIT_BUDGET,
    purse: Purse | None = None,
) -> bool | None:
    """Whether all containers together have room; None where the budget ended the search, which proves nothing.

    The search ends at the first arrangement that is found. Who lets a pod in takes None for no room, on the safe side.
    """
    found = _searched(ask, model, state, cap, budget, purse)
    return None if found is Doubt.UNDECIDED else found is not Doubt.NO_ROOM


def any_placement(
    ask: MgpuAsk, model: NodeModel, state: NodeState, *, cap: int, purse: Purse | None = None
) -> Mapping[str, tuple[int, ...]] | None:
    """The first arrangement that is found, good or not: container name -> its cards."""
    return _found(any_sought(ask, model, state, cap=cap, purse=purse))


def any_sought(
    ask: MgpuAsk, model: NodeModel, state: NodeState, *, cap: int, purse: Purse | None = None
) -> Mapping[str, tuple[int, ...]] | Doubt:
    """The same, and why there is none."""
    found = _any(ask, model, state, cap, purse)
    if isinstance(found, Doubt):
        return found
    return {part.container: found[position] for position, part in enumerate(ask.parts)}


def _any(
    ask: MgpuAsk, model: NodeModel, state: NodeState, cap: int, purse: Purse | None
) -> Mapping[int, tuple[int, ...]] | Doubt:
    """Some arrangement, by container position, good or not; else whether it is proved that there is none."""
    found = _searched(ask, model, state, cap, FIT_BUDGET, purse)
    if not isinstance(found, Outcome):
        return found
    indexes = found.numbered()
    return Doubt.UNDECIDED if indexes is None else indexes


def _searched(
    ask: MgpuAsk, model: NodeModel, state: NodeState, cap: int, budget: int, purse: Purse | None
) -> Mapping[int, tuple[int, ...]] | Outcome | Doubt:
    """The same, as far as it has to be known whether there is one: to number the cards takes about as long again."""
    indexes = first_fit(ask, model, state, cap)
    if indexes is not Doubt.UNDECIDED or (purse is not None and not purse.left):
        return indexes
    task = task_of(ask, model, state, cap)
    if task is None:
        return Doubt.NO_ROOM
    outcome = task.search("any", _EVEN, budget, purse)
    if outcome.solution.choices is None:
        return Doubt.NO_ROOM if outcome.solution.complete else Doubt.UNDECIDED
    return outcome


def first_fit(
    ask: MgpuAsk, model: NodeModel, state: NodeState, cap: int
) -> Mapping[int, tuple[int, ...]] | Doubt:
    """The quick answer: position of the container in the ask -> its cards, ascending. Right when it says yes, and when it says no.

    Most nodes are clear cases, and the filter looks at thousands of them; the search is for the rest. It says no where the
    containers ask together for more than is free, and where one would not even find its cards if it were alone.

    Whole cards are the lowest idle ones; then the shared containers, the largest first, each on the fullest cards
    that take it.
    """
    if excess(ask.parts, free(state.cards, cap), model, cap) is not None:
        return Doubt.NO_ROOM
    whole = sum(part.cards for part in ask.parts if part.full)
    idle = state.idle(model) if whole else []
    if whole > len(idle):
        return Doubt.NO_ROOM
    taken = set(idle[:whole])
    cards = sorted((card, number) for number, card in enumerate(state.cards) if number not in taken)
    shared = {(part.core, part.memory, part.cards) for part in ask.parts if part.memory is not None}
    if not all(_places(*part, cards, cap) for part in shared):
        return Doubt.NO_ROOM
    arrangement: dict[int, tuple[int, ...]] = {}
    next_whole = 0
    for position, part in sorted(enumerate(ask.parts), key=lambda entry: _part_size(entry[1]), reverse=True):
        if part.memory is None:
            arrangement[position] = tuple(idle[next_whole : next_whole + part.cards])
            next_whole += part.cards
            continue
        places = _places(part.core, part.memory, part.cards, cards, cap)
        if not places:
            return Doubt.UNDECIDED
        arrangement[position] = tuple(sorted(cards[place][1] for place in places))
        for place in places:
            card, number = cards[place]
            left = Card(card.core - part.core, card.memory - part.memory, card.instances + 1)
            cards[place] = left, number
    return arrangement


def _places(core: int, memory: int, count: int, cards: Sequence[tuple[Card, int]], cap: int) -> list[int]:
    """Where the first cards are that take a shared container, as many as it wants; none where there are too few."""
    places = []
    for place, (card, _) in enumerate(cards):
        if card.core >= core and card.memory >= memory and card.instances < cap:
            places.append(place)
            if len(places) == count:
                return places
    return []


def _part_size(part: Part) -> tuple[int, int, int]:
    return part.core, part.memory or 0, part.cards


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

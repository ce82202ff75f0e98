"""Which cards of one node each container of a pod gets, and how good that is: against other placements there, and other nodes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from fractions import Fraction
from math import gcd
from typing import Final, Literal

from core.mgpu.ask import MgpuAsk, Part
from core.mgpu.node import Card, NodeModel, NodeState, after, idle_card
from core.mgpu.numbering import Pool, number_cards
from core.mgpu.search import UNLIMITED, Goal, Load, Problem, Slot, Solution, solve
from core.mgpu.shares import FULL_CARD
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
    task = _task(ask, model, state, cap)
    if task is None:
        return None
    shared, outcome = task.search(policy, weight, budget)
    indexes: Mapping[int, tuple[int, ...]] | None = None
    if outcome.choices is not None:
        indexes = number_cards(task.full, shared, outcome.choices, task.pools)
    elif not outcome.complete:
        found = _any(ask, model, state, cap, FIT_BUDGET)
        indexes = None if isinstance(found, Doubt) else found
    if indexes is None:
        return None
    placed = {part.container: indexes[position] for position, part in enumerate(ask.parts)}
    value = combination(after(state, model, ask, placed), model, policy=policy, weight=weight)
    return Placement(placed, value, outcome.complete)


def preferred(
    ask: MgpuAsk, model: NodeModel, state: NodeState, settings: MgpuSettings, budget: int = PLACEMENT_BUDGET
) -> Placement | None:
    """`allocate` by the settings' policy, weight and limit of containers."""
    return allocate(
        ask,
        model,
        state,
        policy=settings.policy,
        weight=settings.weight_of_core,
        cap=settings.max_containers_per_card,
        budget=budget,
    )


def feasible(
    ask: MgpuAsk, model: NodeModel, state: NodeState, *, cap: int, budget: int = FIT_BUDGET
) -> bool | None:
    """Whether all containers together have room; None where the budget ended the search, which proves nothing.

    The search ends at the first arrangement that is found. Who lets a pod in takes None for no room, on the safe side.
    """
    found = _any(ask, model, state, cap, budget)
    return None if found is Doubt.UNDECIDED else not isinstance(found, Doubt)


def any_placement(
    ask: MgpuAsk, model: NodeModel, state: NodeState, *, cap: int, budget: int = FIT_BUDGET
) -> Mapping[str, tuple[int, ...]] | None:
    """The first arrangement that is found, good or not: container name -> its cards."""
    indexes = _any(ask, model, state, cap, budget)
    if isinstance(indexes, Doubt):
        return None
    return {part.container: indexes[position] for position, part in enumerate(ask.parts)}


def _any(
    ask: MgpuAsk, model: NodeModel, state: NodeState, cap: int, budget: int
) -> Mapping[int, tuple[int, ...]] | Doubt:
    """Some arrangement, by container position, good or not; else whether it is proved that there is none."""
    indexes = first_fit(ask, model, state, cap)
    if indexes is not Doubt.UNDECIDED:
        return indexes
    task = _task(ask, model, state, cap)
    if task is None:
        return Doubt.NO_ROOM
    shared, outcome = task.search("any", _EVEN, budget)
    if outcome.choices is None:
        return Doubt.NO_ROOM if outcome.complete else Doubt.UNDECIDED
    return number_cards(task.full, shared, outcome.choices, task.pools)


@dataclass(frozen=True, slots=True)
class _Task:
    """An allocation, sorted out: containers by their position in the pod, cards by what is free on them."""

    model: NodeModel
    full: Mapping[int, int]
    """Position -> number of whole cards."""
    shared: tuple[tuple[int, Load], ...]
    pools: tuple[Pool, ...]
    """By lowest number; no less idle cards than whole cards are needed."""

    def search(self, goal: Goal, weight: int, budget: int) -> tuple[tuple[tuple[int, Load], ...], Solution]:
        """The shared containers in the order of the search, and what it came to."""
        size = max(self.model.memory, 1)
        by_size = sorted(self.shared, key=lambda entry: _size(entry[1], size, weight), reverse=True)
        core_weight, memory_weight = weight * size**2, (100 - weight) * FULL_CARD**2
        divisor = gcd(core_weight, memory_weight)
        problem = Problem(
            slots=self._slots(in_order=goal != "any"),
            loads=tuple(load for _, load in by_size),
            core_weight=core_weight // divisor,
            memory_weight=memory_weight // divisor,
            goal=goal,
            budget=budget,
        )
        return tuple(by_size), solve(problem)

    def _slots(self, *, in_order: bool) -> tuple[tuple[Slot, int], ...]:
        """The classes of cards that some shared container fits on, each with no more cards than can be touched.

        The whole cards are taken away first: idle cards are all alike, and one share on it spoils a card for them.
        Where the order of the cards cannot matter it is left out, so that more nodes have equal problems.
        """
        whole, limit = sum(self.full.values()), sum(load.cards for _, load in self.shared)
        counts: dict[Slot, int] = {}
        for pool in self.pools:
            spare = len(pool.numbers) - (whole if pool.idle else 0)
            if spare and any(load.fits(pool.slot) for _, load in self.shared):
                counts[pool.slot] = min(counts.get(pool.slot, 0) + spare, limit)
        return tuple(counts.items() if in_order else sorted(counts.items()))


def _task(ask: MgpuAsk, model: NodeModel, state: NodeState, cap: int) -> _Task | None:
    """None when there are not enough idle cards for the full parts, or the parts ask together for more than is free."""
    if excess(ask.parts, free(state.cards, cap), model, cap) is not None:
        return None
    full = {position: part.cards for position, part in enumerate(ask.parts) if part.full}
    if sum(full.values()) > len(state.idle(model)):
        return None
    shared = tuple(
        (position, Load(part.cards, part.core, part.memory))
        for position, part in enumerate(ask.parts)
        if part.memory is not None
    )
    return _Task(model, full, shared, _pools(model, state, cap, len(shared)))


def _pools(model: NodeModel, state: NodeState, cap: int, containers: int) -> tuple[Pool, ...]:
    """Equal cards together. Seats count only where the containers at hand could use them up."""
    scarce = any(card.core > 0 and cap - card.instances < containers for card in state.cards)
    idle = idle_card(model)
    numbers: dict[tuple[Slot, bool], list[int]] = {}
    for number, card in enumerate(state.cards):
        seats = min(max(cap - card.instances, 0), containers) if scarce else UNLIMITED
        numbers.setdefault((Slot(card.core, card.memory, seats), card == idle), []).append(number)
    return tuple(Pool(slot, tuple(members), is_idle) for (slot, is_idle), members in numbers.items())


def _size(load: Load, memory: int, weight: int) -> tuple[int, int, int, int]:
    """Sorts the loads: the largest share of a card first, equal ones next to each other."""
    share = weight * load.core * memory + (100 - weight) * load.memory * FULL_CARD
    return share, load.cards, load.core, load.memory


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
    idle = state.idle(model)
    whole = sum(part.cards for part in ask.parts if part.full)
    if whole > len(idle):
        return Doubt.NO_ROOM
    taken = set(idle[:whole])
    cards = sorted((card, number) for number, card in enumerate(state.cards) if number not in taken)
    shared = ((part.core, part.memory, part.cards) for part in ask.parts if part.memory is not None)
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

"""An allocation, sorted out for the search: containers by size, cards by what is free on them."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd

from core.mgpu.ask import MgpuAsk
from core.mgpu.node import NodeModel, NodeState, idle_card
from core.mgpu.numbering import Pool, number_cards
from core.mgpu.purse import Purse
from core.mgpu.search import Goal, Problem, Solution, solve
from core.mgpu.shares import FULL_CARD
from core.mgpu.slots import UNLIMITED, Load, Slot
from core.mgpu.totals import excess, free

Shared = tuple[tuple[int, Load], ...]
"""Containers that take shares, by their position in the pod."""


@dataclass(frozen=True, slots=True)
class Task:
    """An allocation, sorted out: containers by their position in the pod, cards by what is free on them."""

    model: NodeModel
    full: Mapping[int, int]
    """Position -> number of whole cards."""
    shared: Shared
    pools: tuple[Pool, ...]
    """By lowest number; no less idle cards than whole cards are needed."""

    def search(self, goal: Goal, weight: int, budget: int, purse: Purse | None) -> "Outcome":
        """What a search comes to that takes no more steps than its own budget and what is left in the purse.

        None begins that has to end before it has placed every container once.
        """
        steps = budget if purse is None else min(budget, purse.left)
        if purse is not None and steps < len(self.shared):
            return Outcome(self, self.shared, Solution(None, complete=False, steps=0))
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
            budget=steps,
        )
        solution = solve(problem)
        if purse is not None:
            purse.spend(solution.steps)
        return Outcome(self, tuple(by_size), solution)

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


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a search came to; the solution is that of the shared containers in this order."""

    task: Task
    shared: Shared
    solution: Solution

    def numbered(self) -> Mapping[int, tuple[int, ...]] | None:
        """The cards by the position of the container; None where no arrangement was found."""
        choices = self.solution.choices
        return (
            None if choices is None else number_cards(self.task.full, self.shared, choices, self.task.pools)
        )


def task_of(ask: MgpuAsk, model: NodeModel, state: NodeState, cap: int) -> Task | None:
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
    return Task(model, full, shared, _pools(model, state, cap, len(shared)))


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

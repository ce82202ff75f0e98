"""The search for the best way to lay shared containers over the cards of one node.

Depth first over the containers, largest first, with exact integers. Three things keep it small: cards with equal
room are one class, of which only the number taken matters; a multiset of cards that was reached before is not
looked at again, because the objective depends on the end state alone; and a branch whose bound cannot beat the
best answer is cut. The work is limited by a number of steps, not by time, so that every run gives one answer.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from operator import attrgetter
from typing import Literal, NamedTuple

from core.mgpu.bounds import greatest_loss, least_loss, together
from core.mgpu.kept import kept
from core.mgpu.pieces import PAUSE, Search, searched
from core.mgpu.slots import Load, Packing, Slot
from core.steps import Steps

Goal = Literal["binpack", "spread", "any"]
"""Few cards filled up, or all cards filled evenly, or the first arrangement that is found."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Slots with their numbers of cards, in the order that decides between equals, and the loads in any order.

    The objective is the sum over the cards of core_weight * core**2 + memory_weight * memory**2 of what stays free:
    binpack makes it as large as possible, spread as small as possible.
    """

    slots: tuple[tuple[Slot, int], ...]
    loads: tuple[Load, ...]
    core_weight: int
    memory_weight: int
    goal: Goal
    budget: int


Choice = tuple[tuple[Slot, int], ...]
"""How many cards of which slot one load takes, at the moment when it is placed."""


@dataclass(frozen=True, slots=True)
class Solution:
    """`choices` are parallel to the loads; None when nothing was found.

    `complete`: the budget was enough, so the choices are the best there are, or None means that there are none.
    """

    choices: tuple[Choice, ...] | None
    complete: bool
    steps: int


def _containers(problem: Problem) -> int:
    return len(problem.loads)


@kept(_containers)
def solve(problem: Problem) -> Solution:
    """The best arrangement within the budget. Equal problems are solved once: most nodes share few states."""
    if not problem.loads:
        return Solution((), complete=True, steps=0)
    return searched(problem, lambda: Search(_Search(problem).run(), attrgetter("steps")))


_Packed = tuple[tuple[int, int], ...]
"""A choice whose slots are packed."""

_Option = tuple[int, int, int, int, int]
"""Cost per card, rank among equals, the slot, what is left of it (both packed), number of such cards."""

_State = tuple[int, ...]
"""One slot per card, packed, ascending."""


class _Rest(NamedTuple):
    """What all loads from one position on need together, can take from one card, and take there at least."""

    cards: int
    core: int
    memory: int
    most_core: int
    most_memory: int
    least_core: int
    least_memory: int


def _rests(loads: Sequence[Load]) -> list[_Rest]:
    """One rest per position."""
    rests: list[_Rest] = []
    rest = _Rest(0, 0, 0, 0, 0, loads[-1].core, loads[-1].memory)
    for cards, core, memory in reversed(loads):
        rest = _Rest(
            rest.cards + cards,
            rest.core + cards * core,
            rest.memory + cards * memory,
            rest.most_core + core,
            rest.most_memory + memory,
            min(rest.least_core, core),
            min(rest.least_memory, memory),
        )
        rests.append(rest)
    rests.reverse()
    return rests


class _Search:
    """One run. `cost` is what binpack loses, or what spread gains with its sign turned: less is better."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._packing = packing = Packing([slot for slot, _ in problem.slots], problem.loads)
        self._sign = -1 if problem.goal == "spread" else 1
        self._rank = {packing.slot(slot): rank for rank, (slot, _) in enumerate(problem.slots)}
        self._counts = [load.cards for load in problem.loads]
        self._shares = [packing.share(load.core, load.memory) for load in problem.loads]
        self._prices = [_price(problem, load) for load in problem.loads]
        self._moves: list[dict[int, _Option | None]] = [{} for _ in problem.loads]
        self._seen: list[set[_State]] = [set() for _ in problem.loads]
        self._rests = _rests(problem.loads)
        self._least = [packing.share(rest.least_core, rest.least_memory) for rest in self._rests]
        self._best_cost: int | None = None
        self._best: tuple[_Packed, ...] | None = None

    def run(self) -> Steps[Solution]:
        """Explores until all is seen, the budget is used up, or, for `any`, something is found."""
        slots = self._problem.slots
        root = tuple(sorted(self._packing.slot(slot) for slot, count in slots for _ in range(count)))
        if not self._promising(0, root, 0):
            return Solution(None, complete=True, steps=0)
        stack = [self._children(0, root, 0)]
        path: list[_Packed] = []
        steps = 0
        while stack:
            child = next(stack[-1], None)
            if child is None:
                stack.pop()
                if path:
                    path.pop()
                continue
            steps += 1
            if steps > self._problem.budget:
                return Solution(self._choices(), complete=False, steps=self._problem.budget)
            if steps % PAUSE == 0:
                yield
            choice, state, cost = child
            position = len(stack)
            if position == len(self._shares):
                if self._best_cost is None or cost < self._best_cost:
                    self._best_cost, self._best = cost, (*path, choice)
                    if self._problem.goal == "any":
                        break
            elif state not in self._seen[position]:
                self._seen[position].add(state)
                if self._promising(position, state, cost):
                    path.append(choice)
                    stack.append(self._children(position, state, cost))
        return Solution(self._choices(), complete=True, steps=steps)

    def _choices(self) -> tuple[Choice, ...] | None:
        """The best answer so far, as it is given to others."""
        if self._best is None:
            return None
        unpacked = self._packing.unpacked
        return tuple(tuple((unpacked(slot), count) for slot, count in choice) for choice in self._best)

    def _promising(self, position: int, state: _State, cost: int) -> bool:
        """Whether the loads from `position` on may fit, and may end better than the best answer so far."""
        rest, least, guard = self._rests[position], self._least[position], self._packing.guard
        usable = [slot for slot in state if (slot | guard) - least & guard == guard]
        if self._packing.limited and sum(self._packing.seats(usable)) < rest.cards:
            return False
        cores, memories = self._packing.cores(usable), self._packing.memories(usable)
        if self._best_cost is None:
            fit = together(cores, rest.most_core) >= rest.core
            return fit and together(memories, rest.most_memory) >= rest.memory
        memories.sort()
        if self._problem.goal == "spread":
            cores.reverse()
            memories.reverse()
            core_loss = greatest_loss(cores, rest.most_core, rest.core)
            memory_loss = greatest_loss(memories, rest.most_memory, rest.memory)
        else:
            core_loss = least_loss(cores, rest.most_core, rest.core)
            memory_loss = least_loss(memories, rest.most_memory, rest.memory)
        if core_loss < 0 or memory_loss < 0:
            return False
        bound = self._problem.core_weight * core_loss + self._problem.memory_weight * memory_loss
        return cost + self._sign * bound < self._best_cost

    def _children(self, position: int, state: _State, cost: int) -> Iterator[tuple[_Packed, _State, int]]:
        """The ways to place the load at `position`, the most promising first.

        Of the last load only the first way: nothing follows it, and its cards cost what each of them costs.
        """
        last = position + 1 == len(self._shares)
        for taken in _selections(self._options(position, state), self._counts[position]):
            cards = list(state)
            total = cost
            for (price, _, slot, left, _), count in taken:
                first = cards.index(slot)
                cards[first : first + count] = [left] * count
                total += price * count
            cards.sort()
            yield tuple([(option[2], count) for option, count in taken]), tuple(cards), total
            if last:
                return

    def _options(self, position: int, state: _State) -> list[_Option]:
        """The classes that can take the load, cheapest first, equals by the order given in the problem."""
        moves = self._moves[position]
        counts: dict[int, int] = {}
        for slot in state:
            counts[slot] = counts.get(slot, 0) + 1
        options: list[_Option] = []
        for slot, count in counts.items():
            if slot in moves:
                move = moves[slot]
            else:
                move = moves[slot] = self._move(position, slot)
            if move is not None:
                options.append(move if count == 1 else (*move[:4], count))
        options.sort()
        return options

    def _move(self, position: int, slot: int) -> _Option | None:
        """The load on one card of the slot; None when it does not fit."""
        share, guard = self._shares[position], self._packing.guard
        if (slot | guard) - share & guard != guard:
            return None
        by_core, by_memory, less = self._prices[position]
        price = by_core * self._packing.core(slot) + by_memory * self._packing.memory(slot) - less
        return price, self._rank.get(slot, len(self._rank)), slot, slot - share, 1


def _price(problem: Problem, load: Load) -> tuple[int, int, int]:
    """What a load costs on one card, by its core and by its memory, and less by this: the difference of two squares, for each."""
    sign = -1 if problem.goal == "spread" else 1
    core, memory = sign * problem.core_weight * load.core, sign * problem.memory_weight * load.memory
    return 2 * core, 2 * memory, core * load.core + memory * load.memory


def _selections(options: list[_Option], cards: int) -> Iterator[Sequence[tuple[_Option, int]]]:
    """The ways to take `cards` cards, as many as possible of the first options first."""
    if cards == 1:
        return (((option, 1),) for option in options)
    if all(option[4] == 1 for option in options):
        return combinations([(option, 1) for option in options], cards)
    return _mixtures(options, cards)


def _mixtures(options: list[_Option], cards: int) -> Iterator[Sequence[tuple[_Option, int]]]:
    """`_selections` where options have several cards. What is yielded is valid until the next one is taken."""
    left = [0] * (len(options) + 1)
    for number in range(len(options) - 1, -1, -1):
        left[number] = left[number + 1] + options[number][4]
    taken: list[tuple[_Option, int]] = []

    def take(number: int, missing: int) -> Iterator[list[tuple[_Option, int]]]:
        if missing == 0:
            yield taken
        elif left[number] >= missing:
            option = options[number]
            for count in range(min(option[4], missing), 0, -1):
                taken.append((option, count))
                yield from take(number + 1, missing - count)
                taken.pop()
            yield from take(number + 1, missing)

    return take(0, cards)

"""The search for the best way to lay shared containers over the cards of one node.

Depth first over the containers, largest first, with exact integers. Three things keep it small: cards with equal
room are one class, of which only the number taken matters; a multiset of cards that was reached before is not
looked at again, because the objective depends on the end state alone; and a branch whose bound cannot beat the
best answer is cut. The work is limited by a number of steps, not by time, so that every run gives one answer.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, NamedTuple

from core.mgpu.bounds import greatest_loss, least_loss
from core.mgpu.kept import kept

Goal = Literal["binpack", "spread", "any"]
"""Few cards filled up, or all cards filled evenly, or the first arrangement that is found."""

UNLIMITED = -1
"""Seats of a card that no number of containers at hand can use up."""


class Slot(NamedTuple):
    """A class of cards: free core, free memory, and how many more containers it takes."""

    core: int
    memory: int
    seats: int


class Load(NamedTuple):
    """A container: what it takes on each of `cards` different cards."""

    cards: int
    core: int
    memory: int

    def fits(self, slot: Slot) -> bool:
        """Whether such a card can take the container's share."""
        return slot.core >= self.core and slot.memory >= self.memory and slot.seats != 0

    def left(self, slot: Slot) -> Slot:
        """What such a card has left when it has taken the share."""
        seats = slot.seats if slot.seats < 0 else slot.seats - 1
        return Slot(slot.core - self.core, slot.memory - self.memory, seats)


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
    return _Search(problem).run()


_State = tuple[Slot, ...]
"""One slot per card, ascending."""


@dataclass(frozen=True, slots=True)
class _Rest:
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
    for cards, core, memory in reversed(loads):
        after = rests[-1] if rests else _Rest(0, 0, 0, 0, 0, core, memory)
        rests.append(
            _Rest(
                cards=after.cards + cards,
                core=after.core + cards * core,
                memory=after.memory + cards * memory,
                most_core=after.most_core + core,
                most_memory=after.most_memory + memory,
                least_core=min(after.least_core, core),
                least_memory=min(after.least_memory, memory),
            )
        )
    rests.reverse()
    return rests


class _Search:
    """One run. `cost` is what binpack loses, or what spread gains with its sign turned: less is better."""

    def __init__(self, problem: Problem) -> None:
        loads = problem.loads
        self._problem = problem
        self._loads = loads
        self._sign = -1 if problem.goal == "spread" else 1
        self._rank = {slot: rank for rank, (slot, _) in enumerate(problem.slots)}
        self._moves: list[dict[Slot, tuple[int, int, Slot, Slot] | None]] = [{} for _ in loads]
        self._seen: list[set[_State]] = [set() for _ in loads]
        self._rests = _rests(loads)
        self._best_cost: int | None = None
        self._best: tuple[Choice, ...] | None = None

    def run(self) -> Solution:
        """Explore until all is seen, the budget is used up, or, for `any`, something is found."""
        root = tuple(sorted(slot for slot, count in self._problem.slots for _ in range(count)))
        if not self._loads:
            return Solution((), complete=True, steps=0)
        if not self._promising(0, root, 0):
            return Solution(None, complete=True, steps=0)
        stack = [self._children(0, root, 0)]
        path: list[Choice] = []
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
                return Solution(self._best, complete=False, steps=steps)
            choice, state, cost = child
            position = len(stack)
            if position == len(self._loads):
                if self._best_cost is None or cost < self._best_cost:
                    self._best_cost, self._best = cost, (*path, choice)
                    if self._problem.goal == "any":
                        break
            elif state not in self._seen[position]:
                self._seen[position].add(state)
                if self._promising(position, state, cost):
                    path.append(choice)
                    stack.append(self._children(position, state, cost))
        return Solution(self._best, complete=True, steps=steps)

    def _promising(self, position: int, state: _State, cost: int) -> bool:
        """Whether the loads from `position` on may fit, and may end better than the best answer so far."""
        rest = self._rests[position]
        least_core, least_memory = rest.least_core, rest.least_memory
        usable = [
            slot for slot in state if slot[0] >= least_core and slot[1] >= least_memory and slot[2] != 0
        ]
        if usable and usable[0][2] >= 0 and sum([slot[2] for slot in usable]) < rest.cards:
            return False
        cores = [slot[0] for slot in usable]
        memories = sorted([slot[1] for slot in usable])
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
        if self._best_cost is None:
            return True
        bound = self._problem.core_weight * core_loss + self._problem.memory_weight * memory_loss
        return cost + self._sign * bound < self._best_cost

    def _children(self, position: int, state: _State, cost: int) -> Iterator[tuple[Choice, _State, int]]:
        """The ways to place the load at `position`, the most promising first.

        Of the last load only the first way: nothing follows it, and its cards cost what each of them costs.
        """
        last = position + 1 == len(self._loads)
        for taken in _selections(self._options(position, state), self._loads[position].cards):
            cards = list(state)
            total = cost
            for (price, _, slot, left, _), count in taken:
                first = cards.index(slot)
                cards[first : first + count] = [left] * count
                total += price * count
            cards.sort()
            yield tuple((option[2], count) for option, count in taken), tuple(cards), total
            if last:
                return

    def _options(self, position: int, state: _State) -> list["_Option"]:
        """The classes that can take the load, cheapest first, equals by the order given in the problem."""
        moves = self._moves[position]
        options: list[_Option] = []
        first = 0
        while first < len(state):
            slot = state[first]
            count = 1
            while first + count < len(state) and state[first + count] == slot:
                count += 1
            first += count
            if slot in moves:
                move = moves[slot]
            else:
                move = moves[slot] = self._move(self._loads[position], slot)
            if move is not None:
                options.append((*move, count))
        options.sort()
        return options

    def _move(self, load: Load, slot: Slot) -> tuple[int, int, Slot, Slot] | None:
        """The load on one card of the slot: an option without its number of cards; None when it does not fit."""
        if not load.fits(slot):
            return None
        left = load.left(slot)
        loss = self._problem.core_weight * (slot.core**2 - left.core**2)
        loss += self._problem.memory_weight * (slot.memory**2 - left.memory**2)
        return self._sign * loss, self._rank.get(slot, len(self._rank)), slot, left


_Option = tuple[int, int, Slot, Slot, int]
"""Cost per card, rank among equals, the slot, what is left of it, number of such cards."""


def _selections(options: list[_Option], cards: int) -> Iterator[Sequence[tuple[_Option, int]]]:
    """The ways to take `cards` cards, as many as possible of the first options first."""
    if cards == 1 or all(option[4] == 1 for option in options):
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

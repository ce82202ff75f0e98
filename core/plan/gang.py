"""Whether the missing members of a gang can all be let in at once, and with which cards.

A search, not one greedy pass: a flexible pod that comes first may take the very card that a pod without a choice
needs. Members that cannot be told apart are tried in one order only, so a gang of like pods costs next to nothing; and
what did not work out is not tried again after another way to the same bookings.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from core.plan.fingerprint import Fingerprint
from core.plan.lineup import Lineup, Member, line_up, one_of_each
from core.steps import Steps, let_go

BUDGET: Final = 1_000
"""Bookings that are tried for one gang, beside one of each member with each of its cards: a tenth of a second or two.

A gang that needs more waits, on the safe side.
"""

_IN_ONE_STEP: Final = 8
"""Members that are considered, and booked, in about half a millisecond."""


_FREED_IN_A_STEP: Final = 1000
"""Members that were considered and are forgotten in as long."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A member and the card it gets; '' for one without cards."""

    member: Member
    card: str


class Trial(Protocol):
    """What is left for the gang while the search tries."""

    def take(self, member: Member, card: str) -> Steps[bool]:
        """Books the member with this card; false, and nothing booked, when it does not fit."""

    def give_back(self) -> None:
        """Takes back the last booking."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """The choice, empty where there is none; `exhausted` when the budget ended the search before it was certain."""

    chosen: tuple[Chosen, ...] = ()
    exhausted: bool = False


def assign(
    members: Sequence[Member],
    wanted: int,
    wanted_tasks: Mapping[str, int],
    trial: Trial,
    *,
    budget: int | None = None,
) -> Steps[Assignment]:
    """Chooses `wanted` members, at least `wanted_tasks` of each task, so that all fit together.

    Earlier members come first, but members without a choice before all others: nothing else can serve them. What was
    chosen stays booked in the trial; without a choice nothing does. `budget` is how many bookings are tried, by default as
    many as a gang of this size is worth.
    """
    if budget is None:
        budget = BUDGET + (yield from one_of_each(members))
    tasks = {task: count for task, count in wanted_tasks.items() if count > 0}
    search = _Search((yield from line_up(members, tasks)), tasks, trial, budget)
    complete = yield from search.run(wanted)
    yield from search.let_go()
    return Assignment(tuple(search.chosen) if complete else (), exhausted=search.steps > budget)


@dataclass(slots=True)
class _Frame:
    """One member under consideration, with so many still wanted.

    `number` is the alternative to try next; beyond the last one the member is passed over. `state` is all that decides
    about what can follow.
    """

    position: int
    wanted: int
    number: int
    state: Hashable
    taken: bool = False
    passed: int = 0
    """How many members were passed over from here on."""


class _Search:
    """Depth first, on a stack of its own: a gang may have more members than Python nests calls.

    What a turn costs does not depend on how many members there are, nor on how much they differ.
    """

    def __init__(self, lineup: Lineup, tasks: dict[str, int], trial: Trial, budget: int) -> None:
        self.chosen: list[Chosen] = []
        self.steps = 0
        self._lineup = lineup
        self._members = lineup.members
        self._trial = trial
        self._budget = budget
        self._tasks = tasks
        """Members still owed of each task; below 0 where more were chosen."""
        self._owed = sum(tasks.values())
        """All that are still owed."""
        self._spare = {task: lineup.of_task[task] - count for task, count in tasks.items()}
        """How many more members of each task may be passed over."""
        self._frames: list[_Frame] = []
        self._booked = [0] * lineup.places
        """How often each weight was booked with each card, by its place."""
        self._bonds: dict[Hashable, tuple[str, int]] = {}
        """Which card each bond has come to, and how many members have it."""
        self._open = Fingerprint(lineup.places)
        """What was booked, what is owed, and the cards of bonds of which members are still to come."""
        for task, count in tasks.items():
            self._open.put(lineup.tasks[task], count)
        self._hopeless: set[Hashable] = set()

    def run(self, wanted: int) -> Steps[bool]:
        """Chooses `wanted` members; what was booked is given back when that is not possible."""
        if self._is_enough(wanted):
            return True
        if any(spare < 0 for spare in self._spare.values()):
            return False
        self._consider(_Frame(0, wanted, 0, self._state(0, wanted, 0)))
        turns = 0
        while self._frames:
            turns += 1
            if turns % _IN_ONE_STEP == 0:
                yield
            frame = self._frames[-1]
            if frame.taken:
                # What was to follow did not work out.
                self._give_back(frame)
            if self.steps > self._budget or frame.number > len(self._members[frame.position].alternatives):
                self._hopeless.add(frame.state)
                self._leave(frame)
            elif (yield from self._go_on(frame)):
                return True
        return False

    def let_go(self) -> Steps[None]:
        """Frees what the search has needed, in steps. What was chosen stays."""
        yield from let_go(self._frames, _FREED_IN_A_STEP)
        yield from let_go(self._hopeless, _FREED_IN_A_STEP)
        yield from self._open.let_go(_FREED_IN_A_STEP)

    def _is_enough(self, wanted: int) -> bool:
        return wanted <= 0 and not self._owed

    def _state(self, position: int, wanted: int, floor: int) -> Hashable:
        """All that decides about what can follow.

        `floor` is the first alternative allowed: a member like the one before it never goes further left, which would
        be the same choice in another order.
        """
        return position, wanted, floor, self._open.value

    def _is_hopeless(self, frame: _Frame) -> bool:
        wanted = max(frame.wanted, self._owed)
        return len(self._members) - frame.position < wanted or frame.state in self._hopeless

    def _consider(self, frame: _Frame) -> None:
        if not self._is_hopeless(frame):
            self._frames.append(frame)

    def _leave(self, frame: _Frame) -> None:
        self._frames.pop()
        if frame.passed:
            self._pass(frame, -frame.passed)

    def _go_on(self, frame: _Frame) -> Steps[bool]:
        """Tries the next alternative of a member, or passes it over. Returns whether the gang is complete."""
        member, number = self._members[frame.position], frame.number
        frame.number += 1
        if number < len(member.alternatives):
            return (yield from self._take(frame, member, number))
        # Passed over; so are those like it, or the same would be tried again under another name.
        following = self._lineup.beyond[frame.position]
        self._pass(frame, following - frame.position)
        if self._spare.get(member.task, 0) >= 0:
            self._consider(_Frame(following, frame.wanted, 0, self._state(following, frame.wanted, 0)))
        return False

    def _pass(self, frame: _Frame, count: int) -> None:
        """Passes so many members over, which are all of a kind; back again where it is less than none."""
        member = self._members[frame.position]
        frame.passed += count
        if member.task in self._spare:
            self._spare[member.task] -= count
        self._note_bond(member.bond, frame.position + frame.passed)

    def _take(self, frame: _Frame, member: Member, number: int) -> Steps[bool]:
        """Books a member with one of its cards, unless that leads nowhere. Returns whether the gang is complete."""
        if frame.wanted <= self._owed and self._tasks.get(member.task, 0) <= 0:
            return False
        card, position, wanted = member.alternatives[number], frame.position + 1, frame.wanted - 1
        if member.bond in self._bonds and self._bonds[member.bond][0] != card:
            return False
        floor = number if self._lineup.beyond[frame.position] > position else 0
        self._count(member, card, 1, position)
        following = _Frame(position, wanted, floor, self._state(position, wanted, floor))
        complete = self._is_enough(wanted)
        taken = False
        if complete or not self._is_hopeless(following):
            taken = yield from self._book(member, card)
        if not taken:
            self._count(member, card, -1, frame.position)
            return False
        self.chosen.append(Chosen(member, card))
        frame.taken = True
        if not complete:
            self._frames.append(following)
        return complete

    def _book(self, member: Member, card: str) -> Steps[bool]:
        self.steps += 1
        return (yield from self._trial.take(member, card))

    def _give_back(self, frame: _Frame) -> None:
        last = self.chosen.pop()
        self._trial.give_back()
        self._count(last.member, last.card, -1, frame.position)
        frame.taken = False

    def _count(self, member: Member, card: str, sign: int, position: int) -> None:
        """Takes note of a booking, or with -1 of one that is taken back; at `position` it goes on then."""
        place = self._lineup.bookings[member.weight, card]
        self._booked[place] += sign
        self._open.put(place, self._booked[place] or None)
        owed = self._tasks.get(member.task)
        if owed is not None:
            left = self._tasks[member.task] = owed - sign
            self._owed += max(0, left) - max(0, owed)
            self._open.put(self._lineup.tasks[member.task], max(0, left))
        if member.bond is not None:
            _, bonded = self._bonds.get(member.bond, (card, 0))
            self._bonds[member.bond] = card, bonded + sign
            if not bonded + sign:
                del self._bonds[member.bond]
            self._note_bond(member.bond, position)

    def _note_bond(self, bond: Hashable, position: int) -> None:
        """Has what follows depend on the card of a bond, as long as members of it are still to come at a position."""
        if bond is not None:
            to_come = self._lineup.bond_ends[bond] >= position
            card, _ = self._bonds.get(bond, (None, 0))
            self._open.put(self._lineup.bonds[bond], card if to_come else None)

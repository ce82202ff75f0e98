"""Whether the missing members of a gang can all be let in at once, and with which cards.

A search, not one greedy pass: a flexible pod that comes first may take the very card that a pod without a choice
needs. Members that cannot be told apart are tried in one order only, so a gang of like pods costs next to nothing; and
what did not work out is not tried again after another way to the same bookings.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from core.steps import Steps

BUDGET: Final = 1_000
"""Bookings that are tried for one gang, beside one of each member with each of its cards: a tenth of a second or two.

A gang that needs more waits, on the safe side.
"""

_IN_ONE_STEP: Final = 8
"""Members that are considered, and booked, in about half a millisecond."""


@dataclass(frozen=True, slots=True)
class Member:
    """A gated member, its task, and the cards that would serve it from left to right.

    One without cards has the one alternative ''. Members of equal `kind` are interchangeable; those of equal `weight`
    leave the same to all others when they get the same card. Those of one `bond` get the same card.
    """

    uid: str
    task: str
    alternatives: tuple[str, ...]
    kind: Hashable
    weight: Hashable
    bond: Hashable = None


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
    budget = BUDGET + one_of_each(members) if budget is None else budget
    search = _Search(
        sorted(members, key=lambda member: len(member.alternatives) > 1), wanted_tasks, trial, budget
    )
    complete = yield from search.run(wanted)
    return Assignment(tuple(search.chosen) if complete else (), exhausted=search.steps > budget)


def one_of_each(members: Sequence[Member]) -> int:
    """How many bookings it takes to try each member with each of its cards once."""
    return sum(len(member.alternatives) for member in members)


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


class _Search:
    """Depth first, on a stack of its own: a gang may have more members than Python nests calls."""

    def __init__(
        self, members: Sequence[Member], wanted_tasks: Mapping[str, int], trial: Trial, budget: int
    ) -> None:
        self.chosen: list[Chosen] = []
        self.steps = 0
        self._members = members
        self._trial = trial
        self._budget = budget
        self._tasks = {task: count for task, count in wanted_tasks.items() if count > 0}
        """Members still owed of each task; below 0 where more were chosen."""
        self._behind = self._count_behind()
        self._frames: list[_Frame] = []
        self._booked: Counter[tuple[Hashable, str]] = Counter()
        self._bonds: dict[Hashable, tuple[str, int]] = {}
        """Which card each bond has come to, and how many members have it."""
        self._bond_ends = {
            member.bond: position for position, member in enumerate(members) if member.bond is not None
        }
        self._hopeless: set[Hashable] = set()

    def _count_behind(self) -> list[Mapping[str, int]]:
        """For each position, how many members of each wanted task stand there or later."""
        behind: list[Mapping[str, int]] = [dict.fromkeys(self._tasks, 0)]
        if not self._tasks:
            return behind * (len(self._members) + 1)
        for member in reversed(self._members):
            counts = dict(behind[-1])
            if member.task in counts:
                counts[member.task] += 1
            behind.append(counts)
        return behind[::-1]

    def run(self, wanted: int) -> Steps[bool]:
        """Chooses `wanted` members; what was booked is given back when that is not possible."""
        if self._is_enough(wanted):
            return True
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
                self._frames.pop()
            elif (yield from self._go_on(frame)):
                return True
        return False

    def _is_enough(self, wanted: int) -> bool:
        return wanted <= 0 and not self._owed()

    def _owed(self) -> int:
        return sum(count for count in self._tasks.values() if count > 0)

    def _state(self, position: int, wanted: int, floor: int) -> Hashable:
        """All that decides about what can follow.

        `floor` is the first alternative allowed: a member like the one before it never goes further left, which would
        be the same choice in another order.
        """
        owed = tuple(max(0, count) for count in self._tasks.values())
        bonds = frozenset(
            (bond, card) for bond, (card, _) in self._bonds.items() if self._bond_ends[bond] >= position
        )
        return position, wanted, floor, owed, frozenset(self._booked.items()), bonds

    def _is_hopeless(self, frame: _Frame) -> bool:
        behind, wanted = self._behind[frame.position], max(frame.wanted, self._owed())
        if len(self._members) - frame.position < wanted:
            return True
        return frame.state in self._hopeless or any(
            behind[task] < count for task, count in self._tasks.items()
        )

    def _consider(self, frame: _Frame) -> None:
        if not self._is_hopeless(frame):
            self._frames.append(frame)

    def _go_on(self, frame: _Frame) -> Steps[bool]:
        """Tries the next alternative of a member, or passes it over. Returns whether the gang is complete."""
        member, number = self._members[frame.position], frame.number
        following = frame.position + 1
        frame.number += 1
        if number < len(member.alternatives):
            return (yield from self._take(frame, member, number))
        # Passed over; so are those like it, or the same would be tried again under another name.
        while following < len(self._members) and self._members[following].kind == member.kind:
            following += 1
        self._consider(_Frame(following, frame.wanted, 0, self._state(following, frame.wanted, 0)))
        return False

    def _take(self, frame: _Frame, member: Member, number: int) -> Steps[bool]:
        """Books a member with one of its cards, unless that leads nowhere. Returns whether the gang is complete."""
        if frame.wanted <= self._owed() and self._tasks.get(member.task, 0) <= 0:
            return False
        card, position, wanted = member.alternatives[number], frame.position + 1, frame.wanted - 1
        if member.bond in self._bonds and self._bonds[member.bond][0] != card:
            return False
        alike = position < len(self._members) and self._members[position].kind == member.kind
        floor = number if alike else 0
        self._count(member, card, 1)
        following = _Frame(position, wanted, floor, self._state(position, wanted, floor))
        complete = self._is_enough(wanted)
        taken = False
        if complete or not self._is_hopeless(following):
            taken = yield from self._book(member, card)
        if not taken:
            self._count(member, card, -1)
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
        self._count(last.member, last.card, -1)
        frame.taken = False

    def _count(self, member: Member, card: str, sign: int) -> None:
        booking = member.weight, card
        self._booked[booking] += sign
        if not self._booked[booking]:
            del self._booked[booking]
        if member.task in self._tasks:
            self._tasks[member.task] -= sign
        if member.bond is not None:
            _, bonded = self._bonds.get(member.bond, (card, 0))
            self._bonds[member.bond] = card, bonded + sign
            if not bonded + sign:
                del self._bonds[member.bond]

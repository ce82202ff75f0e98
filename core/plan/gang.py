"""Whether the missing members of a gang can all be let in at once, and with which cards.

A search, not one greedy pass: a flexible pod that comes first may take the very card that a pod without a choice
needs. Members that cannot be told apart are tried in one order only, so a gang of like pods costs next to nothing.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

BUDGET: Final = 10_000
"""Steps of the search; a gang that needs more waits, on the safe side."""


@dataclass(frozen=True, slots=True)
class Member:
    """A gated member, its task, and the cards that would serve it from left to right.

    One without cards has the one alternative ''. Members of equal `kind` are interchangeable.
    """

    uid: str
    task: str
    alternatives: tuple[str, ...]
    kind: Hashable


@dataclass(frozen=True, slots=True)
class Chosen:
    """A member and the card it gets; '' for one without cards."""

    member: Member
    card: str


class Trial(Protocol):
    """What is left for the gang while the search tries."""

    def take(self, member: Member, card: str) -> bool:
        """Books the member with this card; false, and nothing booked, when it does not fit."""

    def give_back(self) -> None:
        """Takes back the last booking."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The choice, empty where there is none; `exhausted` when the budget ended the search before it was certain."""

    chosen: tuple[Chosen, ...] = ()
    exhausted: bool = False


def assign(
    members: Sequence[Member],
    wanted: int,
    wanted_tasks: Mapping[str, int],
    trial: Trial,
    *,
    budget: int = BUDGET,
) -> Outcome:
    """Chooses `wanted` members, at least `wanted_tasks` of each task, so that all fit together.

    Earlier members come first, but members without a choice before all others: nothing else can serve them. What was
    chosen stays booked in the trial; without a choice nothing does.
    """
    search = _Search(
        sorted(members, key=lambda member: len(member.alternatives) > 1), wanted_tasks, trial, budget
    )
    found = search.run(0, wanted)
    return Outcome(tuple(search.chosen) if found else (), exhausted=search.steps > budget)


class _Search:
    def __init__(
        self, members: Sequence[Member], wanted_tasks: Mapping[str, int], trial: Trial, budget: int
    ) -> None:
        self.chosen: list[Chosen] = []
        self.steps = 0
        self._members = members
        self._trial = trial
        self._budget = budget
        self._tasks = {task: count for task, count in wanted_tasks.items() if count > 0}
        self._behind = self._count_behind()

    def _count_behind(self) -> list[Mapping[str, int]]:
        """For each position, how many members of each wanted task stand there or later."""
        behind: list[Mapping[str, int]] = [dict.fromkeys(self._tasks, 0)]
        for member in reversed(self._members):
            counts = dict(behind[-1])
            if member.task in counts:
                counts[member.task] += 1
            behind.append(counts)
        return behind[::-1]

    def run(self, position: int, wanted: int, floor: int = 0) -> bool:
        """Chooses `wanted` more from `position` on.

        `floor` is the first alternative allowed: a member like the one before it never goes further left, which would
        be the same choice in another order.
        """
        owed = sum(self._tasks.values())
        if wanted <= 0 and owed == 0:
            return True
        if not self._possible(position, max(wanted, owed)):
            return False
        self.steps += 1
        if self.steps > self._budget:
            return False
        member = self._members[position]
        for number in range(floor, len(member.alternatives)):
            if self._try(position, number, wanted):
                return True
        # Passed over; so are those like it, or the same would be tried again under another name.
        following = position + 1
        while following < len(self._members) and self._members[following].kind == member.kind:
            following += 1
        return self.run(following, wanted)

    def _possible(self, position: int, wanted: int) -> bool:
        behind = self._behind[position]
        return len(self._members) - position >= wanted and all(
            behind[task] >= count for task, count in self._tasks.items()
        )

    def _try(self, position: int, number: int, wanted: int) -> bool:
        member = self._members[position]
        useful = wanted > sum(self._tasks.values()) or self._tasks.get(member.task, 0) > 0
        if not useful or not self._trial.take(member, member.alternatives[number]):
            return False
        self.chosen.append(Chosen(member, member.alternatives[number]))
        owed = self._tasks.get(member.task, 0)
        if owed > 0:
            self._tasks[member.task] = owed - 1
        following = position + 1
        alike = following < len(self._members) and self._members[following].kind == member.kind
        if self.run(following, wanted - 1, number if alike else 0):
            return True
        if owed > 0:
            self._tasks[member.task] = owed
        self.chosen.pop()
        self._trial.give_back()
        return False

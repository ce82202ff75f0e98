"""The members of a gang in the order in which they are tried, with what a search asks of them again and again."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from core.steps import Pace, Steps

_IN_ONE_STEP: Final = 250
"""Members, and cards that would serve them, that are gone through in about half a millisecond."""


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
class Lineup:
    """Members without a choice come before all others: nothing else can serve them."""

    members: Sequence[Member]
    beyond: Sequence[int]
    """For each position, that of the next member that is not of the same kind as all in between."""
    bond_ends: Mapping[Hashable, int]
    """The position of the last member of each bond."""
    of_task: Mapping[str, int]
    """How many members there are of each task of which some are wanted."""
    tasks: Mapping[str, int]
    bookings: Mapping[tuple[Hashable, str], int]
    bonds: Mapping[Hashable, int]
    """A place for each of those tasks, each weight with a card, and each bond: all different, from 0 on, without a gap."""

    @property
    def places(self) -> int:
        """How many these are."""
        return len(self.tasks) + len(self.bookings) + len(self.bonds)


def line_up(members: Iterable[Member], wanted_tasks: Iterable[str]) -> Steps[Lineup]:
    """The members in the order in which they are tried."""
    pace = Pace(_IN_ONE_STEP)
    certain: list[Member] = []
    choosing: list[Member] = []
    for member in members:
        if pace.due():
            yield
        (choosing if len(member.alternatives) > 1 else certain).append(member)
    line = certain + choosing
    tasks = {task: place for place, task in enumerate(wanted_tasks)}
    of_task = dict.fromkeys(tasks, 0)
    bookings: dict[tuple[Hashable, str], int] = {}
    bonds: dict[Hashable, int] = {}
    bond_ends: dict[Hashable, int] = {}
    beyond = [len(line)] * len(line)
    for position in range(len(line) - 1, -1, -1):
        member = line[position]
        if pace.due(1 + len(member.alternatives)):
            yield
        following = position + 1
        if following < len(line):
            alike = line[following].kind == member.kind
            beyond[position] = beyond[following] if alike else following
        for card in member.alternatives:
            bookings.setdefault((member.weight, card), len(tasks) + len(bookings) + len(bonds))
        if member.bond is not None:
            bonds.setdefault(member.bond, len(tasks) + len(bookings) + len(bonds))
            bond_ends.setdefault(member.bond, position)
        if member.task in of_task:
            of_task[member.task] += 1
    return Lineup(line, beyond, bond_ends, of_task, tasks, bookings, bonds)


def one_of_each(members: Iterable[Member]) -> Steps[int]:
    """How many bookings it takes to try each member with each of its cards once."""
    count, pace = 0, Pace(_IN_ONE_STEP)
    for member in members:
        if pace.due():
            yield
        count += len(member.alternatives)
    return count

"""Who is looked at together, and in which order: pods alone, and the members of a PodGroup."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Final

from core import names
from core.objects import Group
from core.plan.finishable import may_finish
from core.queues.entry import Entry
from core.queues.group_minimum import Progress
from core.queues.ledger import Ledger
from core.stage import Stage
from core.steps import Pace, Steps, batched, in_order, let_go, merged

_IN_ONE_STEP: Final = 250
"""Pods that are put into their groups, or put in order, in about half a millisecond."""
_OF_A_GROUP: Final = 5
"""What a group costs beside its members."""

_PLACE: Final = attrgetter("place")


@dataclass(frozen=True, slots=True)
class Unit:
    """The waiting pods of one group, or pods that belong to none (then `group` and `progress` are None)."""

    entries: Sequence[Entry]
    rank: tuple[bool, int, int, str]
    group: Group | None = None
    progress: Progress | None = None
    helped: int = 0
    """`Wakeups.helped` of its queue before the group was looked at: what is decided by that is no answer to what happened since."""
    choice: int = 0
    """Of one that comes first: among how many cards its members may choose, the one that has most."""
    version: int = 0
    """That of the group, see GroupBook, when its progress was read."""
    stuck: bool = False
    """Whether it was let in, stopped short and cannot get further as limits and members are: nobody waits for it."""

    @property
    def queue(self) -> str:
        """The queue that all of them charge."""
        return self.entries[0].queue

    @property
    def key(self) -> Hashable:
        """What names the unit from pass to pass."""
        return self.group.uid if self.group is not None else self.entries[0].pod.uid

    @property
    def comes_first(self) -> bool:
        """Whether it has precedence over all others, see `units_of`."""
        return not self.rank[0]

    @property
    def place(self) -> tuple[bool, int, tuple[bool, int, int, str]]:
        """Where it stands among the units of its queue."""
        return self.rank[0], self.choice, self.rank

    def in_line(self) -> "Unit":
        """The same without precedence."""
        return replace(self, rank=(True, *self.rank[1:]), choice=0)

    @property
    def starts_with(self) -> int:
        """How many members have to be in for any of them to be of use."""
        return 1 if self.progress is None else self.progress.minimum.members

    @property
    def has_tasks(self) -> bool:
        """Whether it is told of which tasks members have to be in."""
        return self.progress is not None and bool(self.progress.minimum.tasks)

    @property
    def lacks_members(self) -> bool:
        """Whether some members have to be lifted together before any other one is of use."""
        progress = self.progress
        return (
            progress is not None
            and not progress.minimum.first_is_any
            and (progress.missing > 0 or bool(progress.missing_tasks))
        )


def units_of(ledger: Ledger, queue: str) -> Steps[list[Unit]]:
    """The waiting pods of a queue in the order in which they are considered.

    A group that was let in and stopped short of its minimum comes before all others: what it holds is of no use yet. Not
    one that cannot get there, because members are missing or their queue's quota would never suffice; it holds up no fifo
    queue either. Of several such groups those with the least choice of cards come first, so that none takes the only card of
    another one while it has a second. Then by priority, age and name, of the group where there is one. Inside a group, tasks with a minimum come first.
    """
    helped = ledger.wakeups.helped(queue)
    alone: list[Unit] = []
    grouped: dict[str, list[Entry]] = {}
    groups: dict[str, Group] = {}
    for number, entry in enumerate((yield from ledger.line_of(queue)), 1):
        group = ledger.group_of(entry.pod)
        if group is None:
            alone.append(Unit((entry,), (True, *entry.order)))
        else:
            groups[group.key] = group
            grouped.setdefault(group.key, []).append(entry)
        if number % _IN_ONE_STEP == 0:
            yield
    together: list[Unit] = []
    pace = Pace(_IN_ONE_STEP)
    for key, entries in grouped.items():
        if pace.due(_OF_A_GROUP + len(entries)):
            yield
        together.append((yield from _unit(ledger, groups[key], entries, helped)))
    if not together:
        return alone
    together = yield from in_order(together, _PLACE, _IN_ONE_STEP)
    return (yield from merged((alone, together), _PLACE, _IN_ONE_STEP))


def renewed(ledger: Ledger, unit: Unit) -> Unit | None:
    """The unit with its group, and how far that is, as the books have them now; None when its group is gone.

    A queue's turn takes long, and members that are in come and go meanwhile, and minimums change.
    """
    if unit.group is None:
        return unit
    group = ledger.group_of(unit.entries[0].pod)
    if group is None or group.key != unit.group.key:
        return None
    version = ledger.groups.version(group.key)
    if group is unit.group and version == unit.version:
        return unit
    return replace(unit, group=group, progress=ledger.groups.progress(group), version=version)


def let_go_of(units: list[Unit]) -> Steps[None]:
    """Frees those that nobody needs any more, in steps: who was let in meanwhile is another entry in the books."""
    pace = Pace(_IN_ONE_STEP)
    while units:
        entries = [*units.pop().entries]
        if pace.due(1 + len(entries)):
            yield
        yield from let_go(entries, _IN_ONE_STEP)


def queues_to_finish(ledger: Ledger) -> Steps[dict[str, set[str]]]:
    """The queues in which a group waits that comes before all others, and the cards and resources that it waits for there."""
    found: dict[str, set[str]] = {}
    pace = Pace(_IN_ONE_STEP)
    for key in tuple(ledger.groups.unfinished):
        if ledger.queues_with(key) and (yield from may_finish(ledger, key)):
            for entry in ledger.entries_of(key):
                if pace.due():
                    yield
                if entry.stage is Stage.WAITING:
                    found.setdefault(entry.queue, set()).update(entry.demand.cards)
        yield
    return found


def _unit(ledger: Ledger, group: Group, entries: list[Entry], helped: int) -> Steps[Unit]:
    version, progress = ledger.groups.version(group.key), ledger.groups.progress(group)
    first = progress.unfinished and progress.possible and (yield from may_finish(ledger, group.key))
    rank = (not first, -ledger.groups.priority(group), group.created, group.key)
    tasks = progress.minimum.tasks

    def place(entry: Entry) -> tuple[bool, int, str]:
        of_no_task = bool(tasks) and entry.pod.annotations.get(names.TASK_SPEC_ANNOTATION, "") not in tasks
        return of_no_task, entry.pod.created, entry.pod.key

    entries = yield from in_order(entries, place, _IN_ONE_STEP)
    choice = 0
    for some in batched(entries, _IN_ONE_STEP) if first else ():
        yield
        choice = max(choice, *(len(entry.demand.cards) for entry in some))
    stuck = progress.unfinished and not first
    return Unit(tuple(entries), rank, group, progress, helped, choice, version, stuck)

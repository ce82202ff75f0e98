"""Who is looked at together, and in which order: pods alone, and the members of a PodGroup."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final

from core import names
from core.objects import Group
from core.queues.entry import Entry
from core.queues.group_minimum import Progress
from core.queues.ledger import Ledger
from core.steps import Steps

_IN_ONE_STEP: Final = 250
"""Pods that are put into their groups in about half a millisecond."""


@dataclass(frozen=True, slots=True)
class Unit:
    """The waiting pods of one group, or pods that belong to none (then `group` and `progress` are None)."""

    entries: Sequence[Entry]
    rank: tuple[bool, int, int, str]
    group: Group | None = None
    progress: Progress | None = None

    @property
    def queue(self) -> str:
        """The queue that all of them charge."""
        return self.entries[0].queue

    @property
    def key(self) -> Hashable:
        """What names the unit from pass to pass."""
        return self.group.uid if self.group is not None else self.entries[0].pod.uid

    @property
    def lacks_members(self) -> bool:
        """Whether some members have to be lifted together before any other one is of use."""
        progress = self.progress
        return (
            progress is not None
            and not progress.minimum.alone
            and (progress.missing > 0 or bool(progress.missing_tasks))
        )


def units_of(ledger: Ledger, queue: str) -> Steps[list[Unit]]:
    """The waiting pods of a queue in the order in which they are considered.

    A group that was let in and stopped short of its minimum comes before all others: what it holds is of no use yet.
    Then by priority, age and name, of the group where there is one. Inside a group, tasks with a minimum come first.
    """
    waiting = ledger.waiting(queue)
    alone: list[Unit] = []
    grouped: dict[str, list[Entry]] = {}
    groups: dict[str, Group] = {}
    for number, entry in enumerate(waiting, 1):
        group = ledger.group_of(entry.pod)
        if group is None:
            alone.append(Unit((entry,), (True, *entry.order)))
        else:
            groups[group.key] = group
            grouped.setdefault(group.key, []).append(entry)
        if number % _IN_ONE_STEP == 0:
            yield
    together: list[Unit] = []
    for number, (key, entries) in enumerate(grouped.items(), 1):
        together.append(_unit(ledger, groups[key], entries))
        if number % (_IN_ONE_STEP // 5) == 0:
            yield
    return sorted([*alone, *together], key=lambda unit: unit.rank)


def has_unfinished(ledger: Ledger, queue: str) -> bool:
    """Whether a group with waiting pods in the queue was let in and stopped short of its minimum."""
    return any(queue in ledger.queues_with(group) for group in ledger.groups.unfinished)


def _unit(ledger: Ledger, group: Group, entries: list[Entry]) -> Unit:
    progress = ledger.groups.progress(group)
    rank = (not progress.unfinished, -ledger.groups.priority(group), group.created, group.key)
    if progress.minimum.tasks:
        entries.sort(
            key=lambda entry: (
                entry.pod.annotations.get(names.TASK_SPEC_ANNOTATION, "") not in progress.minimum.tasks,
                entry.pod.created,
                entry.pod.key,
            )
        )
    else:
        entries.sort(key=lambda entry: (entry.pod.created, entry.pod.key))
    return Unit(tuple(entries), rank, group, progress)

"""How far a group is from the number of members that it needs to start."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

from core import names
from core.objects import Group, Pod
from core.stage import Stages

_DIGITS: Final = 9
"""No number of members has more; what has is no record of ours."""


@dataclass(frozen=True, slots=True)
class Minimum:
    """How many members, and of which tasks, must start together; at most one member means each alone."""

    members: int
    tasks: Mapping[str, int]
    afresh: bool = False
    """Whether members that have ended belong to an earlier run as soon as none of those that were let in is left. Nothing but
    their name tells pods apart that nobody owns: the next run of the same name would start one by one."""

    @property
    def alone(self) -> bool:
        """Whether no member needs another one."""
        return self.members <= 1

    @property
    def first_is_any(self) -> bool:
        """Whether every pod is looked at by itself: none has to be in before another one."""
        return self.alone and not self.tasks


def minimum_of(group: Group | None) -> Minimum:
    """The minimum of a group; a pod without group (None) starts alone.

    Task minimums hold only while their sum does not exceed minMember: Volcano ignores them beyond that, and a task of a
    Volcano Job that names no minimum is given all its replicas as one.
    """
    if group is None:
        return Minimum(1, {})
    tasks = {task: count for task, count in group.min_task_member.items() if count > 0}
    return Minimum(
        max(1, group.min_member),
        tasks if sum(tasks.values()) <= group.min_member else {},
        afresh=group.unowned_gang,
    )


def counts(pod: Pod, stages: Stages) -> bool:
    """Whether a member counts towards the minimum: lifted, bound or Succeeded, but not Failed or terminating.

    Nor one that nobody can bind, for gates of others or its scheduler: the group would not start with it.
    """
    return _usable(pod) and (pod.bound or pod.phase == "Succeeded" or stages.counts_in_group(pod))


def waits(pod: Pod, stages: Stages) -> bool:
    """Whether a member may be lifted now, if there is quota."""
    return _usable(pod) and pod.gated and not counts(pod, stages) and not stages.other_gates(pod)


def _usable(pod: Pod) -> bool:
    return not pod.deleting and pod.phase != "Failed"


@dataclass(frozen=True, slots=True)
class Progress:
    """A group's way to its minimum."""

    minimum: Minimum
    counted: int
    """Members that are lifted, bound or have succeeded."""
    admitted: bool
    """Whether one of them has not ended."""
    cut: bool
    """Whether fewer are in than were once let in together."""
    unfinished: bool
    """Whether it is cut, and as many as are lacking make it whole again.

    That is on record. A minimum that is raised afterwards makes no group unfinished, it would come before all others; nor does
    one whose tasks lack more members than that, for it would come first with some that start nothing.
    """
    short: bool
    """Whether it is cut, or cannot start and some that were let in have no node.

    It cannot when fewer than its minimum were let in: one by one, while nobody knew of their PodGroup or by a version without
    such records, or before the minimum was raised; and when a task that has a minimum of its own has lost members to it, and others are in beyond theirs.
    """
    missing: int
    """Members to lift until the minimum is reached; of an unfinished group until as many are in as were let in together."""
    missing_tasks: Mapping[str, int]
    """The same by task; only tasks that lack members."""
    possible: bool
    """Whether the members that exist are enough for that."""


class Standing(NamedTuple):
    """What of a member bears on its group."""

    task: str
    counted: bool
    waits: bool
    live: bool
    """Whether the member counts and has not ended."""
    unbound: bool
    """Whether such a one has no node."""
    together: int
    """How many members such a one was let in with, by its record."""
    priority: int | None
    """None of a member that has ended."""

    @classmethod
    def of(cls, pod: Pod, stages: Stages) -> Self:
        """The standing of a pod; its task is that of its annotation."""
        counted = counts(pod, stages)
        live = counted and not pod.terminal
        return cls(
            task=pod.annotations.get(names.TASK_SPEC_ANNOTATION, ""),
            counted=counted,
            waits=not counted and waits(pod, stages),
            live=live,
            unbound=live and not pod.bound,
            together=_together(pod) if live else 0,
            priority=None if pod.terminal else pod.priority,
        )


def _together(pod: Pod) -> int:
    text = pod.annotations.get(names.GANG_ANNOTATION, "")
    return int(text) if text.isdecimal() and len(text) <= _DIGITS else 0


class _ByTask:
    """How many members there are, in all and of each task; however many tasks they name, a question costs the same."""

    __slots__ = ("_of", "total")

    def __init__(self) -> None:
        self.total = 0
        self._of: dict[str, int] = {}

    def __getitem__(self, task: str) -> int:
        return self._of.get(task, 0)

    def add(self, task: str, sign: int) -> None:
        """Takes a member in, or out with `sign` -1."""
        self.total += sign
        left = self._of.get(task, 0) + sign
        if left:
            self._of[task] = left
        else:
            del self._of[task]


class Tally:
    """The members of one group, counted by what they are to it; brought up to date member by member."""

    __slots__ = ("counted", "live", "priorities", "together", "unbound", "waiting")

    def __init__(self) -> None:
        self.together: Counter[int] = Counter()
        self.counted = _ByTask()
        self.waiting = _ByTask()
        self.live = 0
        self.unbound = 0
        self.priorities: Counter[int | None] = Counter()

    @classmethod
    def of(cls, pods: Iterable[Pod], stages: Stages) -> Self:
        """The tally of these pods."""
        tally = cls()
        for pod in pods:
            tally.add(Standing.of(pod, stages), 1)
        return tally

    def add(self, standing: Standing, sign: int) -> None:
        """Takes a member in, or out with `sign` -1."""
        if standing.counted:
            self.counted.add(standing.task, sign)
        elif standing.waits:
            self.waiting.add(standing.task, sign)
        self.live += sign * standing.live
        self.unbound += sign * standing.unbound
        if standing.together:
            self.together[standing.together] += sign
            if not self.together[standing.together]:
                del self.together[standing.together]
        self.priorities[standing.priority] += sign
        if not self.priorities[standing.priority]:
            del self.priorities[standing.priority]

    @property
    def priority(self) -> int:
        """The highest priority of the members that have not ended; 0 where there is none."""
        return max((priority for priority in self.priorities if priority is not None), default=0)

    def progress(self, minimum: Minimum) -> Progress:
        """How far the group is."""
        counted = 0 if minimum.afresh and not self.live else self.counted.total
        tasks = {
            task: wanted - self.counted[task]
            for task, wanted in minimum.tasks.items()
            if wanted > self.counted[task]
        }
        lacking = sum(tasks.values())
        # Where others are in beyond theirs it takes more than the minimum to start.
        let_in = min(max(minimum.members, counted + lacking), max(self.together, default=0))
        cut = not minimum.alone and self.live > 0 and counted < let_in
        # As many as were let in together have to do: others may have places that members of these tasks had then.
        unfinished = cut and lacking <= let_in - counted
        below = not minimum.alone and counted < minimum.members
        others_beyond = lacking > max(0, minimum.members - counted)
        missing = max(0, (let_in if unfinished else minimum.members) - counted)
        return Progress(
            minimum=minimum,
            counted=counted,
            admitted=self.live > 0,
            cut=cut,
            unfinished=unfinished,
            short=cut or (self.unbound > 0 and (below or others_beyond)),
            missing=missing,
            missing_tasks=tasks,
            possible=self.waiting.total >= missing
            and all(self.waiting[task] >= count for task, count in tasks.items()),
        )

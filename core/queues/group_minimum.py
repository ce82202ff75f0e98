"""How far a group is from the number of members that it needs to start, and its place among the groups."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from core import names
from core.objects import Group, Pod


@dataclass(frozen=True, slots=True)
class Minimum:
    """How many members, and of which tasks, must start together; at most one member means each alone."""

    members: int
    tasks: Mapping[str, int]

    @property
    def alone(self) -> bool:
        """Whether every pod is looked at by itself."""
        return self.members <= 1


def minimum_of(group: Group | None) -> Minimum:
    """The minimum of a group; a pod without group (None) starts alone.

    Task minimums hold only while their sum does not exceed minMember: Volcano ignores them beyond that, and a task of a
    Volcano Job that names no minimum is given all its replicas as one.
    """
    if group is None:
        return Minimum(1, {})
    tasks = {task: count for task, count in group.min_task_member.items() if count > 0}
    return Minimum(max(1, group.min_member), tasks if sum(tasks.values()) <= group.min_member else {})


def counts(pod: Pod) -> bool:
    """Whether a member counts towards the minimum: lifted, bound or Succeeded, but not Failed or terminating."""
    return _usable(pod) and (pod.bound or pod.phase == "Succeeded" or not pod.gated)


def waits(pod: Pod) -> bool:
    """Whether a member may still be lifted."""
    return _usable(pod) and not counts(pod)


def _usable(pod: Pod) -> bool:
    return not pod.deleting and pod.phase != "Failed"


@dataclass(frozen=True, slots=True)
class Progress:
    """A group's way to its minimum."""

    minimum: Minimum
    admitted: bool
    """Whether a member that has not ended is lifted or bound."""
    missing: int
    """Members to lift until the minimum is reached."""
    missing_tasks: Mapping[str, int]
    """The same by task; only tasks that lack members."""
    possible: bool
    """Whether the members that exist are enough for the minimum."""

    @property
    def unfinished(self) -> bool:
        """Whether the group was let in but stopped short of its minimum, so that what it holds is of no use yet."""
        return self.admitted and not self.minimum.alone and (self.missing > 0 or bool(self.missing_tasks))


def progress_of(group: Group | None, pods: Collection[Pod]) -> Progress:
    """How far a group is, from all its pods; the task of a pod is that of its annotation."""
    minimum = minimum_of(group)
    counted = Counter(_task(pod) for pod in pods if counts(pod))
    waiting = Counter(_task(pod) for pod in pods if waits(pod))
    missing = max(0, minimum.members - counted.total())
    tasks = {task: wanted - counted[task] for task, wanted in minimum.tasks.items() if wanted > counted[task]}
    return Progress(
        minimum=minimum,
        admitted=any(counts(pod) and not pod.terminal for pod in pods),
        missing=missing,
        missing_tasks=tasks,
        possible=waiting.total() >= missing and all(waiting[task] >= count for task, count in tasks.items()),
    )


def _task(pod: Pod) -> str:
    return pod.annotations.get(names.TASK_SPEC_ANNOTATION, "")


def priority_of(pods: Collection[Pod]) -> int:
    """The highest priority of the members that have not ended; 0 where there is none."""
    return max((pod.priority for pod in pods if not pod.terminal), default=0)


def created_of(group: Group | None, pods: Collection[Pod]) -> int:
    """When the group came into being, in microseconds since 1970: its own time, or that of a pod without group."""
    if group is not None:
        return group.created
    return min((pod.created for pod in pods), default=0)

"""What workloads make: how many pods of which template, as their controllers would have made them a moment after creation."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from core.objects import raw as read

Raw = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PodSet:
    """So many pods of one template; `task` is the one of a Volcano Job, empty elsewhere."""

    template: Raw
    count: int
    task: str = ""


def _scaled(raw: Raw, nodes: int) -> Iterator[PodSet]:
    """Deployment, ReplicaSet, StatefulSet: `spec.replicas`, one when it is not given."""
    del nodes
    spec = read.mapping(raw, "spec")
    yield PodSet(read.mapping(spec, "template"), read.integer(spec, "replicas", 1))


def _one_for_each_node(raw: Raw, nodes: int) -> Iterator[PodSet]:
    """DaemonSet; `nodes` are those that its template admits."""
    yield PodSet(read.mapping(raw, "spec", "template"), nodes)


def _batch(raw: Raw, nodes: int) -> Iterator[PodSet]:
    """Job: as many as may run at once, and no more than have to complete."""
    del nodes
    spec = read.mapping(raw, "spec")
    at_once = read.integer(spec, "parallelism", 1)
    count = 0 if spec.get("suspend") is True else min(at_once, read.integer(spec, "completions", at_once))
    yield PodSet(read.mapping(spec, "template"), count)


def _scheduled(raw: Raw, nodes: int) -> Iterator[PodSet]:
    """CronJob: nothing before its hour."""
    del raw, nodes
    yield from ()


def _tasks(raw: Raw, nodes: int) -> Iterator[PodSet]:
    """Volcano Job: the replicas of each task, one when that is not given; a task without name is called `default<index>`."""
    del nodes
    for index, task in enumerate(read.sequence(raw, "spec", "tasks")):
        fields = read.mapping({"task": task}, "task")
        name = read.text(fields, "name") or f"default{index}"
        yield PodSet(read.mapping(fields, "template"), read.integer(fields, "replicas", 1), name)


_MAKERS: Final[Mapping[tuple[str, str], Callable[[Raw, int], Iterator[PodSet]]]] = {
    ("apps", "Deployment"): _scaled,
    ("apps", "ReplicaSet"): _scaled,
    ("apps", "StatefulSet"): _scaled,
    ("apps", "DaemonSet"): _one_for_each_node,
    ("batch", "Job"): _batch,
    ("batch", "CronJob"): _scheduled,
    ("batch.volcano.sh", "Job"): _tasks,
}
KINDS: Final = frozenset(_MAKERS)
"""(group, kind) of the workloads that are known."""


def pod_sets(group: str, kind: str, raw: Raw, *, nodes: int) -> list[PodSet]:
    """What a workload of one of `KINDS` makes in a cluster of so many nodes that it may use; numbers below 0 count as 0."""
    return [PodSet(made.template, max(0, made.count), made.task) for made in _MAKERS[group, kind](raw, nodes)]

"""To which node a lifted pod was led, and the pods on their way to one node taken together.

A scheduler stays with a node whose bind is refused. So a pod is narrowed to a node on which room is booked for it until it is
bound; the node is on record, so that whoever comes after finds the same bookings. Where pods of one task go to several nodes
and their scheduler takes what refuses one for refusing all, each is nominated for its node instead (`status.nominatedNodeName`):
the scheduler tries that node first, and all of them may go to all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from core import names
from core.affinity import Expression, NodeRequirement
from core.mgpu.allocation import any_placement, preferred
from core.mgpu.ask import MgpuAsk
from core.mgpu.node import NodeModel, NodeState
from core.objects.pod import Pod
from core.settings import MgpuSettings

Task = tuple[str, str, str]
"""The namespace of a pod, its group and its task there."""
Cards = Mapping[str, tuple[int, ...]]
"""The cards of a pod, container by container."""


def led_to(pod: Pod) -> tuple[str, ...]:
    """The node to which the pod was narrowed; nothing for one that may go anywhere."""
    node = pod.annotations.get(names.NODE_ANNOTATION, "")
    return (node,) if node else ()


def nominated_for(pod: Pod) -> str:
    """The node for which the pod was nominated and not narrowed to; empty where there is none."""
    return pod.annotations.get(names.NOMINATED_ANNOTATION, "")


def booked_on(pod: Pod) -> tuple[str, ...]:
    """The node on which room is booked for the pod while it has none."""
    node = nominated_for(pod)
    return led_to(pod) or ((node,) if node else ())


def task_of(pod: Pod) -> Task | None:
    """The task that a member of a group belongs to; None for a pod of no group."""
    return (pod.namespace, group, pod.task) if (group := pod.group_key) else None


def gives_way(other: Pod, task: Task | None) -> bool:
    """Whether what is booked for the other pod does not stand in the way of pods of this task.

    Who of a task takes which of the places that are booked for it is up to the scheduler where it may go to all of them; and
    what rules out one of them must not be another one.
    """
    return task is not None and bool(nominated_for(other)) and task_of(other) == task


def requirement(node: str, hostname: str) -> NodeRequirement:
    """This node and no other; `hostname` is its label, if that is nobody else's: not every scheduler knows the field."""
    if hostname:
        return NodeRequirement.all_of(Expression(names.HOSTNAME_LABEL, "In", (hostname,)))
    return NodeRequirement.all_of(Expression(names.NODE_NAME_FIELD, "In", (node,), field=True))


def together(asks: Sequence[MgpuAsk]) -> MgpuAsk:
    """Several pods as if they were one: they have room for sure only if this has."""
    parts = (
        replace(part, container=_numbered(number, part.container))
        for number, ask in enumerate(asks)
        for part in ask.parts
    )
    return MgpuAsk(tuple(parts), multi=True, policy="")


def all_placed(
    asks: Sequence[MgpuAsk], model: NodeModel, state: NodeState, *, cap: int
) -> list[Cards] | None:
    """The first cards that are found for all these pods at once, pod by pod; None where none are found."""
    if not asks:
        return []
    indexes = any_placement(together(asks), model, state, cap=cap)
    return None if indexes is None else _apart(asks, indexes)


def have_room(asks: Sequence[MgpuAsk], model: NodeModel, state: NodeState, settings: MgpuSettings) -> bool:
    """Whether all these pods have room there at once."""
    return all_placed(asks, model, state, cap=settings.max_containers_per_card) is not None


def best_placed(
    asks: Sequence[MgpuAsk], model: NodeModel, state: NodeState, settings: MgpuSettings
) -> list[Cards] | None:
    """The cards for all these pods at once that the policy prefers, pod by pod; None where none are found."""
    placement = preferred(together(asks), model, state, settings)
    return None if placement is None else _apart(asks, placement.indexes)


def _apart(asks: Sequence[MgpuAsk], indexes: Cards) -> list[Cards]:
    """What was found for pods as if they were one, pod by pod."""
    return [
        {part.container: indexes[_numbered(number, part.container)] for part in ask.parts}
        for number, ask in enumerate(asks)
    ]


def _numbered(number: int, container: str) -> str:
    """A name that no other pod's container has: no container has a slash in its own."""
    return f"{number}/{container}"

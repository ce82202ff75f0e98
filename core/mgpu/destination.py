"""To which node a lifted pod was led, and the pods on their way to one node taken together.

A scheduler stays with a node whose bind is refused. So a pod is narrowed to a node on which room is booked for it until it is
bound; the node is on record, so that whoever comes after finds the same bookings. Where pods of one task go to several nodes
and their scheduler takes what refuses one for refusing all, each is nominated for its node instead (`status.nominatedNodeName`):
the scheduler tries that node first, and all of them may go to all.
"""

from collections.abc import Mapping, Sequence

from core import names
from core.affinity import Expression, NodeRequirement
from core.mgpu.allocation import FIT_BUDGET, Doubt, any_sought, preferred
from core.mgpu.ask import MgpuAsk, Part
from core.mgpu.node import NodeModel, NodeState
from core.mgpu.purse import Purse
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
        Part(_numbered(number, part.container), part.cards, part.core, part.memory)
        for number, ask in enumerate(asks)
        for part in ask.parts
    )
    return MgpuAsk(tuple(parts), multi=True, policy="")


def all_placed(
    asks: Sequence[MgpuAsk], model: NodeModel, state: NodeState, *, cap: int, purse: Purse | None = None
) -> list[Cards] | Doubt:
    """The first cards that are found for all these pods at once, pod by pod; else why there are none."""
    if not asks:
        return []
    indexes = any_sought(together(asks), model, state, cap=cap, purse=purse)
    return indexes if isinstance(indexes, Doubt) else _apart(asks, indexes)


def have_room(asks: Sequence[MgpuAsk], model: NodeModel, state: NodeState, settings: MgpuSettings) -> bool:
    """Whether all these pods have room there at once."""
    found = all_placed(asks, model, state, cap=settings.max_containers_per_card)
    return not isinstance(found, Doubt)


def best_placed(
    asks: Sequence[MgpuAsk], model: NodeModel, state: NodeState, settings: MgpuSettings, purse: Purse
) -> list[Cards] | Doubt:
    """The cards for all these pods at once that the policy prefers, pod by pod; else why there are none."""
    placement = preferred(together(asks), model, state, settings, budget=FIT_BUDGET, purse=purse)
    return placement if isinstance(placement, Doubt) else _apart(asks, placement.indexes)


def _apart(asks: Sequence[MgpuAsk], indexes: Cards) -> list[Cards]:
    """What was found for pods as if they were one, pod by pod."""
    return [
        {part.container: indexes[_numbered(number, part.container)] for part in ask.parts}
        for number, ask in enumerate(asks)
    ]


def _numbered(number: int, container: str) -> str:
    """A name that no other pod's container has: no container has a slash in its own."""
    return f"{number}/{container}"

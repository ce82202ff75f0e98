"""To which node a lifted pod was led, and the pods on their way to one node taken together.

A scheduler stays with a node whose bind is refused. So a pod is narrowed to a node on which room is booked for it until it is
bound; the node is on record, so that whoever comes after finds the same bookings.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from core import names
from core.affinity import Expression, NodeRequirement
from core.mgpu.allocation import allocate, any_placement
from core.mgpu.ask import MgpuAsk
from core.mgpu.node import NodeModel, NodeState
from core.objects.pod import Pod
from core.settings import MgpuSettings


def led_to(pod: Pod) -> tuple[str, ...]:
    """The node on which room is booked for the pod while it has none; nothing for one that may go anywhere."""
    node = pod.annotations.get(names.NODE_ANNOTATION, "")
    return (node,) if node else ()


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


def have_room(asks: Sequence[MgpuAsk], model: NodeModel, state: NodeState, settings: MgpuSettings) -> bool:
    """Whether all these pods have room there at once."""
    cap = settings.max_containers_per_card
    return not asks or any_placement(together(asks), model, state, cap=cap) is not None


def beside(
    ask: MgpuAsk, others: Sequence[MgpuAsk], model: NodeModel, state: NodeState, settings: MgpuSettings
) -> Mapping[str, tuple[int, ...]] | None:
    """Cards for a pod that leave room for the others, container by container; None where none are found."""
    placement = allocate(
        together((ask, *others)),
        model,
        state,
        policy=settings.policy,
        weight=settings.weight_of_core,
        cap=settings.max_containers_per_card,
    )
    if placement is None:
        return None
    return {part.container: placement.indexes[_numbered(0, part.container)] for part in ask.parts}


def _numbered(number: int, container: str) -> str:
    """A name that no other pod's container has: no container has a slash in its own."""
    return f"{number}/{container}"

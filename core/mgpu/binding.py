"""The decision of the binding hook: the cards of a pod at the moment when its node is known but not yet stored.

Kubernetes lays the annotations of a Binding over those of the pod in the write that sets the node, so nobody,
kubelet included, sees one without the other.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from core import names, reasons
from core.mgpu import records
from core.mgpu.allocation import Placement, allocate
from core.mgpu.ask import FIXED_SHARE, AskProblem, MgpuAsk
from core.mgpu.filter import Unfit, mismatch, shortage
from core.mgpu.node import NODE_TYPE, NodeModel, NodeState, model_of
from core.mgpu.occupancy import Assumed, occupancy
from core.objects.node import Node
from core.objects.pod import Pod
from core.settings import MgpuSettings, Settings
from core.violations import show


@dataclass(frozen=True, slots=True)
class Granted:
    """The annotations that the Binding must carry, and the placement that they record."""

    annotations: Mapping[str, str]
    placement: Placement


@dataclass(frozen=True, slots=True)
class Refused:
    """Why the pod must not be bound to this node; `code` is one of core.reasons."""

    code: str
    message: str


_NO_ROOM: Final = Unfit(
    reasons.MGPU_NO_ROOM, "not enough mGPU: no placement was found for the pod", unresolvable=False
)


def decide(
    pod: Pod,
    ask: MgpuAsk | AskProblem,
    node: Node,
    pods_on_node: Iterable[Pod],
    assumed: Iterable[Assumed],
    settings: Settings,
) -> Granted | Refused:
    """The cards of `pod` on `node`, computed from what is bound there and assumed there (others are left out).

    The node is judged anew: it may have been relabelled since the scheduler looked at it. A pod that already holds a
    grant for this node gets the same cards again, so that a repeated call changes nothing. That the pod exists, is
    unbound, ungated and the one meant has been checked by the caller.
    """
    if isinstance(ask, AskProblem):
        return Refused(ask.code, ask.message)
    if problem := _key_problem(ask):
        return Refused(reasons.MGPU_CONTAINER_NAME, problem)
    model = model_of(node)
    if unfit := mismatch(ask, model):
        return Refused(unfit.code, unfit.message)
    here = [entry for entry in assumed if entry.node == node.name]
    if (placement := _again(pod, ask, model, here)) is not None:
        return Granted(records.annotations(placement.indexes), placement)
    others = [entry for entry in here if entry.uid != pod.uid]
    bound = [other for other in pods_on_node if other.uid != pod.uid and other.node_name == node.name]
    state = occupancy(model, bound, others, settings.mgpu).state
    placement = _placed(ask, model, state, settings.mgpu)
    if placement is None:
        unfit = shortage(ask, model, state, settings) or _NO_ROOM
        return Refused(unfit.code, unfit.message)
    return Granted(records.annotations(placement.indexes), placement)


def narrowing(ask: MgpuAsk) -> tuple[tuple[Mapping[str, Any], ...], ...]:
    """The required node affinity of the pod: alternatives, each a list of node selector expressions that all hold.

    A node without the policy label serves fixed-share, hence the second alternative.
    """
    kind = {"key": names.MGPU_NODE_TYPE_LABEL, "operator": "In", "values": [NODE_TYPE]}
    if ask.any_policy:
        return ((kind,),)
    labelled = {"key": names.MGPU_POLICY_KEY, "operator": "In", "values": [ask.policy]}
    if ask.policy != FIXED_SHARE:
        return ((kind, labelled),)
    return (kind, labelled), (kind, {"key": names.MGPU_POLICY_KEY, "operator": "DoesNotExist"})


def _key_problem(ask: MgpuAsk) -> str:
    """The API server does not check annotation keys that come with a Binding, and then refuses every later write."""
    for part in ask.parts:
        if len(part.container) > names.MGPU_CONTAINER_NAME_MAX:
            return (
                f"container {show(part.container)}: the name has {len(part.container)} characters,"
                f" at most {names.MGPU_CONTAINER_NAME_MAX} leave room for the record"
            )
    return ""


def _again(pod: Pod, ask: MgpuAsk, model: NodeModel, assumed: Iterable[Assumed]) -> Placement | None:
    """The placement that the pod was granted on this node before, where it still makes sense there."""
    for entry in assumed:
        numbers = (number for cards in entry.placement.indexes.values() for number in cards)
        if entry.uid == pod.uid and entry.ask == ask and all(number < model.cards for number in numbers):
            return entry.placement
    return None


def _placed(ask: MgpuAsk, model: NodeModel, state: NodeState, settings: MgpuSettings) -> Placement | None:
    return allocate(
        ask,
        model,
        state,
        policy=settings.policy,
        weight=settings.weight_of_core,
        cap=settings.max_containers_per_card,
    )

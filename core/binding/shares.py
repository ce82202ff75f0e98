"""The decision of the binding hook: the cards of a pod at the moment when its node is known but not yet stored.

Kubernetes lays the annotations of a Binding over those of the pod in the write that sets the node, so nobody,
kubelet included, sees one without the other.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from core import names, reasons
from core.mgpu import records
from core.mgpu.allocation import FIT_BUDGET, PLACEMENT_BUDGET, Doubt, Placement, preferred
from core.mgpu.arrangement import CROWD_BUDGET, OnTheWay, Places, found_for_all, places_for_all
from core.mgpu.ask import MgpuAsk
from core.mgpu.destination import booked_on
from core.mgpu.filter import in_words, mismatch
from core.mgpu.node import model_of
from core.mgpu.occupancy import occupancy
from core.mgpu.purse import Purse
from core.objects.node import Node
from core.objects.pod import Pod
from core.refusal import Refusal
from core.settings import Settings
from core.violations import show


@dataclass(frozen=True, slots=True)
class Granted:
    """The annotations that the Binding must carry, and the placement that they record."""

    annotations: Mapping[str, str]
    placement: Placement
    places: Places = field(default_factory=dict)
    """Cards for this pod and those on their way there, at once; empty where none were found."""

    @property
    def cut_short(self) -> bool:
        """Whether the search ended by its budget, so that a better placement may exist."""
        return not self.placement.optimal


def decide(
    pod: Pod,
    ask: MgpuAsk | Refusal,
    node: Node,
    pods_on_node: Iterable[Pod],
    settings: Settings,
    on_the_way: OnTheWay | None = None,
) -> Granted | Refusal:
    """The cards of `pod` on `node`, computed from the other pods that are bound there (`pod` itself is left out).

    Those for whom room is booked there find it after this one, and so do those that give way to it if they can. A pod for which
    room is booked there gets it in any case. The node is judged anew: it may have been relabelled since the scheduler looked at
    it. That the pod exists, is unbound, ungated and the one meant has been checked by the caller, who answers a repeated call by
    the same cards, see `lost`.
    """
    if isinstance(ask, Refusal):
        return ask
    if problem := _key_problem(ask):
        return Refusal(reasons.MGPU_CONTAINER_NAME, problem)
    model = model_of(node)
    if unfit := mismatch(ask, model):
        return unfit
    bound = [other for other in pods_on_node if other.uid != pod.uid and other.node_name == node.name]
    state = occupancy(model, bound, settings.mgpu).state
    purse = Purse(PLACEMENT_BUDGET + FIT_BUDGET)
    placement = preferred(ask, model, state, settings.mgpu, purse=purse)
    if isinstance(placement, Doubt):
        room = None if placement is Doubt.UNDECIDED else False
        return in_words(ask, model, state, settings, room, purse)
    purse = Purse(min(CROWD_BUDGET, purse.left))
    expected = (on_the_way or OnTheWay()).served_by(model)
    unyielding = expected.unyielding()
    led, yields = node.name in booked_on(pod), unyielding.asks != expected.asks
    # What has failed for all of them is not tried again where none gives way.
    for those in (expected, unyielding) if yields else (expected,):
        later = int(those is expected and yields) + int(not led and not expected.places)
        with purse.kept_for(later):
            places = places_for_all(
                pod.uid, ask, placement.indexes, those, model, state, settings.mgpu, purse
            )
        if places is not None:
            placement = replace(placement, indexes=places[pod.uid])
            return Granted(records.annotations(placement.indexes), placement, places)
    others, cap = unyielding.others(pod.uid), settings.mgpu.max_containers_per_card
    if not led and found_for_all(others, expected.places, model, state, cap=cap, purse=purse):
        text = f"not enough mGPU: what is free is booked for {_pods(len(others))}"
        return Refusal(reasons.MGPU_NO_ROOM, text)
    return Granted(records.annotations(placement.indexes), placement)


def lost(
    pod: Pod, ask: MgpuAsk | Refusal | None, node: Node, pods_on_node: Iterable[Pod], settings: Settings
) -> Refusal | None:
    """Why a pod, which is given with its node, cannot have the cards of its record there any more; None while it can."""
    if ask is None or isinstance(ask, Refusal):
        return ask
    model = model_of(node)
    if unfit := mismatch(ask, model):
        return unfit
    others = (other for other in pods_on_node if other.uid != pod.uid)
    found = occupancy(model, (*others, pod), settings.mgpu)
    wrong = next((each.detail for each in found.irregularities if each.uid == pod.uid), "")
    if not wrong and any(found.overbooked.intersection(cards) for cards in records.recorded(pod).values()):
        wrong = "more is booked on them than there is"
    text = f"the mGPU cards that the pod was granted are not to be had any more: {wrong} (node {node.name})"
    return Refusal(reasons.MGPU_NO_ROOM, text) if wrong else None


def _pods(count: int) -> str:
    return "a pod that was let in for it" if count == 1 else f"{count} pods that were let in for it"


def _key_problem(ask: MgpuAsk) -> str:
    """The API server does not check annotation keys that come with a Binding, and then refuses every later write."""
    for part in ask.parts:
        if len(part.container) > names.MGPU_CONTAINER_NAME_MAX:
            return (
                f"container {show(part.container)}: the name has {len(part.container)} characters,"
                f" at most {names.MGPU_CONTAINER_NAME_MAX} leave room for the record"
            )
    return ""

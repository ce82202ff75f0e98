"""What is wrong with the records of the pods on a node, and what to do about it.

The binding hook may have been away, or somebody may have edited a record while nothing protected it. Nobody is ever
evicted for that: a record is written where it can still be of use, and else said to be wrong.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from core import names, reasons
from core.mgpu import records
from core.mgpu.ask import mgpu_ask
from core.mgpu.booked import RecordBook, counts_of, has_sound_record
from core.mgpu.filter import mismatch, shortage
from core.mgpu.node import NodeModel, model_of
from core.mgpu.occupancy import Irregular, Irregularity, Occupancy, counts, occupancy
from core.objects.node import Node
from core.objects.pod import Pod
from core.refusal import Refusal
from core.settings import Settings
from core.violations import show

_UNRECORDED: Final = frozenset({Irregular.MISSING, Irregular.NO_ROOM})
_ODD: Final = frozenset({Irregular.UNKNOWN_CARD, Irregular.WRONG_COUNT, Irregular.OVERBOOKED})


@dataclass(frozen=True, slots=True)
class Repair:
    """A record to be written to a pod as it was observed: `reason` MgpuRecordAssigned or MgpuRecordRestored.

    `counts` are the card counts under which the cards were given, None where there were none.
    """

    pod: Pod
    cards: Mapping[str, tuple[int, ...]]
    counts: str | None
    reason: str

    @property
    def message(self) -> str:
        """What is said once it is written."""
        record = "; ".join(f"container {show(name)}: {records.render(n)}" for name, n in self.cards.items())
        if self.reason == reasons.MGPU_RECORD_ASSIGNED:
            return (
                f"bound to node {self.pod.node_name} without a complete record; cards assigned now: {record}"
            )
        if self._miscounted:
            record += f"; {names.MGPU_MULTIPLE_ANNOTATION} {show(self.counts) if self.counts is not None else 'removed'}"
        return f"the record of the cards was edited; put back: {record}"

    @property
    def _miscounted(self) -> bool:
        return counts_of(self.pod) != self.counts

    @property
    def patch(self) -> dict[str, Any]:
        """A merge patch of the whole record, refused for any other state of the pod than the observed one."""
        strays = dict.fromkeys(records.results(self.pod))
        counts = {names.MGPU_MULTIPLE_ANNOTATION: self.counts} if self._miscounted else {}
        return {
            "metadata": {
                "uid": self.pod.uid,
                "resourceVersion": self.pod.resource_version,
                "annotations": {**strays, **records.annotations(self.cards), **counts},
            }
        }


@dataclass(frozen=True, slots=True)
class NodeNotice:
    """Something that is wrong and stays so. `pod` is None for what concerns the node as a whole.

    `topic` stays the same while the thing does, though the message may change.
    """

    reason: str
    topic: str
    message: str
    pod: Pod | None


@dataclass(slots=True)
class Examination:
    """All that is wrong on one node: what can be mended, what is to be said, and the kinds of irregularities."""

    repairs: list[Repair] = field(default_factory=list)
    notices: list[NodeNotice] = field(default_factory=list)
    kinds: list[Irregular] = field(default_factory=list)


def examine(
    node: Node,
    booked: Iterable[Pod],
    observed: Callable[[Pod], Pod | None],
    book: RecordBook,
    settings: Settings,
) -> Examination:
    """Looks at every pod that occupies the node. `booked` are the pods as the books have them, binds under way too.

    `observed` gives the state of such a pod in the cluster, None when it is not bound there yet. A pod that is being
    deleted gets no record any more: nothing of it will start.
    """
    found, model = Examination(), model_of(node)
    pods = [pod for pod in booked if counts(pod)]
    if not pods:
        return found
    occupied = occupancy(model, pods, settings.mgpu)
    by_pod: dict[str, list[Irregularity]] = {}
    for irregularity in occupied.irregularities:
        by_pod.setdefault(irregularity.uid, []).append(irregularity)
    look = _Look(node, model, occupied, settings, found)
    for pod in pods:
        seen = observed(pod)
        if seen is None or seen.deleting:
            continue
        wrong = by_pod.get(pod.uid, ())
        if (records.results(seen), counts_of(seen)) != (records.results(pod), counts_of(pod)):
            reason = reasons.MGPU_RECORD_RESTORED
            if book.assigned_here(pod.uid):
                reason = reasons.MGPU_RECORD_ASSIGNED
            found.repairs.append(Repair(seen, records.recorded(pod), counts_of(pod), reason))
        elif any(each.kind in _UNRECORDED for each in wrong) or look.unmarked(seen):
            look.unrecorded(seen)
        look.odd(seen, wrong)
    look.odd(None, by_pod.get("", ()))
    return found


@dataclass(frozen=True, slots=True)
class _Look:
    """One node and what is found on it."""

    node: Node
    model: NodeModel
    occupied: Occupancy
    settings: Settings
    found: Examination

    def unmarked(self, pod: Pod) -> bool:
        """Whether the pod has its cards, but the node agent, which looks for the marker, will not find them."""
        return not pod.started and not records.marked(pod) and has_sound_record(pod, self.node)

    def unrecorded(self, pod: Pod) -> None:
        """A pod whose record is missing, in part or as a whole: the cards that are held for it become its record."""
        held = self.occupied.held.get(pod.uid)
        obstacle = self._obstacle(pod, held)
        if obstacle:
            message = f"bound to node {self.node.name} without a complete record of its cards; {obstacle}"
            notice = NodeNotice(reasons.MGPU_RECORD_MISSING, f"{pod.uid} unrecorded", message, pod)
            self.found.notices.append(notice)
        else:
            cards = {**records.recorded(pod), **(held or {})}
            self.found.repairs.append(Repair(pod, cards, counts_of(pod), reasons.MGPU_RECORD_ASSIGNED))

    def _obstacle(self, pod: Pod, held: Mapping[str, tuple[int, ...]] | None) -> str:
        """Why no cards can be assigned; empty when they can."""
        if pod.started:
            room = "on the cards that it would get now" if held else "nowhere, for the node has none left"
            return f"it runs already, and nobody knows on which; room is held for it {room}"
        ask = mgpu_ask(pod)
        if ask is None or isinstance(ask, Refusal):
            return f"none can be assigned: {ask.message if ask else 'it asks for none'}"
        unfit = mismatch(ask, self.model)
        if unfit is None and held is None and not has_sound_record(pod, self.node):
            unfit = shortage(ask, self.model, self.occupied.state, self.settings)
            return f"none can be assigned: {unfit.message if unfit else 'the node has no room'}"
        return f"none can be assigned: {unfit.message}" if unfit else ""

    def odd(self, pod: Pod | None, wrong: Iterable[Irregularity]) -> None:
        """Says what is odd about a record, or about the node's cards; counts everything.

        A node that shows no cards at the moment says nothing about the records of its pods.
        """
        for irregularity in wrong:
            if irregularity.kind is Irregular.UNKNOWN_CARD and not self.model.cards:
                continue
            self.found.kinds.append(irregularity.kind)
            if irregularity.kind in _ODD:
                topic = (
                    f"{irregularity.uid} {irregularity.kind} {irregularity.container or irregularity.detail}"
                )
                where = f"container {show(irregularity.container)}: " if irregularity.container else ""
                message = f"{where}{irregularity.detail}"
                self.found.notices.append(NodeNotice(reasons.MGPU_RECORD_IRREGULAR, topic, message, pod))

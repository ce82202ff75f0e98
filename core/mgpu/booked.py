"""What is booked for the bound pods while we lead, whatever their annotations say by now.

An edited annotation moves no container to another card, and changes nothing of what it takes there. So the cards of a
pod are those of its record as it was first seen, or as they were assigned here, and its card counts those of that moment;
what differs from that is mended in the cluster and changes nothing in the books.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from core import names
from core.mgpu import records
from core.mgpu.ask import booked_parts
from core.mgpu.node import model_of
from core.mgpu.occupancy import counts
from core.objects.node import Node
from core.objects.pod import Pod
from core.settings import MgpuSettings


@dataclass(slots=True)
class _Booking:
    """The cards of a pod, its card counts as they stood, and whether its record carries `assumed`.

    `ours`: nobody has seen it in the cluster yet.
    """

    cards: Mapping[str, tuple[int, ...]]
    counts: str | None
    marked: bool
    ours: bool = False


class RecordBook:
    """The bookings of one time of leading. Until `keep`, and after `release`, every pod is what it says it is.

    `nodes` is read by name, live.
    """

    def __init__(self, settings: MgpuSettings, nodes: Mapping[str, Node]) -> None:
        self._settings = settings
        self._nodes = nodes
        self._bookings: dict[str, _Booking] = {}
        self._keeping = False
        self._edited: dict[str, str] = {}

    def keep(self, pods: Iterable[Pod]) -> None:
        """Books what these pods say, and from now on what every pod says first."""
        self._keeping = True
        for pod in pods:
            self.as_booked(pod)

    @property
    def edited(self) -> Collection[str]:
        """The pods that are booked otherwise than they were shown last, as `namespace/name`."""
        return self._edited.values()

    def release(self) -> None:
        """Forgets everything."""
        self._keeping = False
        self._bookings.clear()
        self._edited.clear()

    def as_booked(self, pod: Pod) -> Pod:
        """The pod with the record that is booked for it; the very same object where that is the one it has.

        A sound record of a pod without booking is booked. To be called with every state of a pod that is observed.
        """
        if not self._keeping or not pod.shares:
            return pod
        booked = self._booked(pod)
        if booked is pod:
            self._edited.pop(pod.uid, None)
        else:
            self._edited[pod.uid] = pod.key
        return booked

    def _booked(self, pod: Pod) -> Pod:
        if not counts(pod):
            self.drop(pod.uid)
            return pod
        booking = self._bookings.get(pod.uid)
        if booking is not None and not _agrees(pod, booking):
            if booking.ours and pod.started:
                # It started before it could be given cards: nobody knows which ones it uses.
                del self._bookings[pod.uid]
                return pod
            if booking.ours or not self._settings.node_agents or not self.sound(pod):
                return replace(pod, annotations=_as_booked(pod, booking))
        if booking is not None or self.sound(pod):
            marked = records.marked(pod)
            self._bookings[pod.uid] = _Booking(records.recorded(pod), counts_of(pod), marked)
        return pod

    def assign(self, pod: Pod, cards: Mapping[str, tuple[int, ...]]) -> None:
        """Books cards for a pod that is bound without a complete record, until it ends or starts without them."""
        self._bookings[pod.uid] = _Booking(cards, counts_of(pod), marked=True, ours=True)

    def assigned_here(self, uid: str) -> bool:
        """Whether cards were assigned to the pod that have not been seen in its record yet."""
        booking = self._bookings.get(uid)
        return booking is not None and booking.ours

    def drop(self, uid: str) -> None:
        """Forgets a pod that has ended or is gone."""
        self._bookings.pop(uid, None)
        self._edited.pop(uid, None)

    def sound(self, pod: Pod) -> bool:
        """Whether the record names, for each container, as many cards of the node as it asks for.

        The numbers are not looked at while the node shows no cards; its device plugin may be starting.
        """
        return has_sound_record(pod, self._nodes.get(pod.node_name))


def has_sound_record(pod: Pod, node: Node | None) -> bool:
    """See RecordBook.sound."""
    record, parts = records.recorded(pod), booked_parts(pod)
    limit = model_of(node).cards if node is not None else 0
    return bool(parts) and all(
        len(cards := record.get(part.container, ())) == part.cards and (not limit or max(cards) < limit)
        for part in parts
    )


def counts_of(pod: Pod) -> str | None:
    """The card counts of a pod as they are written, by which its record says how much is taken of each card."""
    return pod.annotations.get(names.MGPU_MULTIPLE_ANNOTATION)


def _agrees(pod: Pod, booking: _Booking) -> bool:
    same = (records.recorded(pod), counts_of(pod)) == (booking.cards, booking.counts)
    return same and (records.marked(pod) or not booking.marked)


def _as_booked(pod: Pod, booking: _Booking) -> dict[str, str]:
    annotations = {key: text for key, text in pod.annotations.items() if not records.is_result(key)}
    annotations.pop(names.MGPU_MULTIPLE_ANNOTATION, None)
    if booking.counts is not None:
        annotations[names.MGPU_MULTIPLE_ANNOTATION] = booking.counts
    return annotations | records.annotations(booking.cards)

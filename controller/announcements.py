"""Events for people: why a pod waits, said once for each reason, on the pod itself."""

from typing import Protocol

from core import reasons
from core.objects import Queue
from core.plan.lift import Hold, Lift
from core.plan.offline import malformed_note
from kube.events import EventType, Reference
from kube.resources import PODGROUPS, PODS, QUEUES

_ACTION = "Lift"


class Recorder(Protocol):
    """The one call of kube.events.EventRecorder that is made."""

    def emit(self, regarding: Reference, event_type: EventType, reason: str, note: str, action: str) -> bool:
        """See EventRecorder.emit."""


class Announcements:
    """Remembers what was said about each pod and queue, and says only what is new."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._said: dict[str, tuple[str, str]] = {}
        self._malformed: dict[str, str] = {}

    def held(self, hold: Hold) -> None:
        """Says why a pod waits, on the PodGroup too where that waits as a whole, unless that is what was said last."""
        if not hold.announced:
            return
        if hold.group is not None:
            group = hold.group
            self._say(group.uid, Reference.of(PODGROUPS, group.name, group.namespace, group.uid), hold)
        pod = hold.pod
        self._say(pod.uid, Reference.of(PODS, pod.name, pod.namespace, pod.uid), hold)

    def _say(self, uid: str, regarding: Reference, hold: Hold) -> None:
        said = (hold.reason, hold.message)
        if self._said.get(uid) == said:
            return
        self._said[uid] = said
        self._recorder.emit(regarding, "Warning", hold.reason, hold.message, _ACTION)

    def lifted(self, lift: Lift) -> None:
        """Forgets why the pod waited."""
        self._said.pop(lift.pod.uid, None)

    def gone(self, uid: str) -> None:
        """Forgets a pod or a PodGroup that does not exist any more."""
        self._said.pop(uid, None)

    def quota_read(self, queue: Queue, malformed: str) -> None:
        """Says on the queue when its stored card quota cannot be read; a mended one may be said again later."""
        if self._malformed.get(queue.uid, "") == malformed:
            return
        if malformed:
            self._malformed[queue.uid] = malformed
            note = malformed_note(malformed)
            self._recorder.emit(
                Reference.of(QUEUES, queue.name, uid=queue.uid),
                "Warning",
                reasons.CARD_QUOTA_MALFORMED,
                note,
                "ReadQuota",
            )
        else:
            self._malformed.pop(queue.uid, None)

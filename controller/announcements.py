"""Events for people: why a pod waits, what is wrong with a queue; each said once, on the object itself."""

from collections.abc import Iterable
from typing import Protocol

from core import reasons
from core.objects import Pod, Queue
from core.plan.decision import Hold, Lift
from core.queues.entry import Entry
from core.queues.notices import Notice
from core.queues.rollouts import Rollouts
from core.queues.shortfall import uncountable
from kube.events import EventType, Reference
from kube.resources import PODGROUPS, PODS, QUEUES

_LIFT = "Lift"


class Recorder(Protocol):
    """The one call of kube.events.EventRecorder that is made."""

    def emit(self, regarding: Reference, event_type: EventType, reason: str, note: str, action: str) -> bool:
        """See EventRecorder.emit."""


class Announcements:
    """Remembers what was said about each pod and queue, and says only what is new.

    Of one object and topic the last thing that was said counts. What the recorder could not take is no news lost: it is
    said when the object is looked at the next time.
    """

    def __init__(self, recorder: Recorder, rollouts: Rollouts | None = None) -> None:
        self._recorder = recorder
        self._rollouts = rollouts
        self._said: dict[str, dict[str, tuple[str, str]]] = {}
        """Topic -> reason and words of what was said, by UID."""

    def held(self, hold: Hold) -> None:
        """Says why a pod waits, on the PodGroup too where that waits as a whole, unless that is what was said last."""
        if not hold.announced:
            return
        if hold.group is not None:
            group = hold.group
            regarding = Reference.of(PODGROUPS, group.name, group.namespace, group.uid)
            self._say(regarding, "hold", hold.reason, hold.message, _LIFT)
        self._say(_reference(hold.pod), "hold", hold.reason, hold.message, _LIFT)
        note = self._rollouts.obstacle(hold.pod, hold.reason) if self._rollouts is not None else ""
        if note:
            self._say(_reference(hold.pod), "rollout", reasons.ROLLOUT_NEEDS_QUOTA, note, _LIFT)

    def lifted(self, lift: Lift) -> None:
        """Forgets why the pod waited."""
        self.gone(lift.pod.uid)

    def uncounted(self, entry: Entry) -> None:
        """Says on a pod that is bound, or may be any moment, that its cards count as none."""
        why = uncountable(entry.queue, entry.demand.problem)
        self._say(_reference(entry.pod), "count", why.reason, why.message, "Count")

    def overdue(self, pod: Pod, reason: str, note: str) -> None:
        """Says on a pod that it has been without a node for too long, or that it was deleted for that."""
        self._say(_reference(pod), "reservation", reason, note, "WatchReservation")

    def about_queue(self, queue: Queue, notices: Iterable[Notice]) -> None:
        """Says what is wrong with a queue; what is not any more may be said again later."""
        current = {notice.reason: notice for notice in notices}
        said = self._said.get(queue.uid, {})
        for reason in said.keys() - current.keys():
            del said[reason]
        regarding = Reference.of(QUEUES, queue.name, uid=queue.uid)
        for notice in current.values():
            self._say(regarding, notice.reason, notice.reason, notice.message, "ReadQuota", notice.news)

    def gone(self, uid: str) -> None:
        """Forgets an object that does not exist any more."""
        self._said.pop(uid, None)

    def _say(
        self, regarding: Reference, topic: str, reason: str, message: str, action: str, news: str = ""
    ) -> None:
        """`news` are the words that make it new; by default all of them."""
        before, said = self._said.setdefault(regarding.uid, {}), (reason, news or message)
        if before.get(topic) != said and self._recorder.emit(regarding, "Warning", reason, message, action):
            before[topic] = said


def _reference(pod: Pod) -> Reference:
    return Reference.of(PODS, pod.name, pod.namespace, pod.uid)

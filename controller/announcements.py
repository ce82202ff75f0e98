"""Events for people: why a pod waits, what is wrong with a queue; each said once, on the object itself."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from controller.sayings import History, Recorder, Saying, Sayings
from core import reasons
from core.cards.alarms import Alarm
from core.cards.assigned import read_assigned
from core.catalogue import CATALOGUE
from core.catalogue.notes import event_note
from core.display.notices import QueueNotice
from core.names import ASSIGNED_ANNOTATION, CHARGED_QUEUE_ANNOTATION
from core.objects import Group, Node, Pod, Queue
from core.plan.decision import Hold, Lift
from core.queues.entry import Entry
from core.queues.rollouts import Rollouts
from core.queues.shortfall import uncountable
from core.sharded import Sharded
from kube.events import Past, Reference
from kube.resources import KUBERNETES_PODGROUPS, NODES, PODGROUPS, PODS, QUEUES

__all__ = ["GROWING_S", "MOMENT_S", "Announcements", "Recorder"]

MOMENT_S = 1.0
"""How long a pod has to wait for a reason before that is said: most are lifted sooner."""

GROWING_S = 3.0
"""How long no member has come or gone before a gang is said to lack some: they are created one after the other."""

COMING_S = 20.0
"""How long a PodGroup may take to be made before it is said to be missing."""

ASTRAY_S = 5.0
"""How long a node may be away, or an mGPU pod be sent to a full one, before that is said."""

_MOMENTS_S = {reasons.GANG_INCOMPLETE: GROWING_S, reasons.POD_GROUP_NOT_FOUND: COMING_S}

_LIFT = "Lift"
_COUNT = "Count"
_RESERVATION = "WatchReservation"
_QUOTA = "ReadQuota"
_ROOM = "FindRoom"
_TERMINATION = "WatchTermination"
_CARDS = "DiscoverCards"

_ABOUT = {_QUOTA: QUEUES.kind, _CARDS: NODES.kind}
"""Each reason is a topic of its own there; anybody may write other events with these words."""

_HOLD = _LIFT
_ROLLOUT = reasons.ROLLOUT_NEEDS_QUOTA
_SPREAD = reasons.TASK_SPREAD
_UNFINISHED = reasons.GANG_UNFINISHED
_UNFINISHED_MEMBER = "GangUnfinished of a member"
_OWN_TOPICS = frozenset({_ROLLOUT, _SPREAD, _UNFINISHED})
_DONE = frozenset({reasons.RESERVATION_EVICTED, reasons.GANG_GIVEN_BACK, reasons.LIFTED})
_WAITING = frozenset({_HOLD, _ROLLOUT})
_LIMITED = _WAITING | {_UNFINISHED_MEMBER}

_ENDED_AT_ONCE = 200
"""Stories of pods that are ended before others come to their turn."""


class Announcements:
    """Says what is news about pods and queues; of one object and topic the last thing that was said counts.

    A pod that waits has two events within an hour at most. Nothing is said before it is known what leaders before have
    said (`history`, of the objects that `exists` knows), and why pods wait only while `run` runs.
    """

    def __init__(
        self,
        recorder: Recorder,
        rollouts: Rollouts | None = None,
        history: History | None = None,
        exists: Callable[[Reference], bool] = lambda _: True,
    ) -> None:
        self._recorder = recorder
        self._rollouts = rollouts
        self._exists = exists
        recall = None if history is None else partial(self._recall, history)
        self._sayings = Sayings(recorder, limited=_LIMITED, history=recall, topic_of=self._topic_of)
        self._early: dict[str, Pod] | None = None
        """Pods that were let in, by UID, before it was read whether they were said to wait; None when all is read."""
        self._groups: dict[str, str] = {}
        """UID of a pod that waits -> that of the PodGroup which waits as a whole."""
        self._leads = False
        self.holds = Sharded[Hold]()
        """What the last pass said of each pod that waits, by UID; nothing while another process leads."""

    async def run(self) -> None:
        """Announces until cancelled: for the time of one leadership."""
        self._leads = True
        try:
            await self._sayings.run()
        finally:
            self._leads = False
            self.holds.clear()

    def held(self, hold: Hold) -> None:
        """Says why a pod waits, on the PodGroup too where that waits as a whole, once it has waited for a moment.

        A gang without PodGroup has no object of its own: what there is to say of it is said on its members.
        """
        uid = hold.pod.uid
        self.holds.add(uid, hold)
        if not hold.announced:
            self._over(uid)
            return
        if hold.group is not None and hold.group.stored:
            self._groups[uid] = hold.group.uid
            self._hold(_group_reference(hold.group), hold)
        self._hold(_reference(hold.pod), hold)
        note = self._rollouts.obstacle(hold.pod, hold.why.code) if self._rollouts is not None else ""
        if note:
            self._sayings.say(
                _ROLLOUT, _saying(_reference(hold.pod), _ROLLOUT, note, _LIFT), moment_s=MOMENT_S
            )
        else:
            self._sayings.unsay(uid, _ROLLOUT)

    def lifted(self, lift: Lift) -> None:
        """Takes back what has not been said yet: the pod waits no longer, nor does its PodGroup as a whole.

        Says on the PodGroup when its members got different cards that had better have the same.
        """
        self._over(lift.pod.uid)
        self.holds.pop(lift.pod.uid, None)
        if lift.spread is not None:
            group = lift.spread.group
            regarding = _group_reference(group) if group.stored else _reference(lift.pod)
            # Once of each group, whichever cards they are the next time.
            self._sayings.say(_SPREAD, _saying(regarding, _SPREAD, lift.spread.message, _LIFT, _SPREAD))
        waited = self._groups.pop(lift.pod.uid, None)
        if waited is not None:
            self._sayings.again(waited, _HOLD)

    def uncounted(self, entry: Entry) -> None:
        """Says on a pod that is bound, or may be any moment, that its cards count as none."""
        why = uncountable(entry.queue, entry.demand.problem)
        self._sayings.say(_COUNT, _saying(_reference(entry.pod), why.code, why.message, _COUNT))

    def overdue(self, pod: Pod, reason: str, note: str) -> None:
        """Says on a pod that it has been without a node for too long."""
        self._sayings.say(_RESERVATION, _saying(_reference(pod), reason, note, _RESERVATION))

    def evicted(self, pod: Pod, reason: str, note: str) -> None:
        """Says of a pod that it was deleted: that is done, and nobody will say it again."""
        self._recorder.emit(_reference(pod), "Warning", reason, event_note(reason, note), _RESERVATION)

    def unfinished(self, group: Group, reason: str, note: str) -> None:
        """Says on a PodGroup, once, that it was cut short."""
        self._sayings.say(reason, _saying(_group_reference(group), reason, note, _RESERVATION, reason))

    def unfinished_member(self, pod: Pod, reason: str, note: str) -> None:
        """Says it on a member, as it is now, of a gang without a PodGroup.

        One that waits has no more events for that; one that holds quota may soon be deleted, and hears it at once.
        """
        saying = _saying(_reference(pod), reason, note, _RESERVATION, reason)
        self._sayings.say(_UNFINISHED_MEMBER, replace(saying, pressing=not pod.gated))

    def finished_member(self, pod: Pod) -> None:
        """Takes that back as long as it has not been said."""
        self._sayings.unsay(pod.uid, _UNFINISHED_MEMBER)

    def astray(self, pod: Pod, reason: str, note: str, news: str) -> None:
        """Says on an mGPU pod that was let in why it finds no node, if it has been so for a moment."""
        saying = _saying(_reference(pod), reason, note, _ROOM, f"{reason}: {news}")
        self._sayings.say(_ROOM, saying, moment_s=ASTRAY_S)

    def not_astray(self, pod: Pod) -> None:
        """Takes that back as long as it has not been said."""
        self._sayings.unsay(pod.uid, _ROOM)

    def overrun(self, pod: Pod, note: str) -> None:
        """Says on a deleted pod that it runs on and counts again."""
        saying = _saying(_reference(pod), reasons.TERMINATION_OVERDUE, note, _TERMINATION)
        self._sayings.say(_TERMINATION, saying)

    def not_overrun(self, pod: Pod) -> None:
        """Takes that back as long as it has not been said."""
        self._sayings.unsay(pod.uid, _TERMINATION)

    def about_queue(self, queue: Queue, notices: Iterable[QueueNotice]) -> None:
        """Says what is wrong with a queue; what is not any more may be said again later."""
        current = {notice.reason: notice for notice in notices}
        over = [topic for topic in self._sayings.topics(queue.uid) if topic not in current]
        self._sayings.forget(queue.uid, *over)
        regarding = Reference.of(QUEUES, queue.name, uid=queue.uid)
        for notice in current.values():
            saying = _saying(
                regarding, notice.reason, notice.message, _QUOTA, f"{notice.reason}: {notice.news}"
            )
            self._sayings.say(notice.reason, saying)

    def about_node(self, node: Node, alarms: Iterable[Alarm]) -> None:
        """Says what about a node's cards does not add up, once; what is mended may be said again later."""
        current: dict[str, list[str]] = {}
        for alarm in alarms:
            current.setdefault(alarm.reason, []).append(alarm.message)
        over = [topic for topic in self._sayings.topics(node.uid) if topic not in current]
        self._sayings.forget(node.uid, *over)
        regarding = Reference.of(NODES, node.name, uid=node.uid)
        for reason, messages in current.items():
            self._sayings.say(reason, Saying(regarding, reason, " | ".join(messages), _CARDS))

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Forgets a pod that does not exist any more, and why it waited once it is seen without gate."""
        if old is None:
            return
        if new is None or new.uid != old.uid:
            self.gone(old.uid)
        elif old.gated and not new.gated:
            self._groups.pop(old.uid, None)
            self.holds.pop(old.uid, None)
            told = self._sayings.was_told(old.uid, _HOLD)
            self._sayings.forget(old.uid, *_LIMITED)
            if told and self._leads:
                self._let_in(new)
            elif self._early is not None:
                self._early[old.uid] = new

    def gone(self, uid: str) -> None:
        """Forgets an object that does not exist any more."""
        self._groups.pop(uid, None)
        self.holds.pop(uid, None)
        if self._early is not None:
            self._early.pop(uid, None)
        self._sayings.gone(uid)

    async def _recall(self, history: History, take: Callable[[Past], None]) -> None:
        """Hears what leaders before have said, and ends the stories of pods that were let in meanwhile: it may take minutes."""
        early = self._early = {}
        try:
            await history(take)
        finally:
            self._early = None
        for number, pod in enumerate(early.values(), 1):
            if self._sayings.was_told(pod.uid, _HOLD):
                self._let_in(pod)
                # Not that its gang is unfinished: it holds quota now, and may soon be deleted for that.
                self._sayings.forget(pod.uid, *_WAITING)
            if number % _ENDED_AT_ONCE == 0:
                await asyncio.sleep(0)

    def _let_in(self, pod: Pod) -> None:
        """Ends the story of a pod that was said to wait. Whose gate somebody else took away, of that we know nothing."""
        queue = pod.annotations.get(CHARGED_QUEUE_ANNOTATION)
        if queue is None:
            return
        record = read_assigned(pod.annotations.get(ASSIGNED_ANNOTATION, ""))
        cards = f" with {record[1]} <{record[0]}>" if record is not None else ""
        note = f"Queue <{queue}> lets the pod in{cards}; a scheduler looks for a node now"
        self._recorder.emit(_reference(pod), "Normal", reasons.LIFTED, note, _LIFT)

    def _hold(self, regarding: Reference, hold: Hold) -> None:
        growing = hold.why.code == reasons.GANG_INCOMPLETE
        saying = _saying(regarding, hold.why.code, hold.why.message, _LIFT)
        moment_s = _MOMENTS_S.get(hold.why.code, MOMENT_S)
        self._sayings.say(_HOLD, saying, moment_s=moment_s, still=growing)

    def _over(self, uid: str) -> None:
        for topic in _WAITING:
            self._sayings.unsay(uid, topic)

    def _topic_of(self, past: Past) -> str:
        """The topic of an event that an earlier leader wrote; empty for one that says nothing about the present."""
        reason, action = past.words.reason, past.words.action
        if reason in _DONE or reason not in CATALOGUE or not self._exists(past.regarding):
            return ""
        if reason == _UNFINISHED and past.regarding.kind == PODS.kind:
            return _UNFINISHED_MEMBER
        if reason in _OWN_TOPICS or past.regarding.kind == _ABOUT.get(action):
            return reason
        return action if action in {_HOLD, _COUNT, _RESERVATION, _ROOM, _TERMINATION} else ""


def _saying(regarding: Reference, reason: str, message: str, action: str, news: str = "") -> Saying:
    """What is said, with the way out at its end."""
    return Saying(regarding, reason, event_note(reason, message), action, news)


def _group_reference(group: Group) -> Reference:
    resource = KUBERNETES_PODGROUPS if group.kubernetes else PODGROUPS
    return Reference.of(resource, group.name, group.namespace, group.uid)


def _reference(pod: Pod) -> Reference:
    return Reference.of(PODS, pod.name, pod.namespace, pod.uid)

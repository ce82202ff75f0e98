"""The leader's watch over mGPU pods that were let in and find no node: it says what they lack.

A lifted pod is led to nodes on which its room is booked. That room may go with its node; and a pod that was not led anywhere
may be sent to a full node again and again. One that was nominated for its node and may go to others is nominated for another one
when that does not take it any more, and when its bind was refused too often; nothing else is changed here. A node may have
changed, and a pod may have come to it for which no room was booked there: another member of the task, or one without shares.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final

from controller.announcements import Announcements
from controller.caches import Caches
from core import reasons
from core.mgpu.destination import booked_on, led_to, nominated_for
from core.objects import Node, Pod
from core.plan.stuck import (
    node_full_notice,
    nodes_with_room,
    place_gone,
    room_gone,
    room_gone_notice,
    takes_now,
)
from core.stage import Stage
from kube.workqueue import WorkQueue

DENIALS: Final = 3
"""So often a bind is refused at one node before it is looked for room elsewhere, and again whenever that has doubled."""

_COUNTED_MOST: Final = 10_000
"""Pods of which refused binds are counted; of more than that the oldest are forgotten."""

SETTLE_S: Final = 1.0
"""Changes of a node, and of who is there, that come together are looked at together."""

AGAIN_S: Final = 30.0
"""After so long it is looked again for a node for a pod that was nominated for one which does not take it any more."""

NO_ROOM: Final = frozenset(
    {
        reasons.MGPU_NO_ROOM,
        reasons.MGPU_NODE_TYPE,
        reasons.MGPU_POLICY_MISMATCH,
        reasons.MGPU_TOO_FEW_CARDS,
    }
)
"""Why a bind is refused for want of room: another node may have it."""


class StrandedPods:
    """Looks at pods when a node changes on which their room is booked, or others come to it, and when their bind was refused too often.

    `nominate` has a pod nominated for another node, whose room is booked when it returns.
    """

    def __init__(
        self,
        caches: Caches,
        announcements: Announcements,
        nominate: Callable[[Pod, str], None] = lambda _pod, _node: None,
    ) -> None:
        self._caches = caches
        self._announcements = announcements
        self._nominate = nominate
        self._denied: OrderedDict[str, dict[str, int]] = OrderedDict()
        """How often a pod's bind was refused, by UID and node."""
        self._due: set[str] = set()
        """Pods that are to be nominated for another node, for another refused bind was one too many."""
        self._homeless: dict[str, None] = {}
        """Pods whose node does not take them any more, as no other one did when they were looked at."""
        self._looks: WorkQueue[str] = WorkQueue(self._look, slots=1)
        self._leading = False
        caches.pods.subscribe(self._pod_changed)
        caches.nodes.subscribe(self._node_changed)

    def __len__(self) -> int:
        """Of how many pods refused binds are counted."""
        return len(self._denied)

    async def run(self) -> None:
        """Watches until cancelled; whoever was led to nodes before is looked at once."""
        self._leading = True
        for key in self._caches.ledger.reserved_shares:
            self._looks.add(key[0])
        try:
            await self._looks.run()
        finally:
            self._leading = False
            self._looks.clear()
            self._denied.clear()
            self._due.clear()
            self._homeless.clear()

    def refused(self, pod: Pod, node: str, reason: str) -> None:
        """Counts a bind that was refused."""
        if reason not in NO_ROOM:
            return
        nodes = self._denied.setdefault(pod.uid, {})
        nodes[node] = nodes.get(node, 0) + 1
        self._denied.move_to_end(pod.uid)
        if len(self._denied) > _COUNTED_MOST:
            self._denied.popitem(last=False)
        times, odd = divmod(nodes[node], DENIALS)
        if self._leading and not odd and times & (times - 1) == 0:
            self._due.add(pod.uid)
            self._looks.add(pod.uid)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if old is not None and (new is None or new.uid != old.uid):
            self._drop(old.uid)
        if new is not None and (new.bound or new.deleting or new.terminal):
            self._drop(new.uid)
        if self._leading:
            before = old if old is not None and new is not None and old.uid == new.uid else None
            if new is not None and new.bound and _takes_room(before, new):
                self._look_at(self._caches.ledger.led_to(new.node_name))
            if old is not None and (new is None or before is None or new.terminal):
                self._look_at(self._homeless)

    def _drop(self, uid: str) -> None:
        self._denied.pop(uid, None)
        self._homeless.pop(uid, None)
        self._due.discard(uid)
        self._looks.discard(uid)

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        node = new or old
        if self._leading and node is not None and old != new:
            self._look_at({**self._caches.ledger.led_to(node.name), **self._homeless})

    def _look_at(self, uids: Iterable[str]) -> None:
        for uid in uids:
            self._looks.add(uid, SETTLE_S)

    async def _look(self, uid: str) -> float | None:
        """Says what there is to be said about a pod. See kube.workqueue.Work."""
        ledger = self._caches.ledger
        due = uid in self._due
        self._due.discard(uid)
        self._homeless.pop(uid, None)
        pod = self._latest(uid)
        if pod is None:
            return None
        if pod.bound:
            return AGAIN_S  # Its bind was granted; should it come to nothing there is something to be said again.
        queue = ledger.attribution(pod).queue
        if led_to(pod):
            why = room_gone(ledger, pod)
            if why:
                self._announcements.astray(pod, *room_gone_notice(queue, why), news=why)
                return None
            self._announcements.not_astray(pod)
        place = nominated_for(pod)
        again_s: float | None = None
        if place_gone(ledger, pod):
            others = await self._caches.turns.finish(nodes_with_room(ledger, pod, but=place))
            if self._latest(uid) is None:
                return None
            if self._moved(uid, place, others):
                return AGAIN_S
            self._homeless[uid] = None
            again_s = AGAIN_S
        node, denials = max(self._denied.get(uid, {}).items(), key=lambda each: each[1], default=("", 0))
        if denials >= DENIALS:
            elsewhere = await self._caches.turns.finish(nodes_with_room(ledger, pod, but=node))
            if elsewhere and self._latest(uid) is not None:
                if due and place:
                    # Its scheduler does not use the place that it has, whatever speaks against that.
                    self._moved(uid, place, [name for name in elsewhere if name != place])
                notice = node_full_notice(queue, node, denials, elsewhere)
                self._announcements.astray(pod, *notice, news=node)
        return again_s

    def _latest(self, uid: str) -> Pod | None:
        """A pod that was let in and has no node, nominated as it is or is to be; None for any other one."""
        ledger = self._caches.ledger
        seen = ledger.observed(uid)
        return ledger.pod(uid) if seen is not None and ledger.stages.of(seen) is Stage.RESERVED else None

    def _moved(self, uid: str, place: str, others: Iterable[str]) -> bool:
        """Has a pod nominated for the first of the other nodes that still takes it; whether there is one.

        Somebody else may have been given the room while it was looked for, and the pod another place.
        """
        ledger, latest = self._caches.ledger, self._latest(uid)
        if latest is None or latest.bound or nominated_for(latest) != place:
            return False
        other = next(
            (name for name in others if name in ledger.nodes and takes_now(ledger, latest, name)), ""
        )
        if other:
            self._nominate(latest, other)
        return bool(other)


def _takes_room(before: Pod | None, now: Pod) -> bool:
    """Whether a pod with a node may take of what is booked for others there, which it did not before."""
    if before is None or not before.bound:
        return before is None or now.node_name not in booked_on(before)
    return before.requests != now.requests or before.annotations != now.annotations

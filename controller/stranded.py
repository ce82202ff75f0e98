"""The leader's watch over mGPU pods that were let in and find no node: it says what they lack.

A lifted pod is led to nodes on which its room is booked. That room may go with its node; and a pod that was not led anywhere
may be sent to a full node again and again. One that was nominated for its node and may go to others is nominated for another one
when that does not take it any more, and when its bind was refused too often; nothing else is changed here.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from controller.announcements import Announcements
from controller.caches import Caches
from core import reasons
from core.mgpu.destination import led_to, nominated_for
from core.objects import Node, Pod
from core.plan.stuck import node_full_notice, nodes_with_room, place_gone, room_gone, room_gone_notice
from core.stage import Stage
from kube.workqueue import WorkQueue

DENIALS: Final = 3
"""So often a bind is refused at one node before it is looked for room elsewhere, and again whenever that has doubled."""

_COUNTED_MOST: Final = 10_000
"""Pods of which refused binds are counted; of more than that the oldest are forgotten."""

SETTLE_S: Final = 1.0
"""Changes of a node that come together are looked at together."""

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
    """Looks at pods when a node changes on which their room is booked, and when their bind was refused too often.

    `nominate` has a pod nominated for another node.
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

    def _drop(self, uid: str) -> None:
        self._denied.pop(uid, None)
        self._due.discard(uid)
        self._looks.discard(uid)

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        node = new or old
        if self._leading and node is not None and old != new:
            for uid in self._caches.ledger.led_to(node.name):
                self._looks.add(uid, SETTLE_S)

    async def _look(self, uid: str) -> float | None:
        """Says what there is to be said about a pod. See kube.workqueue.Work."""
        ledger = self._caches.ledger
        due = uid in self._due
        self._due.discard(uid)
        pod = ledger.observed(uid)
        if pod is None or ledger.stages.of(pod) is not Stage.RESERVED:
            return None
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
            latest = ledger.observed(uid)
            if others and latest is not None and not latest.bound and nominated_for(latest) == place:
                self._nominate(latest, others[0])
                return AGAIN_S
            again_s = AGAIN_S
        node, denials = max(self._denied.get(uid, {}).items(), key=lambda each: each[1], default=("", 0))
        if denials >= DENIALS:
            elsewhere = await self._caches.turns.finish(nodes_with_room(ledger, pod, but=node))
            latest = ledger.observed(uid)
            if elsewhere and latest is not None and not latest.bound:
                other = next((name for name in elsewhere if name != place), "")
                if due and place and other and nominated_for(latest) == place:
                    # Its scheduler does not use the place that it has, whatever speaks against that.
                    self._nominate(latest, other)
                notice = node_full_notice(queue, node, denials, elsewhere)
                self._announcements.astray(pod, *notice, news=node)
        return again_s

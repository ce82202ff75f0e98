"""The leader's watch over mGPU pods that were let in and find no node: it says what they lack.

A lifted pod is led to nodes on which its room is booked. That room may go with its node; and a pod that was not led anywhere
may be sent to a full node again and again. One that was nominated for its node and may go to others is nominated for another one
when that does not take it any more, and when its bind was refused too often; nothing else is changed here. A node may have
changed, and a pod may have come to it for which no room was booked there: another member of the task, or one without shares.

Who finds no other one is homeless. A node that changes, or on which room comes free, is looked at for the homeless, and no other
one is: what happens in a cluster costs as much as the nodes with mGPU cards that it happens to. All nodes are looked at when a pod
becomes homeless or changes itself, and now and then.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from typing import Final

from controller.announcements import Announcements
from controller.caches import Caches
from core import reasons
from core.mgpu.destination import booked_on, led_to, nominated_for
from core.mgpu.node import model_of
from core.objects import Node, Pod
from core.plan.admitted import AdmittedNodes
from core.plan.stuck import (
    node_full_notice,
    nodes_with_room,
    place_gone,
    room_gone,
    room_gone_notice,
    takes_now,
)
from core.stage import Stage
from core.steps import Steps, each
from kube.workqueue import WorkQueue

DENIALS: Final = 3
"""So often a bind is refused at one node before it is looked for room elsewhere, and again whenever that has doubled."""

_COUNTED_MOST: Final = 10_000
"""Pods of which refused binds are counted; of more than that the oldest are forgotten."""

SETTLE_S: Final = 1.0
"""Changes of a node, and of who is there, that come together are looked at together."""

AGAIN_S: Final = 30.0
"""After so long it is looked again at all nodes for a pod that was nominated for one which does not take it any more."""

_ADDED_IN_A_STEP: Final = 100
"""Pods that begin to wait for being looked at in about half a millisecond."""

_CHANGED_NODES: Final = ""
"""Stands among the UIDs of pods to be looked at for the nodes that are to be looked at for the homeless ones."""

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
        """Pods whose node does not take them any more, as no other one did when they were looked at, or are looked at now."""
        self._changed: dict[str, None] = {}
        """Nodes that may have room for a homeless pod since it was looked at."""
        self._admitted = AdmittedNodes(caches.ledger)
        """Which nodes the rules of such pods admit: asked by one look after the other, forgotten with the term."""
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
        try:
            await self._caches.turns.finish(self._led_before())
            await self._looks.run()
        finally:
            self._leading = False
            self._looks.clear()
            self._denied.clear()
            self._due.clear()
            self._homeless.clear()
            self._changed.clear()
            self._admitted = AdmittedNodes(self._caches.ledger)

    def _led_before(self) -> Steps[None]:
        """Has those looked at that are there when it begins; who changes meanwhile, or whose node does, is told of."""
        shares = tuple(self._caches.ledger.reserved_shares)
        yield from each(shares, lambda share: self._looks.add(share[0]), _ADDED_IN_A_STEP)

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
        before = old if old is not None and new is not None and old.uid == new.uid else None
        if old is not None and before is None:
            self._drop(old.uid)
        if new is not None and (new.bound or new.deleting or new.terminal):
            self._drop(new.uid)
        if not self._leading:
            return
        if new is not None and new.bound and _takes_room(before, new):
            self._look_at_led(new.node_name)
        for name in _left(old, new):
            self._room_may_be_on(name)
        if new is not None and new.uid in self._homeless and before is not None and _asks_anew(before, new):
            self._looks.add(new.uid, SETTLE_S)

    def _drop(self, uid: str) -> None:
        self._denied.pop(uid, None)
        self._homeless.pop(uid, None)
        self._due.discard(uid)
        self._looks.discard(uid)

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        node = new or old
        if self._leading and node is not None and old != new:
            self._look_at_led(node.name)
            self._room_may_be_on(node.name)

    def _look_at_led(self, name: str) -> None:
        """Has those looked at for whom room is booked on a node; the homeless are, when room may be there."""
        for uid in self._caches.ledger.led_to(name):
            if uid not in self._homeless:
                self._looks.add(uid, SETTLE_S)

    def _room_may_be_on(self, name: str) -> None:
        """Has a node looked at for the homeless, if it serves shares at all."""
        node = self._caches.ledger.nodes.get(name)
        if self._homeless and node is not None and model_of(node).serves:
            self._changed[name] = None
            self._looks.add(_CHANGED_NODES, SETTLE_S)

    async def _look(self, uid: str) -> float | None:
        """Says what there is to be said about a pod. See kube.workqueue.Work."""
        if uid == _CHANGED_NODES:
            await self._look_at_changed()
            return None
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
            why = await self._caches.turns.finish(room_gone(ledger, pod, self._admitted))
            if self._settled(uid):
                return AGAIN_S
            if why:
                self._announcements.astray(pod, *room_gone_notice(queue, why), news=why)
                return None
            self._announcements.not_astray(pod)
        place = nominated_for(pod)
        again_s: float | None = None
        if await self._caches.turns.finish(place_gone(ledger, pod, self._admitted)):
            if self._settled(uid):
                return AGAIN_S
            # From now on: a node may change after it was looked at and before the last one is.
            self._homeless[uid] = None
            others = await self._elsewhere(pod, place)
            if self._latest(uid) is None:
                self._homeless.pop(uid, None)
                return None
            if await self._moved(uid, place, others):
                return AGAIN_S
            again_s = AGAIN_S
        node, denials = max(self._denied.get(uid, {}).items(), key=lambda each: each[1], default=("", 0))
        if denials >= DENIALS:
            elsewhere = await self._elsewhere(pod, node)
            if elsewhere and self._latest(uid) is not None:
                if due and place:
                    # Its scheduler does not use the place that it has, whatever speaks against that.
                    await self._moved(uid, place, [name for name in elsewhere if name != place])
                notice = node_full_notice(queue, node, denials, elsewhere)
                self._announcements.astray(pod, *notice, news=node)
        return again_s

    async def _look_at_changed(self) -> None:
        """Looks at the nodes that have changed for each homeless pod, and at no other ones."""
        changed, self._changed = self._changed, {}
        for uid in tuple(self._homeless):
            place, others = await self._caches.turns.finish(self._among(uid, changed))
            if await self._moved(uid, place, others):
                # Not when it would have been looked at next: its move may come to nothing until then.
                self._looks.discard(uid)
                self._looks.add(uid, AGAIN_S)

    def _among(self, uid: str, changed: Collection[str]) -> Steps[tuple[str, list[str]]]:
        """For which node a homeless pod is nominated, and which of the changed ones would take it; none where its own does again."""
        pod = self._latest(uid)
        if pod is None or uid not in self._homeless:
            return "", []
        place = nominated_for(pod)
        gone = place not in changed or (yield from place_gone(self._caches.ledger, pod, self._admitted))
        if not gone:
            self._looks.add(uid)
            return place, []
        return place, (yield from self._with_room(pod, place, changed))

    async def _elsewhere(self, pod: Pod, but: str) -> list[str]:
        """The nodes that would take a pod, see nodes_with_room."""
        return await self._caches.turns.finish(self._with_room(pod, but))

    def _with_room(self, pod: Pod, but: str, among: Collection[str] | None = None) -> Steps[list[str]]:
        return nodes_with_room(self._caches.ledger, pod, but, self._admitted, among)

    def _latest(self, uid: str) -> Pod | None:
        """A pod that was let in and has no node, nominated as it is or is to be; None for any other one."""
        ledger = self._caches.ledger
        seen = ledger.observed(uid)
        return ledger.pod(uid) if seen is not None and ledger.stages.of(seen) is Stage.RESERVED else None

    async def _moved(self, uid: str, place: str, others: Iterable[str]) -> bool:
        """Has a pod nominated for the first of the other nodes that still takes it; whether there is one."""
        return await self._caches.turns.finish(self._moving(uid, place, others))

    def _moving(self, uid: str, place: str, others: Iterable[str]) -> Steps[bool]:
        """Somebody else may have been given the room while it was looked for, and the pod another place."""
        for name in others:
            before = self._waiting_at(uid, place)
            if before is None:
                return False
            taken = yield from takes_now(self._caches.ledger, before, name, self._admitted)
            now = self._waiting_at(uid, place)
            if taken and now is not None and not _asks_anew(before, now):
                self._homeless.pop(uid, None)
                self._nominate(now, name)
                return True
        return False

    def _waiting_at(self, uid: str, place: str) -> Pod | None:
        """The pod as long as it has no node and is nominated for this one."""
        latest = self._latest(uid)
        return None if latest is None or latest.bound or nominated_for(latest) != place else latest

    def _settled(self, uid: str) -> bool:
        """Whether the pod has a node by now, or is gone: what was found out about it meanwhile is of no use."""
        latest = self._latest(uid)
        return latest is None or latest.bound


def _takes_room(before: Pod | None, now: Pod) -> bool:
    """Whether a pod with a node may take of what is booked for others there, which it did not before."""
    if before is None or not before.bound:
        return before is None or now.node_name not in booked_on(before)
    return before.requests != now.requests or before.annotations != now.annotations


def _left(before: Pod | None, now: Pod | None) -> set[str]:
    """The nodes on which a pod takes no room any more, or something else than it did."""
    if before is None:
        return set()
    if now is None or now.uid != before.uid or (before.bound and _takes_room(before, now)):
        return _takes_room_on(before)
    return _takes_room_on(before) - _takes_room_on(now)


def _takes_room_on(pod: Pod) -> set[str]:
    if pod.terminal:
        return set()
    return {pod.node_name} if pod.bound else set(booked_on(pod))


def _asks_anew(before: Pod, now: Pod) -> bool:
    """Whether nodes may take a pod that did not, for it is not what it was to them. Its selector and its affinity stay."""
    same = before.requests == now.requests and before.tolerations == now.tolerations
    return not same or before.annotations != now.annotations

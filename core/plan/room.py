"""Whether some node has room for an mGPU pod, so that only pods that can be bound are lifted.

A bind that is denied does not move the pod to another node: the scheduler tries the same one again, once a second.
So an mGPU pod is lifted only while a node fits it whole, with every pod counted that is bound there, about to be
bound, or lifted before it. The last have no node yet; each is put on a node for this count alone.
"""

from collections.abc import Iterator

from core import reasons
from core.affinity import admits
from core.mgpu.allocation import SCORE_BUDGET, preferred
from core.mgpu.ask import MgpuAsk
from core.mgpu.filter import Unfit, fits
from core.mgpu.node import NodeModel, NodeState, after, model_of
from core.mgpu.occupancy import occupancy
from core.objects import Node, Pod
from core.queues.account import Entry
from core.queues.check import Shortfall
from core.queues.ledger import Ledger

_CLOSENESS = (
    reasons.MGPU_NO_ROOM,
    reasons.MGPU_TOO_FEW_CARDS,
    reasons.MGPU_POLICY_MISMATCH,
    reasons.MGPU_NODE_TYPE,
)
"""Which node's reason is told: the one that comes closest to fitting."""


class _NodeRoom:
    """A node's cards as they would be once all that is lifted for it were bound."""

    __slots__ = ("base", "model", "state", "tentative", "version")

    def __init__(self) -> None:
        self.version = -1
        self.model = NodeModel("", "", 0, 0)
        self.base = NodeState(())
        self.state = NodeState(())
        self.tentative: dict[str, MgpuAsk] = {}


class ShareRoom:
    """The room for mGPU pods, brought up to date with each question; its cost is that of the nodes that changed."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._seen = (-1, -1)
        self._rooms: dict[str, _NodeRoom] = {}
        self._places: dict[str, str] = {}

    def shortfall(self, pod: Pod, ask: MgpuAsk, queue: str) -> Shortfall | None:
        """None when a ready node that the pod's own rules admit has room; else why the closest one has not."""
        self._refresh()
        closest: tuple[int, str, Unfit] | None = None
        for node, room in self._candidates(pod):
            unfit = fits(ask, room.model, room.state, self._ledger.settings)
            if unfit is None:
                return None
            distance = _CLOSENESS.index(unfit.code)
            if closest is None or distance < closest[0]:
                closest = (distance, node.name, unfit)
        reason = (
            f"node {closest[1]}: {closest[2].message}"
            if closest
            else "no node serves mGPU shares to this pod"
        )
        return Shortfall(
            reasons.NO_FREE_CARD, f"Queue <{queue}> lets the pod in, but no node has room; {reason}"
        )

    def _candidates(self, pod: Pod) -> Iterator[tuple[Node, _NodeRoom]]:
        for name, room in self._rooms.items():
            node = self._ledger.nodes[name]
            if room.model.serves and node.ready and not node.unschedulable and admits(pod, node):
                yield node, room

    def _refresh(self) -> None:
        """Brings the rooms up to date; costs next to nothing while nothing has changed."""
        reserved, seen = self._ledger.reserved_shares, self._seen
        self._seen = self._ledger.occupants.changes, self._ledger.reserved_shares_changes
        if self._seen == seen:
            return
        stale = self._refresh_nodes() if self._seen[0] != seen[0] else set()
        for uid in self._places.keys() - reserved.keys():
            name = self._places.pop(uid)
            del self._rooms[name].tentative[uid]
            stale.add(name)
        for name in stale:
            self._replay(name)
        homeless = (reserved[uid] for uid in reserved.keys() - self._places.keys())
        for entry in sorted(homeless, key=lambda entry: entry.order):
            self._place(entry)

    def _refresh_nodes(self) -> set[str]:
        """Counts anew what is bound on the nodes that changed; returns their names."""
        ledger = self._ledger
        for name in self._rooms.keys() - ledger.nodes.keys():
            for uid in self._rooms.pop(name).tentative:
                del self._places[uid]
        stale = set()
        for name, node in ledger.nodes.items():
            room = self._rooms.get(name)
            if room is None:
                room = self._rooms[name] = _NodeRoom()
            version = ledger.occupants.version(name)
            if room.version != version:
                room.version = version
                room.model = model_of(node)
                pods = ledger.pods_on(name) if room.model.serves else []
                room.base = occupancy(room.model, pods, ledger.settings.mgpu).state
                stale.add(name)
        return stale

    def _replay(self, name: str) -> None:
        """Puts the tentative pods of a node onto its present state; those that fit no longer look for another node."""
        room = self._rooms[name]
        room.state = room.base
        tentative, room.tentative = room.tentative, {}
        for uid, ask in tentative.items():
            if not self._put(uid, ask, name):
                self._places.pop(uid, None)

    def _place(self, entry: Entry) -> None:
        """Puts a lifted pod on the first node that fits; one that fits nowhere any more takes no room."""
        ask = entry.demand.mgpu
        if ask is None:
            return
        for node, _ in self._candidates(entry.pod):
            if self._put(entry.pod.uid, ask, node.name):
                return

    def _put(self, uid: str, ask: MgpuAsk, name: str) -> bool:
        room, settings = self._rooms[name], self._ledger.settings
        if fits(ask, room.model, room.state, settings) is not None:
            return False
        placement = preferred(ask, room.model, room.state, settings.mgpu, SCORE_BUDGET)
        if placement is None:
            return False
        room.state = after(room.state, room.model, ask, placement.indexes)
        room.tentative[uid] = ask
        self._places[uid] = name
        return True

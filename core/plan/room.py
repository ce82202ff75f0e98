"""Whether some node has room for an mGPU pod, so that only pods that can be bound are lifted.

A bind that is denied does not move the pod to another node: the scheduler tries the same one again, once a second.
So an mGPU pod is lifted only while a node fits it whole, with every pod counted that is bound there, about to be
bound, or lifted before it. The last have no node yet; each is put on a node for this count alone.
"""

from collections.abc import Iterator, Mapping

from core import reasons
from core.affinity import admits
from core.mgpu.allocation import SCORE_BUDGET, preferred
from core.mgpu.ask import MgpuAsk
from core.mgpu.filter import fits
from core.mgpu.node import NodeModel, NodeState, after, canonical, model_of
from core.mgpu.occupancy import occupancy
from core.objects import Node, Pod
from core.queues.account import Entry
from core.queues.ledger import Ledger
from core.shortfall import Shortfall

_CLOSENESS = (reasons.MGPU_NO_ROOM, reasons.MGPU_TOO_FEW_CARDS, reasons.MGPU_POLICY_MISMATCH)
"""Which node's reason is told: the one that comes closest to fitting."""

_Kind = tuple[NodeModel, NodeState]
"""Nodes of one kind have room for the same pods; the cards are in one order, whatever their numbers."""

_Wish = tuple[MgpuAsk, tuple[tuple[str, str], ...], str]
"""What a pod asks, and its own rules about nodes."""


class _NodeRoom:
    """A node's cards as they would be once all that is lifted for it were bound. Not `open`: it takes no pod now."""

    __slots__ = ("base", "model", "open", "state", "tentative")

    def __init__(self) -> None:
        self.open = False
        self.model = NodeModel("", "", 0, 0)
        self.base = NodeState(())
        self.state = NodeState(())
        self.tentative: dict[str, Entry] = {}


class ShareRoom:
    """The room for mGPU pods, brought up to date with each question.

    The cost of a change is that of the nodes it touches; a question costs as much as there are kinds of nodes, and
    next to nothing where the like has been refused since room was last freed.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._seen = (-1, -1)
        self._rooms: dict[str, _NodeRoom] = {}
        self._kinds: dict[_Kind, dict[str, Node]] = {}
        self._places: dict[str, str] = {}
        self._refused: dict[_Wish, str] = {}

    def shortfall(self, pod: Pod, ask: MgpuAsk, queue: str) -> Shortfall | None:
        """None when a ready node that the pod's own rules admit has room; else why the closest one has not."""
        self._refresh()
        wish = ask, tuple(sorted(pod.node_selector.items())), str(pod.affinity)
        refusal = self._refused.get(wish) or self._refusal(pod, ask)
        if not refusal:
            return None
        self._refused[wish] = refusal
        return Shortfall(
            reasons.NO_FREE_CARD, f"Queue <{queue}> lets the pod in, but no node has room; {refusal}"
        )

    def _refusal(self, pod: Pod, ask: MgpuAsk) -> str:
        """Why no node has room, empty when one has. Of nodes that are equally close the first name is told."""
        closest = (len(_CLOSENESS), "", "no node serves mGPU shares to this pod")
        for (model, state), nodes in self._kinds.items():
            unfit = fits(ask, model, state, self._ledger.settings)
            if unfit is None:
                if any(_admitting(pod, nodes)):
                    return ""
                continue
            distance = _CLOSENESS.index(unfit.code)
            if distance <= closest[0] and (name := min(_admitting(pod, nodes), default="")):
                closest = min(closest, (distance, name, f"node {name}: {unfit.message}"))
        return closest[2]

    def _refresh(self) -> None:
        """Brings the rooms up to date; costs next to nothing while nothing has changed."""
        reserved, seen = self._ledger.reserved_shares, self._seen
        self._seen = self._ledger.occupants.changes, self._ledger.reserved_shares_changes
        if self._seen == seen:
            return
        gone = self._places.keys() - reserved.keys()
        if gone or self._seen[0] != seen[0]:
            # Else there are only more pods that are lifted, and they take room away.
            self._refused.clear()
        for name in self._rooms.keys() - self._ledger.nodes.keys():
            self._drop(name)
        stale = self._refresh_nodes(seen[0])
        for uid in gone & self._places.keys():
            name = self._places.pop(uid)
            del self._rooms[name].tentative[uid]
            stale.add(name)
        for name in sorted(stale):
            self._replay(name)
        homeless = (reserved[uid] for uid in reserved.keys() - self._places.keys())
        for entry in sorted(homeless, key=lambda entry: entry.order):
            self._place(entry)

    def _refresh_nodes(self, seen: int) -> set[str]:
        """Counts anew what is bound on the nodes that changed since; returns the names of those that are there."""
        ledger = self._ledger
        stale = set()
        for name in ledger.occupants.changed_since(seen):
            node = ledger.nodes.get(name)
            if node is None:
                self._drop(name)
                continue
            room = self._rooms.setdefault(name, _NodeRoom())
            self._sort_out(name, room)
            room.model = model_of(node)
            room.open = room.model.serves and node.ready and not node.unschedulable
            pods = ledger.pods_on(name) if room.open else []
            room.base = canonical(occupancy(room.model, pods, ledger.settings.mgpu).state)
            room.state = room.base
            stale.add(name)
        return stale

    def _drop(self, name: str) -> None:
        """Forgets a node that is gone, if it was known; the pods expected there are to be expected elsewhere."""
        room = self._rooms.pop(name, None)
        if room is not None:
            self._sort_out(name, room)
            for uid in room.tentative:
                del self._places[uid]

    def _replay(self, name: str) -> None:
        """Puts the tentative pods of a node onto its present state; those that fit no longer look for another node."""
        room = self._rooms[name]
        self._sort_out(name, room)
        room.state = room.base
        self._sort_in(name, room)
        tentative, room.tentative = room.tentative, {}
        for uid, entry in tentative.items():
            if not self._put(entry, name):
                del self._places[uid]

    def _place(self, entry: Entry) -> None:
        """Puts a lifted pod on some node that fits; one that fits nowhere any more takes no room."""
        for nodes in tuple(self._kinds.values()):
            name = next(_admitting(entry.pod, nodes), "")
            if name and self._put(entry, name):
                return

    def _put(self, entry: Entry, name: str) -> bool:
        """Whether the node has room for the pod, which takes it then."""
        ask, room, settings = entry.demand.mgpu, self._rooms[name], self._ledger.settings
        if ask is None or not room.open or fits(ask, room.model, room.state, settings) is not None:
            return False
        placement = preferred(ask, room.model, room.state, settings.mgpu, SCORE_BUDGET)
        if placement is None:
            return False
        self._sort_out(name, room)
        room.state = canonical(after(room.state, room.model, ask, placement.indexes))
        self._sort_in(name, room)
        room.tentative[entry.pod.uid] = entry
        self._places[entry.pod.uid] = name
        return True

    def _sort_in(self, name: str, room: _NodeRoom) -> None:
        if room.open:
            self._kinds.setdefault((room.model, room.state), {})[name] = self._ledger.nodes[name]

    def _sort_out(self, name: str, room: _NodeRoom) -> None:
        kind = room.model, room.state
        nodes = self._kinds.get(kind)
        if nodes is not None and nodes.pop(name, None) is not None and not nodes:
            del self._kinds[kind]


def _admitting(pod: Pod, nodes: Mapping[str, Node]) -> Iterator[str]:
    """The names of the nodes that the pod's own rules admit."""
    if not pod.node_selector and not pod.affinity:
        return iter(nodes)
    return (name for name, node in nodes.items() if admits(pod, node))

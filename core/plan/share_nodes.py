"""The nodes that serve mGPU shares, as they would be once all that is lifted were bound where it is expected."""

from collections.abc import Collection
from collections.abc import Set as AbstractSet

from core.mgpu.allocation import SCORE_BUDGET, preferred
from core.mgpu.filter import fits
from core.mgpu.node import NodeModel, NodeState, after, canonical, model_of
from core.mgpu.occupancy import occupancy
from core.queues.entry import Entry
from core.queues.ledger import Ledger


class Kind:
    """Nodes that have room for the same pods; the cards are in one order, whatever their numbers.

    Compared by identity: there is one of each as long as it has nodes.
    """

    __slots__ = ("model", "nodes", "state")

    def __init__(self, model: NodeModel, state: NodeState) -> None:
        self.model = model
        self.state = state
        self.nodes: dict[str, None] = {}


class _NodeRoom:
    """A node's cards, as bound pods leave them and with those expected there. Not `open`: it takes no pod now."""

    __slots__ = ("base", "expected", "model", "open", "state")

    def __init__(self) -> None:
        self.open = False
        self.model = NodeModel("", "", 0, 0)
        self.base = NodeState(())
        self.state = NodeState(())
        self.expected: dict[str, None] = {}


class ShareNodes:
    """The nodes by kind, and the lifted pods by the node where they are expected.

    Every call leaves all tables in agreement: an open node is in the kind of its state, which is its bound pods and then the
    pods expected there, in the order in which they were put.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.expected: dict[str, str] = {}
        """The node where a lifted pod is expected, by UID."""
        self._ledger = ledger
        self._rooms: dict[str, _NodeRoom] = {}
        self._kinds: dict[tuple[NodeModel, NodeState], Kind] = {}
        self._open: dict[str, None] = {}

    @property
    def known(self) -> AbstractSet[str]:
        """All nodes, those too that take no pods."""
        return self._rooms.keys()

    @property
    def kinds(self) -> Collection[Kind]:
        """The kinds of the open nodes."""
        return self._kinds.values()

    @property
    def open(self) -> Collection[str]:
        """The nodes that take mGPU pods."""
        return self._open.keys()

    def recount(self, name: str) -> list[str]:
        """Counts anew what is bound on a node, if it is still there.

        Returns the UIDs of the pods that were expected there, and are expected nowhere now.
        """
        evicted = self.clear(name)
        node = self._ledger.nodes.get(name)
        if node is None:
            self._sort_out(name)
            self._rooms.pop(name, None)
            return evicted
        room = self._rooms.setdefault(name, _NodeRoom())
        self._sort_out(name)
        room.model = model_of(node)
        room.open = room.model.serves and node.ready and not node.unschedulable
        pods = self._ledger.pods_on(name) if room.open else []
        room.base = canonical(occupancy(room.model, pods, self._ledger.settings.mgpu).state)
        room.state = room.base
        self._sort_in(name)
        return evicted

    def clear(self, name: str) -> list[str]:
        """Expects nobody on a node any more. Returns the UIDs of those who were."""
        room = self._rooms.get(name)
        if room is None or not room.expected:
            return []
        evicted, room.expected = [*room.expected], {}
        for uid in evicted:
            del self.expected[uid]
        self._sort_out(name)
        room.state = room.base
        self._sort_in(name)
        return evicted

    def put(self, entry: Entry, name: str) -> bool:
        """Whether the node has room for the pod, which is expected there then."""
        ask, room, settings = entry.demand.mgpu, self._rooms.get(name), self._ledger.settings
        if ask is None or room is None or not room.open:
            return False
        if fits(ask, room.model, room.state, settings) is not None:
            return False
        placement = preferred(ask, room.model, room.state, settings.mgpu, SCORE_BUDGET)
        if placement is None:
            return False
        self._sort_out(name)
        room.state = canonical(after(room.state, room.model, ask, placement.indexes))
        self._sort_in(name)
        room.expected[entry.pod.uid] = None
        self.expected[entry.pod.uid] = name
        return True

    def _sort_in(self, name: str) -> None:
        room = self._rooms[name]
        if room.open:
            kind = self._kinds.setdefault((room.model, room.state), Kind(room.model, room.state))
            kind.nodes[name] = None
            self._open[name] = None

    def _sort_out(self, name: str) -> None:
        if name in self._open:
            del self._open[name]
            room = self._rooms[name]
            kind = self._kinds[room.model, room.state]
            del kind.nodes[name]
            if not kind.nodes:
                del self._kinds[room.model, room.state]

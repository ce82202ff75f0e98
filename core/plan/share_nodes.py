"""The nodes that serve mGPU shares, as they would be once all that is lifted were bound where it is expected."""

from collections import Counter
from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Final
from weakref import WeakValueDictionary

from core import names
from core.mgpu.allocation import any_placement
from core.mgpu.arrangement import arranged, with_all
from core.mgpu.ask import MgpuAsk
from core.mgpu.destination import booked_on, together
from core.mgpu.filter import mismatch
from core.mgpu.node import NodeModel, NodeState, after, canonical, model_of
from core.mgpu.occupancy import occupancy
from core.mgpu.shares import FULL_CARD
from core.objects import Pod
from core.plan.node_load import EVERYBODY, NodeLoad
from core.plan.wish import Wish
from core.queues.entry import Entry, ShareKey
from core.queues.ledger import Ledger

NOTHING: Final = NodeModel("", "", 0, 0)
"""A node that is not there, or of which nobody knows what it has."""


class Kind:
    """Nodes that have room for the same pods; the cards are in one order, whatever their numbers.

    `use` is the part of such a node that is taken, 0..1. Compared by identity: there is one of each as long as it has nodes, or
    something is known of it.
    """

    __slots__ = ("__weakref__", "model", "nodes", "state", "use")

    def __init__(self, model: NodeModel, state: NodeState, weight: int) -> None:
        self.model = model
        self.state = state
        self.use = 1 - _free(model, state, weight)
        self.nodes: dict[str, None] = {}


def _free(model: NodeModel, state: NodeState, weight: int) -> float:
    core = sum(card.core for card in state.cards) / (FULL_CARD * model.cards)
    memory = sum(card.memory for card in state.cards) / (model.memory * model.cards) if model.memory else core
    return (weight * core + (100 - weight) * memory) / 100


class _NodeRoom:
    """A node's cards, as bound pods leave them and with those expected there. Not `open`: it takes no pod now.

    `base` and `state` have the cards in one order, `cards` by their numbers.
    """

    __slots__ = ("base", "cards", "expected", "hostname", "load", "model", "open", "state")

    def __init__(self) -> None:
        self.open = False
        self.hostname = ""
        self.model = NOTHING
        self.cards = NodeState(())
        self.base = NodeState(())
        self.state = NodeState(())
        self.load: NodeLoad | None = None
        self.expected: dict[ShareKey, Entry] = {}


class ShareNodes:
    """The nodes by kind, and the lifted pods by the nodes where they are expected.

    A pod that was led to nodes is expected on all of them, any other one on one. Every call leaves all tables in agreement:
    an open node is in the kind of its state, which is its bound pods with the pods expected there.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.expected: dict[ShareKey, dict[str, None]] = {}
        """The nodes where a lifted pod is expected."""
        self._ledger = ledger
        self._cap = ledger.settings.mgpu.max_containers_per_card
        self._rooms: dict[str, _NodeRoom] = {}
        self._kinds: dict[tuple[NodeModel, NodeState], Kind] = {}
        self._known: WeakValueDictionary[tuple[NodeModel, NodeState], Kind] = WeakValueDictionary()
        """Those too that have no nodes now: a trial that is given back and begun anew comes to the same kinds again."""
        self._open: dict[str, None] = {}
        self._hostnames: Counter[str] = Counter()

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

    def hostname(self, name: str) -> str:
        """The label by which affinity can name the node and no other one; empty where there is none."""
        hostname = self._rooms[name].hostname
        return hostname if hostname and self._hostnames[hostname] == 1 else ""

    def pods_expected(self, name: str) -> list[Pod]:
        """The lifted pods that are expected on a node, in the order in which they were."""
        room = self._rooms.get(name)
        return [] if room is None else [entry.pod for entry in room.expected.values()]

    def lack(self, name: str, wish: Wish, *, displacing: bool) -> str:
        """Why a scheduler would not place the pod on this open node, whatever its cards; empty where it may.

        Unless `displacing`, it does not count on ending pods of a lower priority, nor on devices that the node does not show.
        """
        load = self._rooms[name].load
        if load is None:
            return ""
        if not (displacing or load.shows(wish.requests)):
            return "it does not show all devices that the pod asks for"
        return load.lack(wish.requests, wish.priority if displacing else EVERYBODY, wish.tolerations)

    def shows(self, name: str, wish: Wish) -> bool:
        """Whether the node shows every device that the pod asks for."""
        load = self._rooms[name].load
        return load is not None and load.shows(wish.requests)

    def recount(self, name: str) -> list[ShareKey]:
        """Counts anew what is bound on a node, if it is still there. Returns the pods that were expected there.

        Nothing has changed before it is known what is on its cards, see `in_steps`.
        """
        node = self._ledger.nodes.get(name)
        model = NOTHING if node is None else model_of(node)
        is_open = node is not None and model.serves and node.ready and not node.unschedulable
        pods = self._ledger.pods_on(name) if is_open else []
        cards = occupancy(model, pods, self._ledger.settings.mgpu).state
        evicted = self.clear(name)
        self._sort_out(name)
        before = self._rooms.get(name)
        if before is not None:
            self._hostnames[before.hostname] -= 1
        if node is None:
            self._rooms.pop(name, None)
            return evicted
        room = self._rooms.setdefault(name, _NodeRoom())
        room.hostname = node.labels.get(names.HOSTNAME_LABEL, "")
        self._hostnames[room.hostname] += 1
        room.model, room.open, room.cards = model, is_open, cards
        room.load = NodeLoad(node, partial(self._all_on, name)) if is_open else None
        room.base = canonical(room.cards)
        room.state = room.base
        self._sort_in(name)
        return evicted

    def _all_on(self, name: str) -> list[Pod]:
        return [*self._ledger.pods_on(name), *self._ledger.bystanders_on(name)]

    def clear(self, name: str) -> list[ShareKey]:
        """Expects nobody on a node any more. Returns those who were."""
        room = self._rooms.get(name)
        if room is None or not room.expected:
            return []
        evicted, room.expected = [*room.expected], {}
        for key in evicted:
            nodes = self.expected[key]
            del nodes[name]
            if not nodes:
                del self.expected[key]
        self._sort_out(name)
        if room.load is not None:
            room.load.expect_nobody()
        room.state = room.base
        self._sort_in(name)
        return evicted

    def put(self, entry: Entry, name: str) -> bool:
        """Whether the node has room for the pod, which is expected there then.

        Where room was promised the pods on their way are arranged anew if need be: the binds will see to it that all of
        them find their place. Nothing has changed before a place is found, see `in_steps`.
        """
        ask, room = entry.demand.mgpu, self._rooms.get(name)
        if ask is None or room is None or not room.open or mismatch(ask, room.model) is not None:
            return False
        state = self._arranged((ask,), room.model, room.state)
        if state is None and name in booked_on(entry.pod):
            state = self._arranged_anew(entry, name)
        if state is None:
            return False
        self._sort_out(name)
        room.state = state
        self._sort_in(name)
        if room.load is not None:
            room.load.expect(entry.pod)
        room.expected[entry.share_key] = entry
        self.expected.setdefault(entry.share_key, {})[name] = None
        return True

    def _arranged_anew(self, entry: Entry, name: str) -> NodeState | None:
        """The state of a node with all that are expected there and one more: found by a search, else where binds found it last."""
        room = self._rooms[name]
        everybody = (*room.expected.values(), entry)
        asks = {each.pod.uid: ask for each in everybody if (ask := each.demand.mgpu) is not None}
        state = self._arranged((*asks.values(),), room.model, room.base)
        places = self._ledger.places.get(name)
        if state is not None or not places:
            return state
        found = arranged(asks, room.model, room.cards, cap=self._cap, places=places)
        return None if found is None else canonical(with_all(room.cards, room.model, asks, found))

    def _arranged(self, asks: tuple[MgpuAsk, ...], model: NodeModel, state: NodeState) -> NodeState | None:
        """The state with these pods, None when they have no room."""
        ask = asks[0] if len(asks) == 1 else together(asks)
        indexes: Mapping[str, tuple[int, ...]] | None = any_placement(ask, model, state, cap=self._cap)
        return None if indexes is None else canonical(after(state, model, ask, indexes))

    def _sort_in(self, name: str) -> None:
        room = self._rooms[name]
        if room.open:
            key = room.model, room.state
            kind = self._kinds.get(key)
            if kind is None:
                kind = self._known.get(key) or Kind(*key, self._ledger.settings.mgpu.weight_of_core)
                self._kinds[key] = self._known[key] = kind
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

"""Physical stock: whether some node has the cards free that a pod's quota would allow it."""

from heapq import heapify, heappop, heappush
from typing import Final

from core.objects.node_rules import NodeRules
from core.plan.admitted import AdmittedNodes
from core.plan.changed import ChangedNodes
from core.plan.recent import Recent
from core.queues.ledger import Ledger
from core.steps import Pace, Steps

_COUNTED_IN_A_STEP: Final = 100
_KEPT: Final = 400_000
"""Nodes counted for some card and some rules, a hundred bytes each."""

_CLOSED: Final = -1
"""What is free on a node that takes no pods now."""


class _Pool:
    """What the nodes of one card that some rules admit have free, the most and all together."""

    def __init__(self, ledger: Ledger, card: str) -> None:
        self.total = 0
        self._free: dict[str, int] = {}
        self.changed = ChangedNodes(ledger, self._free.keys(), ledger.inventory.nodes_with(card))
        self._heap: list[tuple[int, str]] = []
        """The most first; what is not so any more is passed over when it comes to the top."""

    def __len__(self) -> int:
        return len(self._free)

    def put(self, name: str, milli: int | None) -> None:
        """Counts a node anew: what it has free, `_CLOSED`, or None for one that is not of this pool."""
        self.total -= max(0, self._free.pop(name, 0))
        if milli is None:
            return
        self._free[name] = milli
        self.total += max(0, milli)
        heappush(self._heap, (-milli, name))
        if len(self._heap) > 2 * len(self._free) + _COUNTED_IN_A_STEP:
            self._heap = [(-free, node) for node, free in self._free.items()]
            heapify(self._heap)

    @property
    def most(self) -> int:
        """The most that one node has free, `_CLOSED` where none takes pods."""
        while self._heap and self._free.get(self._heap[0][1]) != -self._heap[0][0]:
            heappop(self._heap)
        return -self._heap[0][0] if self._heap else _CLOSED


class FreeCards:
    """What is free in the cluster; what is assumed counts as reserved.

    Free cards are kept node by node, and summed up for each card and for all pods that are admitted to the same nodes; a
    change costs what it touches. Only one question is under way at a time, and each answer is right when it is given.
    """

    def __init__(self, ledger: Ledger, admitted: AdmittedNodes) -> None:
        self._ledger = ledger
        self._admitted = admitted
        self._pools: Recent[tuple[NodeRules, str], _Pool] = Recent(self._pool, _KEPT)
        self._free: dict[str, tuple[int, dict[str, int]]] = {}
        self._counted = Pace(_COUNTED_IN_A_STEP)

    @property
    def counted(self) -> int:
        """How often a node has been looked at so far: what all this has cost."""
        return self._counted.done

    def admits_any(self, rules: NodeRules, card: str) -> Steps[bool]:
        """Whether the rules admit any node that carries the card, whatever its state."""
        pool = yield from self._current(rules, card)
        return len(pool) > 0

    def available(self, rules: NodeRules, card: str, milli: int) -> Steps[bool]:
        """Whether a node that the rules admit has `milli` of the card free, and all together beyond what is reserved.

        Only ready and schedulable nodes count.
        """
        pool = yield from self._current(rules, card)
        return pool.most >= milli and pool.total - self._ledger.reserved(card) >= milli

    def _pool(self, question: tuple[NodeRules, str]) -> _Pool:
        _, card = question
        return _Pool(self._ledger, card)

    def _current(self, rules: NodeRules, card: str) -> Steps[_Pool]:
        """The pool as it is now."""
        pool = self._pools[rules, card]
        while pool.changed:
            name = pool.changed.next()
            if self._counted.due():
                yield
            admitted = False
            if card in self._ledger.inventory.on_node(name):
                admitted = name in (yield from self._admitted.admitted(rules, (name,)))
            pool.changed.done(name)
            pool.put(name, self._free_on(name, card) if admitted else None)
        return pool

    def _free_on(self, name: str, card: str) -> int | None:
        """What a node has free of a card; None where it does not carry it, or not any more."""
        ledger = self._ledger
        node, carried = ledger.nodes.get(name), ledger.inventory.on_node(name).get(card)
        if node is None or carried is None:
            return None
        if node.unschedulable or not node.ready:
            return _CLOSED
        version = ledger.occupants.version(name)
        known = self._free.get(name)
        if known is None or known[0] != version:
            known = self._free[name] = (version, {})
            if len(self._free) > 2 * len(ledger.nodes):
                self._free = {each: free for each, free in self._free.items() if each in ledger.nodes}
        free = known[1]
        if card not in free:
            used = sum(pod.requests.get(carried.resource, 0) for pod in ledger.pods_on(name))
            free[card] = max(0, node.allocatable.get(carried.resource, 0) - used)
        return free[card]

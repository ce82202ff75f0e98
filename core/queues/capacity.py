"""How much CPU and memory there is, how much of it is guaranteed to somebody, and what that leaves for each queue."""

from typing import Literal

from core.hierarchy import QueueTree
from core.objects import Node, Queue
from core.queues.amounts import CPU_AND_MEMORY, Amounts, beyond, cpu_memory
from core.queues.guarantees import Guarantees

Unset = Literal["cluster", "zero"]
"""What a queue may use of CPU or memory when its capability does not name it: what the cluster has left, or nothing."""


class Capacity:
    """The sums over all nodes and all queues, brought up to date with each of them; a question costs nothing that grows.

    All nodes count, whatever their state. In thousandths. With a `tree` a queue has what is left of the one above it, and its
    guarantee is a part of that one's: nothing is taken from others twice.
    """

    def __init__(self, unset: Unset, tree: QueueTree | None = None) -> None:
        self._unset: Unset = unset
        self._levels = None if tree is None else Guarantees(tree, self._guarantee)
        self._nodes = _Sums()
        self._guarantees = _Sums()
        self._queues: dict[str, Queue] = {}
        self._limits: dict[str, Amounts] = {}
        """Those that were asked for since anything of them has changed."""

    def put_node(self, node: Node) -> bool:
        """Takes in a node. Returns whether that changed what there is."""
        return self._changed(self._nodes.put(node.name, cpu_memory(node.allocatable)))

    def drop_node(self, name: str) -> bool:
        """Takes out a node. Returns whether that changed what there is."""
        return self._changed(self._nodes.put(name, {}))

    def put_queue(self, queue: Queue) -> bool:
        """Takes in a queue. Returns whether that changed what is left for others."""
        old = self._queues.get(queue.name)
        moved = self._levels is not None and (old is None or old.parent != queue.parent)
        self._queues[queue.name] = queue
        self._limits.pop(queue.name, None)
        return self._changed(self._guarantees.put(queue.name, cpu_memory(queue.guarantee)) or moved)

    def drop_queue(self, name: str) -> bool:
        """Takes out a queue. Returns whether that changed what is left for others."""
        known = self._queues.pop(name, None) is not None
        self._limits.pop(name, None)
        return self._changed(self._guarantees.put(name, {}) or (known and self._levels is not None))

    def limit(self, queue: str) -> Amounts:
        """What a queue may use; a dimension that is absent is not limited."""
        limit = self._limits.get(queue)
        if limit is None:
            found = self._queues.get(queue)
            if found is None:
                return {}
            limit = self._limits[queue] = cpu_memory_capability(found, self._real(found), self._unset)
        return limit

    def deserved(self, queue: str) -> Amounts:
        """What a queue should have; only dimensions that it names itself."""
        found = self._queues.get(queue)
        if found is None or not (found.deserved or found.guarantee):
            return {}
        return deserved_of(cpu_memory(found.deserved), self._real(found), cpu_memory(found.guarantee))

    def _changed(self, changed: bool) -> bool:
        if changed:
            self._limits.clear()
            if self._levels is not None:
                self._levels.clear()
        return changed

    def _guarantee(self, name: str) -> Amounts:
        queue = self._queues.get(name)
        return {} if queue is None else cpu_memory(queue.guarantee)

    def _real(self, queue: Queue) -> Amounts:
        if self._levels is not None:
            return self._levels.real(self._nodes.total, queue.name)
        return real_capability(self._nodes.total, self._guarantees.total, cpu_memory(queue.guarantee))


class _Sums:
    """Amounts by name and their total; a dimension is absent from the total while nobody tells it."""

    def __init__(self) -> None:
        self.total: dict[str, int] = {}
        self._parts: dict[str, Amounts] = {}
        self._tellers = dict.fromkeys(CPU_AND_MEMORY, 0)

    def put(self, name: str, part: Amounts) -> bool:
        """Replaces the part of a name. Returns whether it is another one now."""
        old = self._parts.get(name, {})
        if old == part:
            return False
        for amounts, sign in ((old, -1), (part, 1)):
            for key, milli in amounts.items():
                self.total[key] = self.total.get(key, 0) + sign * milli
                self._tellers[key] += sign
        for key, tellers in self._tellers.items():
            if not tellers:
                self.total.pop(key, None)
        if part:
            self._parts[name] = part
        else:
            del self._parts[name]
        return True


def cpu_memory_capability(queue: Queue, real: Amounts, unset: Unset) -> dict[str, int]:
    """The queue's limits of CPU and memory; one that is absent does not limit."""
    otherwise = cpu_memory(real) if unset == "cluster" else dict.fromkeys(CPU_AND_MEMORY, 0)
    return {**otherwise, **cpu_memory(queue.capability)}


def real_capability(cluster: Amounts, guaranteed: Amounts, guarantee: Amounts) -> dict[str, int]:
    """What the cluster has beyond all guarantees (`guaranteed`), and the queue's own guarantee on top."""
    left = beyond(cluster, guaranteed)
    return {key: left.get(key, 0) + guarantee.get(key, 0) for key in {**cluster, **guarantee}}


def deserved_of(wanted: Amounts, real: Amounts, guarantee: Amounts) -> dict[str, int]:
    """What the queue wants, up to what it could really have, but at least its guarantee."""
    possible = {key: min(milli, real.get(key, milli)) for key, milli in wanted.items()}
    return {key: max(possible.get(key, 0), guarantee.get(key, 0)) for key in {**possible, **guarantee}}

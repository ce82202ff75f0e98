"""What each queue's pods use of CPU and memory: those that ask for nothing of ours too, for they share the limit."""

from collections.abc import Callable, Iterator
from typing import Final

from core.queues.amounts import CPU, MEMORY, Amounts
from core.sharded import Sharded

_NOTHING = (0, 0)
_POSITION: Final = {CPU: 0, MEMORY: 1}


class CpuMemoryBook:
    """One weight for each pod that uses any, by UID, and the sums by queue. There are as many as pods, so they are small.

    `told` hears of each queue by how much its CPU and memory have grown, in thousandths.
    """

    def __init__(self, told: Callable[[str, int, int], None] | None = None) -> None:
        self._told = told
        self._weights = Sharded[tuple[str, int, int]]()
        self._sums: dict[str, tuple[int, int]] = {}

    def used(self, queue: str, key: str) -> int:
        """What a queue's pods use of `cpu` or `memory`, in thousandths."""
        return self._sums.get(queue, _NOTHING)[_POSITION[key]]

    def weights(self) -> Iterator[tuple[str, str, Amounts]]:
        """The pods that use any, by UID, with the queue of each and what it uses; of those that do not go meanwhile."""
        for uid in tuple(self._weights):
            weight = self._weights.get(uid)
            if weight is not None:
                name, cpu, memory = weight
                yield uid, name, {CPU: cpu, MEMORY: memory}

    def put(self, uid: str, queue: str, weight: Amounts) -> str:
        """Books a pod anew. Returns the queue in which something was given back, empty where nothing was."""
        new = (queue, weight.get(CPU, 0), weight.get(MEMORY, 0))
        old = self._weights.get(uid)
        if old == new:
            return ""
        freed = self.drop(uid) if old is not None else ""
        if new[1:] != _NOTHING:
            self._weights.add(uid, new)
            self._add(queue, new[1], new[2])
        if old is not None and old[0] == queue and new[1] >= old[1] and new[2] >= old[2]:
            return ""
        return freed

    def drop(self, uid: str) -> str:
        """Takes out a pod. Returns the queue in which something was given back, empty where nothing was."""
        old = self._weights.pop(uid, None)
        if old is None:
            return ""
        self._add(old[0], -old[1], -old[2])
        return old[0]

    def _add(self, queue: str, cpu: int, memory: int) -> None:
        had = self._sums.get(queue, _NOTHING)
        left = (had[0] + cpu, had[1] + memory)
        if left == _NOTHING:
            self._sums.pop(queue, None)
        else:
            self._sums[queue] = left
        if self._told is not None:
            self._told(queue, cpu, memory)

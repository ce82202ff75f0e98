"""What is used below each queue, where card quotas hold through the tree of queues (`cards.hierarchy`).

Every booking of a queue is added up in all queues above it as well, so a question about one of them costs no more than one
about the queue itself. Where parents form a circle, or one is missing, what could be reached is charged, and the root.
"""

from collections.abc import Collection, Iterator, Mapping

from core.hierarchy import Chain, QueueTree
from core.names import ROOT_QUEUE
from core.objects import Queue
from core.queues.account import NOTHING, Account, Sums
from core.queues.amounts import CPU, CPU_AND_MEMORY, MEMORY, add, cpu_memory
from core.queues.ceiling import Ceiling
from core.queues.cpu_memory_book import CpuMemoryBook
from core.queues.devices import Devices
from core.queues.entry import Entry
from core.queues.limits import Limits
from core.queues.wakeups import Wakeups


class Below(Sums):
    """What the pods of all queues below a queue use, without its own; CPU and memory too, of whatever pods.

    `short` are the keys of which somebody was told that the queue has too little left, for all its subtree.
    """

    __slots__ = ("cpu_memory", "queue", "short")

    def __init__(self, queue: str) -> None:
        super().__init__()
        self.queue = queue
        self.cpu_memory: dict[str, int] = {}
        self.short: set[str] = set()


class Subtrees:
    """The sums of what is below each queue; `accounts`, `queues`, `limits` and `cpu` are those of the queues themselves.

    The tree is kept by others, who say when it has changed.
    """

    def __init__(
        self,
        tree: QueueTree,
        accounts: Mapping[str, Account],
        queues: Mapping[str, Queue],
        limits: Mapping[str, Limits],
        wakeups: Wakeups,
    ) -> None:
        self._tree = tree
        self._accounts = accounts
        self._queues = queues
        self._limits = limits
        self._wakeups = wakeups
        self.cpu = CpuMemoryBook(self._weighed)
        """What each queue's own pods use of CPU and memory."""
        self.devices: Devices | None = None
        """Where it stands what is used of cards that are also had by claims; None where there are none."""
        self._below: dict[str, Below] = {}
        self._charged: dict[str, tuple[Below, ...]] = {}
        """Where what a queue uses is added up at present."""
        self._chains: dict[str, Chain] = {}
        self._ceilings: dict[str, tuple[Ceiling, ...]] = {}
        self.moves = 0
        """Grows whenever queues may be charged to others than before."""

    # -- what others read ------------------------------------------------------------------------------------

    def chain(self, queue: str) -> Chain:
        """The queue and all above it."""
        found = self._chains.get(queue)
        if found is None:
            found = self._chains[queue] = self._tree.chain(queue)
        return found

    def below(self, queue: str) -> Sums:
        """What the pods of the queues below a queue use."""
        return self._below.get(queue, NOTHING)

    def used(self, queue: str, key: str) -> int:
        """What a queue and those below it have allocated and reserved of one key."""
        if self.devices is not None and key in self.devices.linked:
            return self.devices.card_used(queue, key)
        account, below = self._accounts.get(queue), self._below.get(queue)
        own = account.used(key) if account is not None else 0
        return own if below is None else own + below.used(key)

    def cpu_memory_used(self, queue: str, key: str) -> int:
        """What their pods use of `cpu` or `memory`."""
        below = self._below.get(queue)
        own = self.cpu.used(queue, key)
        return own if below is None else own + below.cpu_memory.get(key, 0)

    def short(self, queue: str) -> set[str] | None:
        """The keys of which somebody was told that a queue has too little; None for one that has nobody below it."""
        below = self._below.get(queue)
        return None if below is None else below.short

    def ceilings(self, queue: str) -> tuple[Ceiling, ...]:
        """The limits of all queues above one, from the nearest on; those that limit nothing are left out."""
        found = self._ceilings.get(queue)
        if found is None:
            names = self.chain(queue).queues[1:]
            found = tuple(ceiling for name in names if (ceiling := self._ceiling(name)) is not None)
            self._ceilings[queue] = found
        return found

    def _ceiling(self, name: str) -> Ceiling | None:
        limits, queue = self._limits.get(name), self._queues.get(name)
        if limits is None or queue is None:
            return None
        beside = cpu_memory(queue.capability)
        if not (limits.cards or limits.shares or limits.malformed or beside):
            return None

        def used(key: str) -> int:
            return self.used(name, key)

        def cpu_memory_used(key: str) -> int:
            return self.cpu_memory_used(name, key)

        return Ceiling(name, limits, used, beside, cpu_memory_used, self._sums(name).short)

    # -- what changes ----------------------------------------------------------------------------------------

    def replace(self, old: Entry | None, new: Entry | None) -> None:
        """Puts the new entry of a pod in the place of the old one, above their queues."""
        if old is not None:
            self._add(old, -1)
        if new is not None:
            self._add(new, 1)

    def _add(self, entry: Entry, sign: int) -> None:
        above = self._above(entry.queue)
        for below in above:
            below.add(entry, sign)
        if not self._wakeups.muted_by:
            self._wakeups.publish(*(below.queue for below in above))

    def _weighed(self, queue: str, cpu: int, memory: int) -> None:
        """A queue's own pods use so much more of CPU and memory now."""
        for below in self._above(queue):
            add(below.cpu_memory, {CPU: cpu, MEMORY: memory}, 1)
        self.forget(queue)

    def queue_changed(self, name: str) -> None:
        """The limits of a queue are others: whoever waits below it may fit now."""
        self._ceilings.clear()
        if name in self._below:
            self._ease(self._below[name])

    def moved(self, name: str) -> None:
        """A queue came, went, or has another parent: it and all below it are charged to others now."""
        self.moves += 1
        self._ceilings.clear()
        self._chains.clear()
        eased: dict[str, Below] = {}
        for queue in self._tree.subtree(name):
            before = self._charged.pop(queue, ())
            self._charge(queue, before, -1)
            self._charge(queue, self._above(queue), 1)
            eased |= {below.queue: below for below in before}
        for below in eased.values():
            self._ease(below)
        self._wakeups.publish(*eased, *self.chain(name).queues[1:])
        self._wakeups.help(*self._awaited(name))
        self.forget(name)

    def _charge(self, queue: str, above: tuple[Below, ...], sign: int) -> None:
        own, weight = (
            self._accounts.get(queue, NOTHING),
            {key: self.cpu.used(queue, key) for key in CPU_AND_MEMORY},
        )
        for below in above:
            below.add_all(own, sign)
            add(below.cpu_memory, weight, sign)

    def freed(self, queue: str, keys: Collection[str]) -> None:
        """Something of these keys came free in a queue: whoever was told of too little in one above it is looked at again."""
        if self._wakeups.muted_by:
            return
        own = self._below.get(queue)
        for below in self._above(queue) if own is None else (own, *self._above(queue)):
            if not below.short.isdisjoint(keys):
                self._ease(below)

    def _ease(self, below: Below) -> None:
        if below.short:
            below.short.clear()
            self._wakeups.help(*self._awaited(below.queue))

    def _awaited(self, name: str) -> Iterator[str]:
        """The queues in the subtree of one in which somebody waits."""
        for queue in self._tree.subtree(name):
            account = self._accounts.get(queue)
            if account is not None and account.waiting_pods:
                yield queue

    def forget(self, queue: str) -> None:
        """Keeps nothing of a queue that does not exist, that nobody charges, and below which nobody is."""
        if (
            queue in self._queues
            or queue in self._accounts
            or any(self.cpu.used(queue, key) for key in CPU_AND_MEMORY)
        ):
            return
        self._charged.pop(queue, None)
        self._chains.pop(queue, None)
        self._ceilings.pop(queue, None)
        if queue != ROOT_QUEUE and not any(below != queue for below in self._tree.subtree(queue)):
            self._below.pop(queue, None)

    def _above(self, queue: str) -> tuple[Below, ...]:
        found = self._charged.get(queue)
        if found is None:
            found = self._charged[queue] = tuple(map(self._sums, self.chain(queue).queues[1:]))
        return found

    def _sums(self, queue: str) -> Below:
        found = self._below.get(queue)
        if found is None:
            found = self._below[queue] = Below(queue)
        return found

"""Which queues have to be looked at again, and why.

The sums of the ledger say what is so; this says where something happened that may let a waiting pod in, or that changes what
is published. Queues whose waiting pods can be helped only by something rare (room on a node, CPU and memory) are put aside
until just that happens, so that everything else costs them nothing.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, contextmanager

from core.dra.booking import Effect
from core.sharded import Sharded


class _Mute:
    """The block of `Wakeups.muted`; a generator's would cost a lift more than what is told."""

    __slots__ = ("_wakeups",)

    def __init__(self, wakeups: "Wakeups") -> None:
        self._wakeups = wakeups

    def __enter__(self) -> None:
        self._wakeups.muted_by += 1

    def __exit__(self, *_error: object) -> None:
        self._wakeups.muted_by -= 1


class Wakeups:
    """The queues to decide on and those to publish; each is on its list once, however often it is named."""

    def __init__(self) -> None:
        self._queues = Sharded[None]()
        self._figures = Sharded[None]()
        self._room: dict[str, frozenset[str]] = {}
        self._cpu_memory: set[str] = set()
        self._helped: dict[str, int] = {}
        self._help = 0
        self.told = 0
        """How often a queue has come on the list of those to decide on that was not there."""
        self._deciding: Callable[[], None] | None = None
        """Is told each time that this is so."""
        self._publishing: Callable[[], None] | None = None
        """Is told when there is something to publish again."""
        self.muted_by = 0
        """How many blocks of `muted` are under way."""
        self._mute = _Mute(self)
        self._search: tuple[str, frozenset[str]] | None = None

    def follow_queues(self, follower: Callable[[], None]) -> None:
        """Calls from now on when a queue has come on the list of those to decide on; there is one follower."""
        self._deciding = follower

    def follow_figures(self, follower: Callable[[], None]) -> None:
        """Calls from now on when the first queue has come on the list of those to publish; there is one follower."""
        self._publishing = follower

    # -- what happened ---------------------------------------------------------------------------------------

    def look_at(self, *queues: str) -> None:
        """Somebody waits there who has not been decided on."""
        if not self.muted_by:
            self._put(queues)

    def help(self, *queues: str) -> None:
        """Something happened that may let in a pod there that was held before."""
        if not self.muted_by:
            self._put(queues)
            self._help += 1
            self._helped.update(dict.fromkeys(queues, self._help))

    def publish(self, *queues: str) -> None:
        """The sums, limits or stored status of these queues changed."""
        if queues and not self.muted_by:
            first = not self._figures
            for queue in queues:
                if queue not in self._figures:
                    self._figures.add(queue, None)
            if first and self._publishing is not None:
                self._publishing()

    def changed(self, effect: Effect) -> None:
        """What a change in the book of devices has done."""
        if effect.touched:
            self.publish(*effect.touched)
        if effect.dirty:
            self.help(*effect.dirty)

    def room_freed(self, cards: Collection[str]) -> None:
        """Some node may have room for these cards, or mGPU resources, that it had not before."""
        if self.room_awaited and not self.muted_by:
            freed = [queue for queue, wanted in self._room.items() if not wanted.isdisjoint(cards)]
            for queue in freed:
                del self._room[queue]
            if self._search is not None and not self._search[1].isdisjoint(cards):
                freed.append(self._search[0])
            self.help(*freed)

    def cpu_memory_freed(self, queue: str) -> None:
        """CPU or memory was given back in a queue; '' for in none."""
        if not self.muted_by and (queue in self._cpu_memory or self._is_searched(queue)):
            self._cpu_memory.discard(queue)
            self.help(queue)

    def capacity_changed(self) -> None:
        """There is more or less CPU and memory for all queues: what one is guaranteed is missing for the others."""
        if not self.muted_by:
            self.help(*self._cpu_memory)
            self._cpu_memory.clear()
            if self._search is not None:
                self.help(self._search[0])

    def muted(self) -> AbstractContextManager[None]:
        """What happens within is told to nobody: a trial, or a lift, whose consequences its caller knows."""
        return self._mute

    @contextmanager
    def searching(self, queue: str, cards: Collection[str]) -> Iterator[None]:
        """Within, anything that comes free and may help pods of the queue, which want these cards, has it looked at again.

        What they are told in the end may have been found out before, and they do not wait for it by name yet. One search at
        a time.
        """
        self._search = queue, frozenset(cards)
        try:
            yield
        finally:
            self._search = None

    def _is_searched(self, queue: str) -> bool:
        return self._search is not None and self._search[0] == queue

    # -- what is waited for ------------------------------------------------------------------------------------

    def await_room(self, queue: str, cards: Collection[str]) -> None:
        """Has a queue looked at again when room for one of these cards, or mGPU resources, comes free."""
        self._room[queue] = self._room.get(queue, frozenset()) | frozenset(cards)

    def await_cpu_memory(self, queue: str) -> None:
        """Has a queue looked at again when CPU or memory is given back in it."""
        self._cpu_memory.add(queue)

    @property
    def room_awaited(self) -> bool:
        """Whether any queue waits for room."""
        return bool(self._room) or self._search is not None

    def _put(self, queues: Iterable[str]) -> None:
        come = 0
        for queue in queues:
            if queue not in self._queues:
                self._queues.add(queue, None)
                come += 1
        self.told += come
        if come and self._deciding is not None:
            self._deciding()

    # -- what is to be done ------------------------------------------------------------------------------------

    def take_queues(self) -> list[str]:
        """The queues to decide on; they are off the list, and on it again with the next event that may help."""
        queues, self._queues = list(self._queues), Sharded[None]()
        return queues

    def take(self, *queues: str) -> None:
        """Takes these off the list, to decide on them now."""
        for queue in queues:
            self._queues.pop(queue, None)

    def take_figures(self) -> AbstractSet[str]:
        """The queues to publish; they are off the list until they change again."""
        figures, self._figures = self._figures, Sharded[None]()
        return figures.keys()

    def helped(self, queue: str) -> int:
        """A number that differs after everything that may let in a pod of the queue that was held before."""
        return self._helped.get(queue, 0)

    @property
    def pending(self) -> Collection[str]:
        """The queues to decide on."""
        return self._queues.keys()

    def forget(self, queue: str) -> None:
        """Drops what is kept about a queue that does not exist and that nobody charges."""
        self._queues.pop(queue, None)
        self._figures.pop(queue, None)
        self._helped.pop(queue, None)
        self._room.pop(queue, None)
        self._cpu_memory.discard(queue)

"""Who has to wait in a pass for gangs of other queues, where quotas hold through the tree of queues.

A gang that was let in and stopped short of its minimum comes before all others. Its queue is the first in a pass, but it may
be put off there, or left for a while. What it lacks of its own queue is kept back for it then; what it lacks of a queue above
must not go to whoever else is below that.
"""

from collections.abc import Callable, Collection, Sequence

from core.queues.ceiling import Ceiling
from core.queues.ledger import Ledger


class KeptBack:
    """The queues with such gangs on which nothing has been decided yet in this pass, and who has to wait for them.

    Nobody has where the quota of a queue is its own.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._expected: dict[str, frozenset[str]] = {}
        """The queues with such gangs, and the queues whose limits hold for each."""

    def begin(self) -> None:
        """A pass begins."""
        self._expected.clear()

    def expect(self, queue: str, wanted: Collection[str]) -> None:
        """In this queue such gangs are about to be decided on, which lack some of these cards and resources."""
        if self._ledger.subtrees is not None:
            self._expected[queue] = frozenset(
                (queue, *(level.queue for level in self._ceilings(queue) if _limits(level, wanted)))
            )

    def decided(self, queue: str) -> None:
        """Its gangs have got what they lack, or were told why not: nobody has to wait for them any more."""
        self._expected.pop(queue, None)

    def back(self, queue: str) -> bool:
        """Whether a queue has to wait. One with such a gang of its own has not before that is decided on."""
        if not self._expected or queue in self._expected:
            return False
        levels = {queue, *(level.queue for level in self._ceilings(queue))}
        return any(not levels.isdisjoint(others) for others in self._expected.values())

    def any_of(self, woken: Callable[[str], bool]) -> bool:
        """Whether members of such a gang wait in a queue that is `woken`."""
        ledger = self._ledger
        if ledger.subtrees is None:
            return False
        unfinished = ledger.groups.unfinished
        return any(woken(queue) for key in unfinished for queue in ledger.queues_with(key))

    def _ceilings(self, queue: str) -> Sequence[Ceiling]:
        return self._ledger.subtrees.ceilings(queue) if self._ledger.subtrees is not None else ()


def _limits(level: Ceiling, wanted: Collection[str]) -> bool:
    """Whether a queue above has anything to say about what is wanted; CPU and memory everybody wants."""
    limited = any(level.limit(key) is not None or key in level.limits.shares for key in wanted)
    return limited or bool(level.cpu_memory)

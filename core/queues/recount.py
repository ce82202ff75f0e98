"""All entries added up anew, in pieces, while the books go on changing: what an audit compares their sums with."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from core.queues.amounts import add
from core.queues.entry import Entry
from core.sharded import Sharded, each_key
from core.stage import Stage
from core.steps import Steps, let_go

_STEP: Final = 25
"""Pods in half a millisecond of work."""
_LET_GO: Final = 200

ByStage = Mapping[Stage, Mapping[str, int]]
"""Thousandths by stage and key; a stage that is absent has nothing."""

_NOTHING: Final[ByStage] = {}


class Recount:
    """The sums of every queue by the entries alone, true at every moment after `count`, provided that each change is told.

    `charged` says in whose sums those of a queue are. An entry that changes before its turn is counted then, so that nothing has to
    be copied, and nobody is counted twice.
    """

    def __init__(self, charged: Callable[[str], Sequence[str]]) -> None:
        self._charged = charged
        self._counted = Sharded[Entry]()
        self._sums = Sharded[dict[Stage, dict[str, int]]]()

    @property
    def queues(self) -> Mapping[str, ByStage]:
        """The queues in which anything was counted."""
        return self._sums

    def of(self, queue: str) -> ByStage:
        """What was counted of a queue."""
        return self._sums.get(queue, _NOTHING)

    def replace(self, old: Entry | None, new: Entry | None) -> None:
        """Is told that the new entry of a pod is in the place of the old one; None for one that is in no book."""
        if old is not None:
            counted = self._counted.pop(old.pod.uid, None)
            if counted is not None:
                self._add(counted, -1)
        if new is not None:
            self._count(new)

    def count(self, entries: Mapping[str, Entry]) -> Steps[None]:
        """Counts all entries, by UID, that have not changed in the meantime, and so been counted."""

        def count(uid: str) -> None:
            entry = entries.get(uid)
            if entry is not None and uid not in self._counted:
                self._count(entry)

        yield from each_key(entries, count, _STEP)

    def let_go(self) -> Steps[None]:
        """Empties itself."""
        yield from let_go(self._counted, _LET_GO)
        yield from let_go(self._sums, _LET_GO)

    def _count(self, entry: Entry) -> None:
        self._counted.add(entry.pod.uid, entry)
        self._add(entry, 1)

    def _add(self, entry: Entry, sign: int) -> None:
        for queue in self._charged(entry.queue):
            add(self._sums.opened(queue, dict).setdefault(entry.stage, {}), entry.charged, sign)

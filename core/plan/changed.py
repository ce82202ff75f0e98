"""Which nodes somebody has to look at again."""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from core.queues.ledger import Ledger


class ChangedNodes:
    """The nodes that have come, changed or gone since they were looked at last; `names` are those to begin with.

    Each is named once, however often it changed, and costs as much as there are of them. `known` are, at any time, the nodes
    that are remembered: one of them that has gone is named even where it went so long ago that the ledger has forgotten it.
    Whoever is interrupted between `next` and `done` meets the same node again.
    """

    def __init__(self, ledger: Ledger, known: AbstractSet[str], names: Iterable[str]) -> None:
        self._occupants = ledger.occupants
        self._nodes = ledger.nodes
        self._known = known
        self._names = dict.fromkeys(names)
        self._seen = self._occupants.changes
        self._epoch = self._occupants.epoch

    def __bool__(self) -> bool:
        """Whether there is any."""
        occupants = self._occupants
        if self._seen != occupants.changes:
            self._names.update(dict.fromkeys(occupants.changed_since(self._seen)))
            self._seen = occupants.changes
        if self._epoch != occupants.epoch:
            self._names.update(dict.fromkeys(sorted(self._known - self._nodes.keys())))
            self._epoch = occupants.epoch
        return bool(self._names)

    def next(self) -> str:
        """One of them; to be asked only while there is one."""
        return next(iter(self._names))

    def done(self, name: str) -> None:
        """The node has been looked at as it is now."""
        self._names.pop(name, None)

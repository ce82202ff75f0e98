"""Which nodes somebody has to look at again."""

from collections.abc import Iterable

from core.queues.occupants import Occupants


class ChangedNodes:
    """The nodes that have come, changed or gone since they were looked at last; `names` are those to begin with.

    Each is named once, however often it changed, and costs as much as there are of them. Whoever is interrupted between `next`
    and `done` meets the same node again.
    """

    def __init__(self, occupants: Occupants, names: Iterable[str]) -> None:
        self._occupants = occupants
        self._names = dict.fromkeys(names)
        self._seen = occupants.changes

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self._names) or self._seen != self._occupants.changes

    def next(self) -> str:
        """One of them; to be asked only while there is one."""
        if self._seen != self._occupants.changes:
            self._names.update(dict.fromkeys(self._occupants.changed_since(self._seen)))
            self._seen = self._occupants.changes
        return next(iter(self._names))

    def done(self, name: str) -> None:
        """The node has been looked at as it is now."""
        self._names.pop(name, None)

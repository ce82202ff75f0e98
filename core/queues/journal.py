"""Which of many things have changed since somebody looked, told without going through all of them."""

from collections.abc import Collection, Hashable
from itertools import takewhile
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)

_KEPT: Final = 1000


class Journal(Generic[K]):
    """The names of what changed, the last ones last, each once; of so many that whoever asks often enough misses none."""

    def __init__(self) -> None:
        self.changes = 0
        """Grows with every change."""
        self._last: dict[K, int] = {}
        """In the order of their numbers."""
        self._forgotten = 0

    def note(self, key: K) -> None:
        """Notes that this has come, changed or gone."""
        self.changes += 1
        self._last.pop(key, None)
        self._last[key] = self.changes
        if len(self._last) > _KEPT:
            oldest = next(iter(self._last))
            self._forgotten = self._last.pop(oldest)

    def note_all(self, keys: Collection[K]) -> None:
        """Notes that these have come, changed or gone; of too many to be kept nothing is kept."""
        if len(keys) <= _KEPT:
            for key in keys:
                self.note(key)
            return
        self.changes += len(keys)
        self._last.clear()
        self._forgotten = self.changes

    def since(self, changes: int) -> list[K] | None:
        """What changed since `changes` was that number, at a cost of as much; None where that is not known any more."""
        if changes < self._forgotten:
            return None
        return [*takewhile(lambda key: self._last[key] > changes, reversed(self._last))]

"""In which queues somebody is, by what they have in common."""

from collections import Counter
from collections.abc import Collection


class QueueCounts:
    """How many are in which queue, by a key. To ask for the queues costs nothing, however many are in them."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: dict[str, Counter[str]] = {}

    def __bool__(self) -> bool:
        return bool(self._counts)

    def queues(self, key: str) -> Collection[str]:
        """The queues in which somebody is, as of now and later."""
        return self._counts.get(key, {}).keys()

    def count(self, key: str, queue: str, sign: int) -> None:
        """One more is in a queue, or one fewer with `sign` -1."""
        queues = self._counts.setdefault(key, Counter())
        queues[queue] += sign
        if not queues[queue]:
            del queues[queue]
        if not queues:
            del self._counts[key]

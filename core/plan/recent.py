"""What was found out about the questions that were asked last."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sized
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=Sized)


class Recent(Generic[K, V]):
    """A value for each key, made when it is first asked for.

    So many are kept that all together are no longer than `limit`, counting one more for each, and always the one that was
    asked for last. Values may grow while they are kept.
    """

    def __init__(self, make: Callable[[K], V], limit: int) -> None:
        self._make = make
        self._limit = limit
        self._kept: OrderedDict[K, V] = OrderedDict()

    def __getitem__(self, key: K) -> V:
        value = self._kept.get(key)
        if value is not None:
            self._kept.move_to_end(key)
            return value
        length = sum(1 + len(kept) for kept in self._kept.values())
        while self._kept and length > self._limit:
            _, dropped = self._kept.popitem(last=False)
            length -= 1 + len(dropped)
        value = self._kept[key] = self._make(key)
        return value

    def values(self) -> list[V]:
        """All that is kept, the last one asked for at the end."""
        return list(self._kept.values())

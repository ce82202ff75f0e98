"""What any few of many pods ask for together, at the least."""

from collections.abc import Hashable, Mapping
from typing import Final, Generic, TypeVar

from core.steps import Steps, in_order

K = TypeVar("K", bound=Hashable)

_IN_ONE_STEP: Final = 250


class Asks(Generic[K]):
    """What each of some pods asks for, key by key; a key that is absent equals zero."""

    def __init__(self) -> None:
        self._pods = 0
        self._amounts: dict[K, list[int]] = {}

    def add(self, amounts: Mapping[K, int]) -> None:
        """One more pod, which asks for this."""
        self._pods += 1
        for key, amount in amounts.items():
            self._amounts.setdefault(key, []).append(amount)

    def least(self, count: int) -> Steps[dict[K, int]]:
        """What `count` of them ask for, whichever they are: of each key by itself those that ask for least of it."""
        found: dict[K, int] = {}
        for number, (key, amounts) in enumerate(self._amounts.items(), 1):
            if number % _IN_ONE_STEP == 0:
                yield
            asking = count - (self._pods - len(amounts))
            if asking > 0:
                found[key] = sum((yield from in_order(amounts, int, _IN_ONE_STEP))[:asking])
        return found

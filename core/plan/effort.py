"""How much work a pass may put into one queue, and into one pod or gang of it, so that a costly one costs itself.

Work is counted in the steps of core.steps, about half a millisecond each. Whoever is decided on without a pause costs none.
"""

from collections import Counter
from collections.abc import Hashable
from typing import Final, TypeVar

from core.steps import Steps

T = TypeVar("T")

OF_A_PASS: Final = 2_000
"""Steps, about a second: so long the last queue of a pass may have to wait for the costly ones before it."""

_DOUBLINGS: Final = 20
_REMEMBERED: Final = 4096
"""Who was cut and has gone since is not told; so many are kept at the most."""


class Effort:
    """Steps that may still be taken, dealt out in equal parts to those who have not had theirs; what one leaves is for all."""

    def __init__(self, steps: int = OF_A_PASS) -> None:
        self.left = steps

    def part(self, among: int) -> int:
        """The part of one of so many."""
        return max(0, self.left) // max(1, among)

    def spend(self, steps: int) -> None:
        """Takes off what was used."""
        self.left -= steps


class Cuts:
    """Who was cut short, and how often in a row. The part of such a one is doubled each time, so that everybody ends one day."""

    def __init__(self) -> None:
        self._times: Counter[Hashable] = Counter()

    def part(self, key: Hashable, fair: int, left: int) -> int:
        """The steps that `key` may take, given its fair part and all that is left of the pass."""
        times = self._times.get(key, 0)
        return fair if not times else min(max(1, fair) << min(times, _DOUBLINGS), max(fair, left))

    def note(self, key: Hashable, *, cut: bool) -> None:
        """How it ended."""
        if cut:
            if len(self._times) >= _REMEMBERED:
                self._times.clear()
            self._times[key] += 1
        else:
            self._times.pop(key, None)


def limited(steps: Steps[T], most: int) -> Steps[tuple[T | None, int]]:
    """What the steps come to, and how many they were; None as the first when they are more than `most`."""
    taken = 0
    try:
        while True:
            try:
                next(steps)
            except StopIteration as end:
                value: T = end.value
                return value, taken
            taken += 1
            if taken > most:
                return None, taken
            yield
    finally:
        steps.close()

"""Nodes by the values of their labels, so that an expression is asked of all of them at once and not of one after the other.

Which nodes are meant is a number with one bit for each of them.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from itertools import accumulate
from operator import or_

Values = tuple[frozenset[str | None], ...]
"""Values of a label, None for a label that is not there; in pieces, where there are very many."""


class Labelled:
    """So many nodes; each is put in once before anything is asked."""

    def __init__(self, count: int) -> None:
        self.everyone = (1 << count) - 1
        self._without: dict[str | None, int] = {None: self.everyone}
        self._values: dict[str, dict[str | None, int]] = {}
        self._numbers: dict[str, tuple[list[int], list[int]]] = {}

    def put(self, bit: int, labels: Mapping[str, str], keys: Iterable[str]) -> None:
        """Takes in the node of this bit, with these of its labels."""
        for key in keys:
            values = self._values.get(key)
            if values is None:
                values = self._values[key] = dict(self._without)
            values[None] ^= bit
            values[labels[key]] = values.get(labels[key], 0) | bit

    def having(self, key: str, values: Values) -> int:
        """The nodes whose label has one of these values. What it costs is the smaller of what is listed and what there is."""
        known, found = self._values.get(key, self._without), 0
        for some in values:
            for value in some if len(some) <= len(known) else some.intersection(known):
                found |= known.get(value, 0)
        return found

    def variety(self, key: str) -> int:
        """How many values the label has."""
        return len(self._values.get(key, self._without))

    def put_in_order(self, key: str) -> None:
        """Makes ready for bounds; without this the first one does."""
        self._numbers[key] = _in_order(self._values.get(key, self._without))

    def beyond(self, key: str, bound: int, *, above: bool) -> int:
        """The nodes whose label is a number above the bound, or below it."""
        if key not in self._numbers:
            self.put_in_order(key)
        numbers, upwards = self._numbers[key]
        if above:
            return upwards[bisect_right(numbers, bound)]
        return upwards[0] & ~upwards[bisect_left(numbers, bound)]


def _in_order(values: Mapping[str | None, int]) -> tuple[list[int], list[int]]:
    """The numbers among these values, the least first; and for each, and for none at the end, the nodes with it or a greater one."""
    found: dict[int, int] = {}
    for value, nodes in values.items():
        try:
            number = int(value or "")
        except ValueError:
            continue
        found[number] = found.get(number, 0) | nodes
    numbers = sorted(found)
    downwards = accumulate((found[number] for number in reversed(numbers)), or_, initial=0)
    return numbers, list(downwards)[::-1]

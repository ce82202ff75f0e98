"""A name for the state of many counters: equal states have the same, however they came about.

A search that remembers where it has been would else keep all counters with each of its steps, and compare them.
"""

from collections.abc import Hashable

from core.steps import Steps, let_go


class Fingerprint:
    """Things in so many places, all None in the beginning. To put one somewhere costs the logarithm of the number of places.

    The places are the leaves of a tree. Each pair of neighbours that has ever been is given a number, which stands for it in the
    pair above; so the number at the root stands for all.
    """

    __slots__ = ("_first", "_nodes", "_numbers")

    def __init__(self, places: int) -> None:
        self._first = 1 << max(0, places - 1).bit_length()
        self._nodes: list[Hashable] = [None] * (2 * self._first)
        self._numbers: dict[tuple[Hashable, Hashable], int | None] = {(None, None): None}

    def put(self, place: int, what: Hashable) -> None:
        """Has this in the place from now on."""
        nodes, numbers = self._nodes, self._numbers
        at = self._first + place
        nodes[at] = what
        while at > 1:
            at >>= 1
            nodes[at] = numbers.setdefault((nodes[2 * at], nodes[2 * at + 1]), len(numbers))

    def let_go(self, at_once: int) -> Steps[None]:
        """Frees what it has needed, in steps; it is of no use any more then."""
        yield from let_go(self._numbers, at_once)

    @property
    def value(self) -> Hashable:
        """What is the same of equal states, and of no others. Comparable only with those of the same instance."""
        return self._nodes[1]

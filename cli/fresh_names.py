"""Names for what has none yet: as an API server makes them, each object of a kind gets one that no other has."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cli.kinds import ObjectKind


class FreshNames:
    """The names that are in use, by kind and `namespace/name`."""

    def __init__(self, taken: Iterable[tuple["ObjectKind", str]]) -> None:
        self._taken = set(taken)
        self._numbers: defaultdict[tuple[ObjectKind, str], Iterator[int]] = defaultdict(lambda: count(2))

    def take(self, kind: "ObjectKind", wanted: str) -> str:
        """This key where no object of the kind has it, else one with a number behind it; in use from now on."""
        key = wanted
        while (kind, key) in self._taken:
            key = f"{wanted}-{next(self._numbers[kind, wanted])}"
        self._taken.add((kind, key))
        return key

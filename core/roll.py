"""A set of names in the order in which they came, that never grows in one piece."""

from collections.abc import Collection, Iterator
from itertools import chain, islice
from typing import Final

PIECE: Final = 4096
"""Names that are kept together: as a dictionary they move in a fifth of a millisecond."""


class Roll(Collection[str]):
    """Names in their order, however many. Who comes again after being taken out is the last.

    A change costs one look for each piece, and those are a quarter full at least, taken together.
    """

    __slots__ = ("_pieces",)

    def __init__(self) -> None:
        self._pieces: list[dict[str, None]] = [{}]

    def __len__(self) -> int:
        return sum(map(len, self._pieces))

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self._pieces)

    def __contains__(self, name: object) -> bool:
        return any(name in piece for piece in self._pieces)

    def __bool__(self) -> bool:
        return bool(self._pieces[0])

    def add(self, name: str) -> None:
        """Puts a name at the end that is not on the roll."""
        last = self._pieces[-1]
        if len(last) >= PIECE:
            last = {}
            self._pieces.append(last)
        last[name] = None

    def extend(self, names: Collection[str]) -> None:
        """The same for many, none of them on the roll, in their order."""
        left, coming = len(names), iter(names)
        while left > 0:
            if len(self._pieces[-1]) >= PIECE:
                self._pieces.append({})
            last = self._pieces[-1]
            some = min(left, PIECE - len(last))
            last.update(dict.fromkeys(islice(coming, some)))
            left -= some

    def discard(self, name: str) -> None:
        """Takes a name out; one that is not there is fine."""
        for at, piece in enumerate(self._pieces):
            if name in piece:
                del piece[name]
                if at or piece is not self._pieces[-1]:
                    self._close_up(at)
                return

    def _close_up(self, at: int) -> None:
        """Drops a piece that has become empty, or joins it with one beside it where they are half of one together."""
        pieces = self._pieces
        if not pieces[at]:
            del pieces[at]
            return
        for before in (at - 1, at):
            if 0 <= before < len(pieces) - 1 and len(pieces[before]) + len(pieces[before + 1]) <= PIECE // 2:
                pieces[before].update(pieces.pop(before + 1))
                return
